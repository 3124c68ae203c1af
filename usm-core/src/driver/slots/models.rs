//! Models of threads that take, copy and drop handles, under all interleavings.

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;

/// Stands for a driver's event: threads may read it concurrently, but only the owner of the only
/// handle may change it.
struct Object {
    uses: UnsafeCell<u32>,
    /// True until it is dropped.
    _life: Arc<()>,
}

// SAFETY: loom fails a model where two accesses are not ordered.
unsafe impl Sync for Object {}
// SAFETY: as above.
unsafe impl Send for Object {}

impl Object {
    fn new(life: &Arc<()>) -> Self {
        Self { uses: UnsafeCell::new(0), _life: Arc::clone(life) }
    }

    fn look(&self) -> u32 {
        // SAFETY: loom fails the model if a change is not ordered before or after this.
        self.uses.with(|uses| unsafe { *uses })
    }

    /// Changes the value, as the next operation does.
    fn begin(&self) {
        // SAFETY: loom fails the model if another access is not ordered before or after this.
        self.uses.with_mut(|uses| unsafe { *uses += 1 });
    }
}

/// Slots and a value with this many handles. Uses each object once, because this thread must make
/// loom's objects.
fn slots<const N: usize>() -> (Slots<Object>, [SlotHandle<Object>; N], Arc<()>) {
    let (slots, life) = (Slots::new(), Arc::new(()));
    let object = slots.add(Object::new(&life));
    object.begin();
    drop(object.clone());
    drop(object);
    let object = slots.take().expect("free");
    let handles = core::array::from_fn(|_| object.clone());
    drop(object);
    (slots, handles, life)
}

fn objects(life: &Arc<()>) -> usize {
    Arc::strong_count(life) - 1
}

/// All interleavings of two threads; of three threads, those with at most three forced switches.
fn model(bound: Option<usize>, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.check(run);
}

#[test]
fn one_of_two_last_handles_puts_the_object_back() {
    model(None, || {
        let (slots, [one, two], life) = slots();
        let thread = thread::spawn(move || drop(one));
        drop(two);
        thread.join().expect("no panic");
        let again = slots.take().expect("put back");
        assert!(slots.take().is_none(), "once");
        again.begin();
        drop(again);
        assert_eq!(objects(&life), 1);
        drop(slots);
        assert_eq!(objects(&life), 0);
    });
}

#[test]
fn of_three_too() {
    model(Some(3), || {
        let (slots, [one, two, three], life) = slots();
        let threads = [one, two].map(|handle| {
            thread::spawn(move || {
                assert_eq!(handle.look(), 1);
                drop(handle);
            })
        });
        drop(three);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        slots.take().expect("put back").begin();
        drop(slots);
        assert_eq!(objects(&life), 0);
    });
}

/// All accesses to a value come before those of its next user, whichever handle was dropped last.
#[test]
fn an_object_is_reused_after_its_last_handle() {
    model(None, || {
        let (slots, [one, two], _) = slots();
        let thread = thread::spawn(move || {
            assert_eq!(one.look(), 1);
            drop(one);
        });
        assert_eq!(two.look(), 1);
        drop(two);
        if let Some(again) = slots.take() {
            again.begin();
        }
        thread.join().expect("no panic");
    });
}

/// One thread copies a handle while another drops its own.
#[test]
fn a_copy_keeps_the_object() {
    model(None, || {
        let (slots, [one, two], life) = slots();
        let thread = thread::spawn(move || {
            let copy = one.clone();
            drop(one);
            assert_eq!(copy.look(), 1);
        });
        drop(two);
        if let Some(again) = slots.take() {
            again.begin();
        }
        thread.join().expect("no panic");
        assert_eq!(objects(&life), 1);
    });
}

#[test]
fn two_that_take_never_have_the_same() {
    model(Some(3), || {
        let (slots, [one], life) = slots();
        let slots = Arc::new(slots);
        let next = |slots: &Slots<Object>, life: &Arc<()>| {
            let next = slots.take().unwrap_or_else(|| slots.add(Object::new(life)));
            next.begin();
            next
        };
        let taker = {
            let (slots, life) = (Arc::clone(&slots), Arc::clone(&life));
            thread::spawn(move || drop(next(&slots, &life)))
        };
        let dropper = thread::spawn(move || {
            assert_eq!(one.look(), 1);
            drop(one);
        });
        drop(next(&slots, &life));
        dropper.join().expect("no panic");
        taker.join().expect("no panic");
        let Ok(slots) = Arc::try_unwrap(slots) else { panic!("the taker let go") };
        assert!((1..=3).contains(&objects(&life)));
        drop(slots);
        assert_eq!(objects(&life), 0);
    });
}

/// The context is dropped concurrently with the last handle: one of them drops the value, once, and
/// the home with it.
#[test]
fn an_object_put_back_while_its_slots_are_dropped_is_dropped_once() {
    model(None, || {
        let (slots, [one, two], life) = slots();
        let home = Arc::downgrade(&slots.0);
        let closer = thread::spawn(move || drop(slots));
        drop(one);
        assert_eq!(objects(&life), 1, "a handle is left");
        assert_eq!(two.look(), 1);
        drop(two);
        closer.join().expect("no panic");
        assert_eq!(objects(&life), 0);
        assert!(home.upgrade().is_none(), "nothing keeps the home");
    });
}

#[test]
fn handles_keep_the_home_that_they_go_to() {
    model(Some(3), || {
        let (slots, [one], life) = slots();
        let other = slots.add(Object::new(&life));
        drop(other.clone());
        let home = Arc::downgrade(&slots.0);
        let threads = [one, other].map(|handle| thread::spawn(move || drop(handle)));
        drop(slots);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(objects(&life), 0);
        assert!(home.upgrade().is_none(), "nothing keeps the home");
    });
}
