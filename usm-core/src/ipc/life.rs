//! The signs of life of exported memory, which tell other processes that a handle is not stale.
//!
//! A sign is a socket for datagrams with a random name in Linux's abstract namespace, which is no
//! file. Nothing reads it. Before memory returns to the runtime or its source, its sign is shut
//! down and closed; the system closes it when the process ends, in whatever way. After a fork the
//! child has a copy. It closes that at once, and the shutdown holds for the copy too, so memory
//! that ends before a child closes or replaces itself does not look alive.
//!
//! Asking leaves a datagram of no bytes in the socket, up to the system's limit (512 or fewer).

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use std::fs::File;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::LIFE_BYTES;
use crate::error::{Error, ErrorKind, Result};
use crate::history::History;
use crate::sync::{Mutex, take_out};

pub(crate) type Name = [u8; LIFE_BYTES];

#[derive(Debug)]
pub(crate) struct Life {
    /// Id of the memory's context.
    context: u64,
    /// Addresses of the memory.
    range: Range<usize>,
    name: Name,
    socket: UnixDatagram,
}

/// All signs of this process. Held across forks.
pub(crate) static LIVES: Mutex<Vec<Life>> = Mutex::new(Vec::new());

/// The name of the sign of this memory, which is made if there is none.
pub(crate) fn begin(context: u64, range: Range<usize>, history: &History) -> Result<Name> {
    let find = |lives: &[Life]| {
        lives.iter().find(|life| life.context == context && life.range == range).map(|life| life.name)
    };
    if let Some(name) = find(&LIVES.lock()) {
        return Ok(name);
    }
    crate::process::watch_forks();
    let (name, socket) = make().map_err(|error| failure("making the socket of an IPC handle", &error))?;
    let mut lives = LIVES.lock();
    // Another thread may have exported it meanwhile.
    if let Some(name) = find(&lives) {
        return Ok(name);
    }
    lives.push(Life { context, range, name, socket });
    history.watch_exports(true);
    Ok(name)
}

/// Ends the signs of all memory inside this range.
#[cold]
pub(crate) fn end(context: u64, range: Range<usize>, history: &History) {
    let mut lives = LIVES.lock();
    let inside = |life: &Life| range.start <= life.range.start && life.range.end <= range.end;
    let removed_lives = take_out(&mut lives, |life| life.context == context && inside(life));
    history.watch_exports(lives.iter().any(|life| life.context == context));
    drop(lives);
    for life in removed_lives {
        // Cannot fail for a socket; copies of children are shut down too.
        let _ = life.socket.shutdown(Shutdown::Both);
    }
}

/// # Errors
/// [`ErrorKind::StaleIpcHandle`] if the sign has ended; the system's error if that is not known.
pub(crate) fn check(name: &Name) -> Result<()> {
    match ask(name) {
        Ok(()) => Ok(()),
        // Nobody has the name, or only a child of the process that made it.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::BrokenPipe) =>
        {
            Err(ErrorKind::StaleIpcHandle.into())
        }
        Err(error) => Err(failure("asking the socket of an IPC handle", &error)),
    }
}

fn make() -> io::Result<(Name, UnixDatagram)> {
    let mut name = [0; LIFE_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut name)?;
    Ok((name, UnixDatagram::bind_addr(&address(&name)?)?))
}

fn ask(name: &Name) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address(name)?)?;
    match socket.send(&[]) {
        // Enough others have asked.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        result => result.map(drop),
    }
}

fn address(name: &Name) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("usm-ipc-{:032x}", u128::from_be_bytes(*name)))
}

fn failure(operation: &'static str, error: &io::Error) -> Error {
    let native_error = Error::from(ErrorKind::Native { operation });
    match error.raw_os_error() {
        Some(code) => native_error.with_native(code.into()),
        None => native_error,
    }
}
