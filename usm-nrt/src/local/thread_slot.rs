//! Where the calling thread's things are: one pointer per thread.
//!
//! A library asks `__tls_get_addr` for each of its thread-local variables, at 2.5 ns a time; a
//! block would pay that twice. Four ways around it were measured on x86-64. A handle that compiled
//! code keeps does not help code that knows Numba's table only. The *initial-exec* model is the
//! fastest, but where many libraries use it the next one cannot be loaded ("cannot allocate memory
//! in static TLS block"). *Descriptors* (TLSDESC) always load, and cost 1.1 ns. So: a descriptor to
//! begin with, which tells whether the variable lies at one distance from the thread pointer in all
//! threads, as it does while there is room; if so that distance is used from then on, as fast as
//! initial-exec. Compilers do the like on aarch64 by themselves; on x86-64 rustc has no stable
//! switch for descriptors, so these few lines are written out.

use super::thread::Local;

/// The calling thread's things, or null before the thread had any and after it gave them up; null
/// also where it takes a call to find them.
#[inline(always)]
pub(super) fn get() -> *const Local {
    cell::get()
}

/// [`get`] that finds them anyway.
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

    // Eight zero bytes in every thread. Hidden: of this library alone.
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

    /// Bytes from the thread pointer to the variable, when they are the same in all threads;
    /// else 0.
    static DISTANCE: AtomicIsize = AtomicIsize::new(0);

    #[inline(always)]
    pub(super) fn get() -> *const Local {
        let distance = DISTANCE.load(Ordering::Relaxed);
        if distance == 0 {
            return core::ptr::null();
        }
        // SAFETY: the distance in all threads.
        unsafe { load(distance) }
    }

    pub(super) fn find() -> *const Local {
        // SAFETY: the distance in this thread.
        unsafe { load(ask()) }
    }

    /// # Safety
    /// `distance` leads from the thread pointer to the variable.
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
            asm!("movq {1}, %fs:({0})", in(reg) ask(), in(reg) local, options(att_syntax, nostack, preserves_flags));
        }
    }

    /// Bytes from the thread pointer to the calling thread's variable.
    #[cold]
    #[inline(never)]
    fn ask() -> isize {
        let (descriptor, distance): (isize, isize);
        // SAFETY: the two instructions of the descriptor protocol, as linkers expect them. They
        // change no other general register; older C libraries forget vector registers when they
        // make the variables of a thread.
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
        // Addresses of programs are never negative, distances to variables at fixed places always.
        // In a program that links statically the linker puts the distance where the address of the
        // descriptor would be.
        let known = if descriptor < 0 {
            descriptor
        } else {
            // A descriptor is a function and its argument, which does not change once it was used.
            // The argument is the distance, or the address of what it takes to find a variable that
            // lies elsewhere in each thread.
            let argument = core::ptr::with_exposed_provenance::<[isize; 2]>(descriptor as usize);
            // SAFETY: the two words of a descriptor of this library, aligned by the linker; written
            // before this thread could ask.
            let [_, argument] = unsafe { argument.read_volatile() };
            argument
        };
        if known < 0 && known == distance {
            DISTANCE.store(distance, Ordering::Relaxed);
        }
        distance
    }
}
