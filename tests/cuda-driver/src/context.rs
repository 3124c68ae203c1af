//! Devices, contexts, and the current context of each thread.

use alloc::collections::BTreeSet;
use core::cell::RefCell;

use crate::code::{Answer, CONTEXT_IS_DESTROYED, Code, INVALID_CONTEXT, INVALID_DEVICE, OUT_OF_MEMORY};
use crate::state::State;
use crate::worker;

/// A device, its primary context, and the number of retains.
#[derive(Debug, Default)]
pub(crate) struct Device {
    pub(crate) primary: Option<usize>,
    pub(crate) holders: u32,
    /// Whether the host cannot access the device's managed memory now.
    pub(crate) works: bool,
}

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) device: usize,
    /// The sticky error: every call in the context returns it after a failure.
    pub(crate) failed: Option<Code>,
    /// The context was destroyed, but its work continues.
    pub(crate) closing: bool,
    /// Contexts whose memory this one can access.
    pub(crate) peers: BTreeSet<usize>,
    /// The default streams: the legacy one, which blocks others, and the per-thread one.
    pub(crate) defaults: [usize; 2],
}

/// The contexts of a thread, the current one last. It has no heap memory, so a thread that ends
/// leaks nothing. It has no destructor, because exit handlers call the driver after the main
/// thread's variables are destroyed.
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

/// Runs `body` on the context stack of this thread.
pub(crate) fn stack<R>(body: impl FnOnce(&mut Stack) -> R) -> R {
    CURRENT.with(|stack| body(&mut stack.borrow_mut()))
}

impl State {
    /// The device of a handle.
    pub(crate) fn device(&mut self, device: i32) -> Answer<&mut Device> {
        usize::try_from(device).ok().and_then(|index| self.devices.get_mut(index)).ok_or(INVALID_DEVICE)
    }

    /// A context without a sticky error.
    pub(crate) fn context(&self, context: usize) -> Answer<&Context> {
        let found = self.contexts.get(&context).filter(|found| !found.closing).ok_or(CONTEXT_IS_DESTROYED)?;
        found.failed.map_or(Ok(found), Err)
    }

    /// Whether a context is open; it may have a sticky error.
    pub(crate) fn is_open(&self, context: usize) -> bool {
        self.contexts.get(&context).is_some_and(|found| !found.closing)
    }

    /// The current context of this thread, if it has no sticky error.
    pub(crate) fn current(&self) -> Answer<usize> {
        let current = stack(|stack| stack.last()).filter(|current| *current != 0);
        let current = current.ok_or(INVALID_CONTEXT)?;
        self.context(current).map(|_| current)
    }

    /// Creates a context on a device.
    pub(crate) fn create_context(&mut self, device: usize) -> usize {
        let context = self.number();
        let defaults = [true, false].map(|waits| self.create_stream(context, waits));
        self.contexts.insert(
            context,
            Context { device, failed: None, closing: false, peers: BTreeSet::new(), defaults },
        );
        context
    }

    /// Invalidates a context's handle and the handles of its objects. Its work continues, and its
    /// memory is freed when that completes.
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

    /// Removes a destroyed context that has no work left.
    pub(crate) fn close_context(&mut self, context: usize) {
        let closing = self.contexts.get(&context).is_some_and(|found| found.closing);
        if !closing || self.streams.values().any(|stream| stream.context == context && stream.is_busy()) {
            return;
        }
        self.contexts.remove(&context);
        self.streams.retain(|_, stream| stream.context != context);
        // Memory of a pool belongs to the pool, not to the context.
        let of = |live: &crate::memory::Allocation| live.context == context && live.pool().is_none();
        let owned = self.allocations.iter().filter(|(_, live)| of(live));
        let owned: Vec<usize> = owned.map(|(address, _)| *address).collect();
        owned.into_iter().for_each(|address| self.release(address));
    }
}
