//! Models of a device that runs commands while queues append them: events are reused, and lists
//! destroyed, only when no command refers to them. The events are in
//! [`slots`](usm_core::driver::slots), like the driver's.

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use core::time::Duration;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::*;
use usm_core::Error;
use usm_core::backend::EventStatus;
use usm_core::driver::slots::{SlotHandle, Slots};
use usm_core::driver::sync::Mutex;
use usm_core::driver::{After, Deadline};

/// A location that the device writes to, and how many commands refer to it: those that wait for it
/// and the one that signals it.
#[derive(Debug)]
struct Place {
    complete: AtomicBool,
    referred: AtomicUsize,
}

impl Place {
    fn new() -> Arc<Self> {
        Arc::new(Self { complete: AtomicBool::new(false), referred: AtomicUsize::new(0) })
    }

    fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }
}

#[derive(Clone, Debug)]
struct Event(SlotHandle<Arc<Place>>);

impl EventOps for Event {
    fn status(&self) -> usm_core::Result<EventStatus> {
        Ok(if self.0.is_complete() { EventStatus::Complete } else { EventStatus::Pending })
    }

    fn wait(&self, limit: Duration) -> usm_core::Result<()> {
        if self.is_complete() { Ok(()) } else { Err(Error::timeout(limit)) }
    }
}

impl Event {
    fn handle(&self) -> Arc<Place> {
        Arc::clone(&self.0)
    }

    fn handle_to_wait_for(&self) -> Option<Arc<Place>> {
        (!self.is_complete()).then(|| self.handle())
    }
}

type Work = super::Work<Event, Arc<Place>>;

struct Command {
    signal: Arc<Place>,
    waits: Vec<Arc<Place>>,
}

/// A device with its events.
struct Device {
    commands: Mutex<VecDeque<Command>>,
    events: Slots<Arc<Place>>,
}

impl Device {
    /// Uses the lock once and makes an event, because this thread must make loom's objects.
    fn new() -> Arc<Self> {
        let device = Arc::new(Self { commands: Mutex::new(VecDeque::new()), events: Slots::new() });
        assert!(!device.step());
        drop(device.event());
        device
    }

    /// An event for the next operation.
    fn event(&self) -> Event {
        let Some(used) = self.events.take() else { return Event(self.events.add(Place::new())) };
        // The driver's condition for a reset.
        assert_eq!(used.referred.load(Ordering::Acquire), 0, "commands still refer to the event");
        used.complete.store(false, Ordering::Release);
        Event(used)
    }

    fn append(&self, signal: Arc<Place>, waits: Vec<Arc<Place>>) {
        for place in waits.iter().chain([&signal]) {
            place.referred.fetch_add(1, Ordering::AcqRel);
        }
        self.commands.lock().push_back(Command { signal, waits });
    }

    /// Runs the last ready command, because the list is out of order.
    fn step(&self) -> bool {
        let mut commands = self.commands.lock();
        let ready =
            commands.iter().rposition(|command| command.waits.iter().all(|place| place.is_complete()));
        let Some(command) = ready.and_then(|index| commands.remove(index)) else { return false };
        drop(commands);
        for place in command.waits {
            place.referred.fetch_sub(1, Ordering::AcqRel);
        }
        let Place { complete, referred } = &*command.signal;
        referred.fetch_sub(1, Ordering::AcqRel);
        assert!(!complete.swap(true, Ordering::AcqRel), "the event belongs to another operation");
        true
    }
}

/// Submits an operation as `queue.rs` does.
fn submit(device: &Device, work: &mut Work, after: &[Event], follows: bool) -> Event {
    work.sweep();
    let event = device.event();
    let signal = event.handle();
    let appended = work.append(&event, after, follows, Event::handle_to_wait_for, |waits| {
        device.append(signal, waits.to_vec());
        Ok::<_, ()>(())
    });
    appended.expect("the device accepts all commands");
    event
}

/// Three forced switches for three threads, all interleavings for two.
fn model(threads: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = (threads > 2).then_some(3);
    builder.check(run);
}

/// An in-order queue over an out-of-order list while the device runs; only the queue has the
/// events.
#[test]
fn an_event_is_given_away_when_no_command_refers_to_it() {
    model(2, || {
        let (device, mut work) = (Device::new(), Work::new());
        drop(submit(&device, &mut work, &[], true));
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || {
            running.step();
            running.step();
        });
        drop(submit(&device, &mut work, &[], true));
        drop(submit(&device, &mut work, &[], true));
        runner.join().expect("no panic");
        while device.step() {}
        drop(submit(&device, &mut work, &[], true));
        while device.step() {}
        work.sweep();
        assert_eq!(work.kept_events(), 0);
    });
}

#[test]
fn an_in_order_queue_is_in_order() {
    model(2, || {
        let (device, mut work) = (Device::new(), Work::new());
        let first = submit(&device, &mut work, &[], true);
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || running.step());
        let second = submit(&device, &mut work, &[], true);
        device.step();
        assert!(first.is_complete() || !second.is_complete());
        runner.join().expect("no panic");
    });
}

