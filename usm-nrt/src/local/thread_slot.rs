//! The place of the calling thread's data: one pointer per thread.
//!
//! A library calls `__tls_get_addr` for each of its thread-local variables, which takes 2.5 ns; a
//! block would pay that twice. Four alternatives were measured on x86-64. A handle that compiled
//! code keeps does not help code that knows only Numba's table. The *initial-exec* model is the
//! fastest, but once many libraries use it the next one cannot be loaded ("cannot allocate memory
//! in static TLS block"). *Descriptors* (TLSDESC) always load, and cost 1.1 ns.
//!
//! This module combines the last two. The descriptor's first answer tells whether the variable lies
//! at the same distance from the thread pointer in all threads, as it does while there is room.
//! That distance is then used directly, as fast as initial-exec. Compilers do something similar on
//! aarch64 by themselves; on x86-64 rustc has no stable switch for descriptors, so these few lines
//! are written in assembly.

use super::thread::Local;

/// The calling thread's data. Null before the thread has any and after it freed them; null also if
/// finding them takes a call.
#[inline(always)]
pub(super) fn get() -> *const Local {
    cell::get()
}

/// [`get`] that makes the call if it is needed.
pub(super) fn find() -> *const Local {
    cell::find()
}

pub(super) fn set(local: *const Local) {
    cell::set(local);
}

#[cfg(not(all(
    usm_nrt_export,
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(miri)
)))]
mod cell {
    use core::cell::Cell;
    use core::ptr;
    use std::thread_local;

    use super::Local;

    thread_local! {
        static HERE: Cell<*const Local> = const { Cell::new(ptr::null()) };
    }

    #[inline(always)]
    pub(super) fn get() -> *const Local {
        HERE.get()
    }

    pub(super) fn find() -> *const Local {
        get()
    }

    pub(super) fn set(local: *const Local) {
        HERE.set(local);
    }
}

#[cfg(all(
    usm_nrt_export,
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(miri)
))]
mod cell {
    use core::arch::{asm, global_asm};
    use core::sync::atomic::{AtomicIsize, Ordering};

    use super::Local;

    // Eight zero bytes in every thread. Hidden: only this library sees the symbol.
    global_asm!(
        ".pushsection .tbss.usm_nrt_thread_slot,\"awT\",@nobits",
        ".p2align 3",
        ".hidden usm_nrt_thread_slot",
        ".globl usm_nrt_thread_slot",
        ".type usm_nrt_thread_slot, @object",
        ".size usm_nrt_thread_slot, 8",
        "usm_nrt_thread_slot: .zero 8",
        ".popsection",
        options(att_syntax)
    );

    /// Bytes from the thread pointer to the variable if equal in all threads; otherwise 0.
    static DISTANCE: AtomicIsize = AtomicIsize::new(0);

    #[inline(always)]
    pub(super) fn get() -> *const Local {
        let distance = DISTANCE.load(Ordering::Relaxed);
        if distance == 0 {
            return core::ptr::null();
        }
        // SAFETY: the distance is the same in all threads.
        unsafe { load(distance) }
    }

    pub(super) fn find() -> *const Local {
        // SAFETY: the distance is this thread's.
        unsafe { load(query_offset()) }
    }

    /// # Safety
    /// `distance` is the distance in bytes from the thread pointer to the variable.
    #[inline(always)]
    unsafe fn load(distance: isize) -> *const Local {
        let local: *const Local;
        // SAFETY: the variable of this thread, as the caller promises.
        unsafe {
            asm!("movq %fs:({0}), {1}", in(reg) distance, lateout(reg) local,
                options(att_syntax, nostack, readonly, preserves_flags));
        }
        local
    }

    pub(super) fn set(local: *const Local) {
        // SAFETY: as above.
        unsafe {
            asm!("movq {1}, %fs:({0})", in(reg) query_offset(), in(reg) local, options(att_syntax, nostack, preserves_flags));
        }
    }

    /// Bytes from the thread pointer to the calling thread's variable.
    #[cold]
    #[inline(never)]
    fn query_offset() -> isize {
        let (descriptor, distance): (isize, isize);
        // SAFETY: the two instructions of the descriptor protocol, in the form that linkers expect.
        // They change no other general register. Older C libraries clobber vector registers when
        // they allocate a thread's variables.
        unsafe {
            asm!(
                "leaq usm_nrt_thread_slot@tlsdesc(%rip), %rax",
                "movq %rax, {descriptor}",
                "call *usm_nrt_thread_slot@tlscall(%rax)",
                descriptor = out(reg) descriptor,
                out("rax") distance,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(att_syntax)
            );
        }
        // An address in a program is never negative; a distance to a variable at a fixed place
        // always is. In a statically linked program the linker writes the distance in place of the
        // descriptor's address.
        let stored_distance = if descriptor < 0 {
            descriptor
        } else {
            // A descriptor is a function and its argument, which stays constant after the first
            // use. The argument is the distance, or the address of the data that finds a variable
            // whose place differs between threads.
            let argument = core::ptr::with_exposed_provenance::<[isize; 2]>(descriptor as usize);
            // SAFETY: the two words of a descriptor of this library, aligned by the linker and
            // written before this thread could call it.
            let [_, argument] = unsafe { argument.read_volatile() };
            argument
        };
        if stored_distance < 0 && stored_distance == distance {
            DISTANCE.store(distance, Ordering::Relaxed);
        }
        distance
    }
}
