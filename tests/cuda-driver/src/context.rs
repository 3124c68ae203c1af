//! Devices, contexts, and which context is current on each thread.

use alloc::collections::BTreeSet;
use core::cell::RefCell;

use crate::code::{Answer, CONTEXT_IS_DESTROYED, Code, INVALID_CONTEXT, INVALID_DEVICE, OUT_OF_MEMORY};
use crate::state::State;
use crate::worker;

/// A device: its primary context, and by how many it is held.
#[derive(Debug, Default)]
pub(crate) struct Device {
    pub(crate) primary: Option<usize>,
    pub(crate) holders: u32,
    /// Whether the host is kept from its managed memory.
    pub(crate) works: bool,
}

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) device: usize,
    /// What every call in it answers since something in it went wrong.
    pub(crate) failed: Option<Code>,
    /// Nobody has it any more; its work goes on.
    pub(crate) closing: bool,
    /// Contexts whose memory it reaches.
    pub(crate) peers: BTreeSet<usize>,
    /// The streams without a handle of their own: the one that others wait for, and the one that
    /// they do not wait for.
    pub(crate) defaults: [usize; 2],
}

/// The contexts of a thread, the current one last. It has no heap memory, so that a thread that
/// ends leaves nothing behind, and no destructor, because exit handlers call the driver after the
/// main thread's variables are destroyed.
#[derive(Debug)]
pub(crate) struct Stack {
    contexts: [usize; 32],
    len: usize,
}

impl Stack {
    pub(crate) fn last(&self) -> Option<usize> {
        self.len.checked_sub(1).map(|last| self.contexts[last])
    }

    pub(crate) fn push(&mut self, context: usize) -> Answer<()> {
        *self.contexts.get_mut(self.len).ok_or(OUT_OF_MEMORY)? = context;
        self.len += 1;
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<usize> {
        let last = self.last()?;
        self.len -= 1;
        Some(last)
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

std::thread_local! {
    static CURRENT: RefCell<Stack> = const { RefCell::new(Stack { contexts: [0; 32], len: 0 }) };
}

/// What is done with the contexts of this thread.
pub(crate) fn stack<R>(body: impl FnOnce(&mut Stack) -> R) -> R {
    CURRENT.with(|stack| body(&mut stack.borrow_mut()))
}

impl State {
    /// The device of a handle.
    pub(crate) fn device(&mut self, device: i32) -> Answer<&mut Device> {
        usize::try_from(device).ok().and_then(|index| self.devices.get_mut(index)).ok_or(INVALID_DEVICE)
    }

    /// A context that works.
    pub(crate) fn context(&self, context: usize) -> Answer<&Context> {
        let found = self.contexts.get(&context).filter(|found| !found.closing).ok_or(CONTEXT_IS_DESTROYED)?;
        found.failed.map_or(Ok(found), Err)
    }

    /// Whether somebody has a context, which may have failed.
    pub(crate) fn is_open(&self, context: usize) -> bool {
        self.contexts.get(&context).is_some_and(|found| !found.closing)
    }

    /// The context that is current on this thread, and works.
    pub(crate) fn current(&self) -> Answer<usize> {
        let current = stack(|stack| stack.last()).filter(|current| *current != 0);
        let current = current.ok_or(INVALID_CONTEXT)?;
        self.context(current).map(|_| current)
    }

    /// A new context over a device.
    pub(crate) fn create_context(&mut self, device: usize) -> usize {
        let context = self.number();
        let defaults = [true, false].map(|waits| self.create_stream(context, waits));
        self.contexts.insert(
            context,
            Context { device, failed: None, closing: false, peers: BTreeSet::new(), defaults },
        );
        context
    }

    /// Takes a context's handle away and those of what is in it. Its work goes on; memory goes when
    /// that is done.
    pub(crate) fn destroy_context(&mut self, context: usize) -> Answer {
        let found = self.contexts.get_mut(&context).filter(|found| !found.closing);
        found.ok_or(INVALID_CONTEXT)?.closing = true;
        self.events.retain(|_, event| event.context != context);
        self.modules.retain(|_, module| module.context != context);
        self.functions.retain(|_, function| self.modules.contains_key(&function.module));
        for stream in self.streams.values_mut().filter(|stream| stream.context == context) {
            stream.destroyed = true;
        }
        self.share_managed(context);
        worker::done();
        self.close_context(context);
        Ok(())
    }

    /// Takes a context away that has no handle and no work.
    pub(crate) fn close_context(&mut self, context: usize) {
        let closing = self.contexts.get(&context).is_some_and(|found| found.closing);
        if !closing || self.streams.values().any(|stream| stream.context == context && stream.is_busy()) {
            return;
        }
        self.contexts.remove(&context);
        self.streams.retain(|_, stream| stream.context != context);
        // Memory of a pool is the pool's.
        let of = |live: &crate::memory::Allocation| live.context == context && live.pool().is_none();
        let owned = self.allocations.iter().filter(|(_, live)| of(live));
        let owned: Vec<usize> = owned.map(|(address, _)| *address).collect();
        owned.into_iter().for_each(|address| self.release(address));
    }
}
