//! What both host backends share: operations done at once by the calling thread.

use core::ptr;

use super::HostEvent;

/// # Safety
/// As [`Backend::copy`](crate::backend::Backend::copy).
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) -> HostEvent {
    // SAFETY: the caller's promise: live, disjoint, no conflicting access.
    unsafe { ptr::copy_nonoverlapping(src, dst, len) };
    HostEvent
}

/// # Safety
/// As [`Backend::fill`](crate::backend::Backend::fill).
pub(super) unsafe fn fill(dst: *mut u8, pattern: &[u8], len: usize) -> HostEvent {
    if let [byte] = pattern {
        // SAFETY: the caller's promise.
        unsafe { dst.write_bytes(*byte, len) };
        return HostEvent;
    }
    for start in (0..len).step_by(pattern.len()) {
        let place = dst.wrapping_add(start);
        // SAFETY: `len` is a multiple of the width, so each copy stays inside the caller's range; a pattern is the caller's own bytes, which
        // no device memory has.
        unsafe { ptr::copy_nonoverlapping(pattern.as_ptr(), place, pattern.len()) };
    }
    HostEvent
}

/// The parts of [`Backend`](crate::backend::Backend) and of its abilities that do not depend on where host memory comes
/// from.
macro_rules! synchronous_backend {
    () => {
        const SYNCHRONOUS: bool = true;

        type Queue = HostQueue;
        type Event = HostEvent;
        type Buffers = Self;
        type HostTasks = Self;
        type Advice = Self;
        type Ipc = crate::backend::Unsupported;
        type Peer = Self;
        type QueueMemory = crate::backend::Unsupported;

        fn create_queue(_: &Self::Context, _: QueueOrder) -> Result<HostQueue> {
            Ok(HostQueue)
        }

        unsafe fn copy(
            _: &HostQueue,
            dst: *mut u8,
            src: *const u8,
            len: usize,
            _: &[HostEvent],
        ) -> Result<HostEvent> {
            // SAFETY: the caller's promise.
            Ok(unsafe { synchronous::copy(dst, src, len) })
        }

        unsafe fn fill(
            _: &HostQueue,
            dst: *mut u8,
            pattern: &[u8],
            len: usize,
            _: &[HostEvent],
        ) -> Result<HostEvent> {
            // SAFETY: the caller's promise.
            Ok(unsafe { synchronous::fill(dst, pattern, len) })
        }

        unsafe fn barrier(_: &HostQueue, _: &[HostEvent]) -> Result<HostEvent> {
            Ok(HostEvent)
        }

        fn status(_: &HostEvent) -> Result<EventStatus> {
            Ok(EventStatus::Complete)
        }

        fn wait(_: &HostEvent, _: Duration) -> Result<()> {
            Ok(())
        }

        fn synchronize(_: &Self::Context, _: Duration) -> Result<()> {
            Ok(())
        }

        fn for_each_pending(_: &Self::Context, _: Duration, _: &mut dyn FnMut(HostEvent)) -> Result<()> {
            Ok(())
        }
    };
}

macro_rules! synchronous_abilities {
    (($($generics:tt)*) $backend:ty) => {
        impl<$($generics)*> Buffers<$backend> for $backend {
            type Raw = HostBuffer;

            fn create(context: &<$backend as Backend>::Context, size: usize) -> Result<HostBuffer> {
                let layout = crate::Request::new(BUFFER_KIND, size).layout()?;
                let pointer = <$backend>::allocate(context, BUFFER_KIND, layout)?;
                // SAFETY: fresh memory of that size.
                unsafe { pointer.as_ptr().write_bytes(0, size) };
                Ok(HostBuffer {
                    block: Block { pointer, size, alignment: layout.align(), kind: BUFFER_KIND },
                })
            }

            fn place(raw: &HostBuffer) -> (usize, usize) {
                (raw.block.address(), 0)
            }

            unsafe fn destroy(context: &<$backend as Backend>::Context, raw: HostBuffer) {
                // SAFETY: allocated by `create`; the caller promises that nothing uses it.
                unsafe { <$backend>::free(context, &raw.block) };
            }

            unsafe fn write(
                _: &HostQueue,
                raw: &HostBuffer,
                offset: usize,
                src: *const u8,
                len: usize,
                _: &[HostEvent],
            ) -> Result<HostEvent> {
                let dst = raw.block.pointer.as_ptr().wrapping_add(offset);
                // SAFETY: the caller's promise.
                Ok(unsafe { synchronous::copy(dst, src, len) })
            }

            unsafe fn read(
                _: &HostQueue,
                raw: &HostBuffer,
                offset: usize,
                dst: *mut u8,
                len: usize,
                _: &[HostEvent],
            ) -> Result<HostEvent> {
                let src = raw.block.pointer.as_ptr().wrapping_add(offset);
                // SAFETY: the caller's promise.
                Ok(unsafe { synchronous::copy(dst, src, len) })
            }

            unsafe fn fill(
                _: &HostQueue,
                raw: &HostBuffer,
                offset: usize,
                pattern: &[u8],
                len: usize,
                _: &[HostEvent],
            ) -> Result<HostEvent> {
                let dst = raw.block.pointer.as_ptr().wrapping_add(offset);
                // SAFETY: the caller's promise.
                Ok(unsafe { synchronous::fill(dst, pattern, len) })
            }

            unsafe fn copy(
                _: &HostQueue,
                (dst, to): (&HostBuffer, usize),
                (src, from): (&HostBuffer, usize),
                len: usize,
                _: &[HostEvent],
            ) -> Result<HostEvent> {
                let dst = dst.block.pointer.as_ptr().wrapping_add(to);
                let src = src.block.pointer.as_ptr().wrapping_add(from);
                // SAFETY: the caller's promise.
                Ok(unsafe { synchronous::copy(dst, src, len) })
            }
        }

        impl<$($generics)*> HostTasks<$backend> for $backend {
            unsafe fn run<F: FnOnce() + Send + 'static>(
                _: &HostQueue,
                _: &[HostEvent],
                task: F,
            ) -> Result<HostEvent> {
                task();
                Ok(HostEvent)
            }
        }

        /// There is one device, the machine, and all of its memory is its own.
        impl<$($generics)*> crate::backend::Peer<$backend> for $backend {
            unsafe fn can_access(
                _: &<$backend as Backend>::Context,
                _: &<$backend as Backend>::Context,
            ) -> Result<bool> {
                Ok(true)
            }

            unsafe fn enable(
                _: &<$backend as Backend>::Context,
                _: &<$backend as Backend>::Context,
            ) -> Result<()> {
                Ok(())
            }

            unsafe fn disable(
                _: &<$backend as Backend>::Context,
                _: &<$backend as Backend>::Context,
            ) -> Result<()> {
                Ok(())
            }
        }

        impl<$($generics)*> Advice<$backend> for $backend {
            unsafe fn prefetch(_: &HostQueue, _: *const u8, _: usize, _: &[HostEvent]) -> Result<HostEvent> {
                Ok(HostEvent)
            }

            unsafe fn advise(
                _: &HostQueue,
                _: *const u8,
                _: usize,
                _: MemAdvice,
                _: &[HostEvent],
            ) -> Result<HostEvent> {
                Ok(HostEvent)
            }
        }
    };
}

pub(super) use {synchronous_abilities, synchronous_backend};