/// An operation that finished after an unfinished one does not release the latter's event.
#[test]
fn an_out_of_order_queue_keeps_unfinished_operations() {
    model(2, || {
        let (device, mut work) = (Device::new(), Work::new());
        drop(submit(&device, &mut work, &[], false));
        drop(submit(&device, &mut work, &[], false));
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || running.step());
        drop(submit(&device, &mut work, &[], false));
        drop(submit(&device, &mut work, &[], false));
        runner.join().expect("no panic");
        while device.step() {}
        work.sweep();
        assert_eq!(work.kept_events(), 0);
    });
}

/// A queue waits for an operation of another queue while the program drops that event.
#[test]
fn events_of_another_queue_are_kept_while_it_waits() {
    model(3, || {
        let (device, mut first, mut second) = (Device::new(), Work::new(), Work::new());
        let before = submit(&device, &mut first, &[], false);
        drop(before.clone());
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || {
            running.step();
            running.step();
        });
        let submitting = Arc::clone(&device);
        let submitter = thread::spawn(move || {
            let behind = submit(&submitting, &mut second, core::slice::from_ref(&before), false);
            drop(before);
            drop(behind);
            second
        });
        drop(submit(&device, &mut first, &[], false));
        let mut second = submitter.join().expect("no panic");
        runner.join().expect("no panic");
        drop(submit(&device, &mut first, &[], false));
        while device.step() {}
        first.sweep();
        second.sweep();
        assert_eq!((first.kept_events(), second.kept_events()), (0, 0));
    });
}

/// The event of a refused operation is not kept; its predecessor's still is.
#[test]
fn a_refused_operation_leaves_everything_as_it_was() {
    model(2, || {
        let (device, mut work) = (Device::new(), Work::new());
        drop(submit(&device, &mut work, &[], true));
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || running.step());
        let event = device.event();
        let kept = work.kept_events();
        assert_eq!(work.append(&event, &[], true, Event::handle_to_wait_for, |_| Err::<(), _>(7)), Err(7));
        assert_eq!((work.kept_events(), work.last().is_some()), (kept, true));
        drop(event);
        drop(submit(&device, &mut work, &[], true));
        runner.join().expect("no panic");
        while device.step() {}
        work.sweep();
        assert_eq!(work.kept_events(), 0);
    });
}

/// A list that must not be destroyed before its work has finished.
struct List(Arc<Place>, Arc<AtomicUsize>);

impl Drop for List {
    fn drop(&mut self) {
        assert!(self.0.is_complete(), "its commands are running");
        self.1.fetch_add(1, Ordering::AcqRel);
    }
}

type Left = After<DroppedQueue<List, Event, Arc<Place>>, Event>;

/// Drops a queue as `queue.rs` does.
fn drop_queue(dropped_queues: &Left, list: List, work: Work) {
    let operations = work.operations();
    dropped_queues.push(DroppedQueue { work, list }, operations);
    dropped_queues.collect(drop);
}

/// The list and the work of a dropped queue with one running operation.
fn left(device: &Device, destroyed: &Arc<AtomicUsize>) -> (List, Work) {
    let mut work = Work::new();
    let event = submit(device, &mut work, &[], false);
    (List(event.handle(), Arc::clone(destroyed)), work)
}

#[test]
fn a_list_is_destroyed_once_and_after_its_work() {
    model(3, || {
        let (device, dropped_queues) = (Device::new(), Arc::new(Left::new()));
        dropped_queues.drain(&mut Deadline::after(Duration::ZERO), drop, |_| ());
        let destroyed = Arc::new(AtomicUsize::new(0));
        let (list, work) = left(&device, &destroyed);
        let other = left(&device, &destroyed);
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || while running.step() {});
        let parker = {
            let dropped_queues = Arc::clone(&dropped_queues);
            thread::spawn(move || drop_queue(&dropped_queues, other.0, other.1))
        };
        drop_queue(&dropped_queues, list, work);
        parker.join().expect("no panic");
        runner.join().expect("no panic");
        dropped_queues.collect(drop);
        assert_eq!((destroyed.load(Ordering::Acquire), dropped_queues.len()), (2, 0));
    });
}

/// The context is dropped: unfinished queues are leaked with their events.
#[test]
fn a_list_with_unfinished_work_is_leaked_with_its_events() {
    model(2, || {
        let (device, dropped_queues) = (Device::new(), Left::new());
        let destroyed = Arc::new(AtomicUsize::new(0));
        let (list, work) = left(&device, &destroyed);
        drop_queue(&dropped_queues, list, work);
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || running.step());
        let leaked = RefCell::new(Vec::new());
        let give_up = |queue| leaked.borrow_mut().push(ManuallyDrop::into_inner(queue));
        dropped_queues.drain(&mut Deadline::after(Duration::ZERO), drop, give_up);
        let leaked = leaked.into_inner();
        assert_eq!(leaked.len() + destroyed.load(Ordering::Acquire), 1);
        // The event of a leaked queue is not reused.
        let next = device.event();
        for queue in &leaked {
            assert!(!Arc::ptr_eq(&queue.list.0, &next.handle()));
        }
        assert!(runner.join().expect("no panic"));
        drop(leaked);
        assert_eq!(destroyed.load(Ordering::Acquire), 1);
        // Finished queues are destroyed.
        let (list, work) = left(&device, &destroyed);
        drop_queue(&dropped_queues, list, work);
        assert!(device.step());
        dropped_queues.drain(&mut Deadline::after(Duration::ZERO), drop, |_| panic!("it is done"));
        assert_eq!(destroyed.load(Ordering::Acquire), 2);
    });
}
