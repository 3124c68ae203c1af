//! A device that runs commands while queues append them: events are given to other operations, and
//! lists are destroyed, only when no command refers to them any more. Events are those of
//! [`slots`](usm_core::driver::slots), as the driver's are.

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use core::time::Duration;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::*;
use usm_core::Error;
use usm_core::backend::EventStatus;
use usm_core::driver::After;
use usm_core::driver::Deadline;
use usm_core::driver::slots::{SlotHandle, Slots};
use usm_core::driver::sync::Mutex;

/// A place that the device writes to, and how many of its commands refer to it: those that wait for
/// it, and the one that signals it.
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

    fn awaited(&self) -> Option<Arc<Place>> {
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
    /// Its lock was used once, and there is an event: loom's objects are made by this thread.
    fn new() -> Arc<Self> {
        let device = Arc::new(Self { commands: Mutex::new(VecDeque::new()), events: Slots::new() });
        assert!(!device.step());
        drop(device.event());
        device
    }

    /// An event for the next operation.
    fn event(&self) -> Event {
        let Some(used) = self.events.take() else { return Event(self.events.add(Place::new())) };
        // As the driver demands of who resets one.
        assert_eq!(used.referred.load(Ordering::Acquire), 0, "commands refer to the operation before");
        used.complete.store(false, Ordering::Release);
        Event(used)
    }

    fn append(&self, signal: Arc<Place>, waits: Vec<Arc<Place>>) {
        for place in waits.iter().chain([&signal]) {
            place.referred.fetch_add(1, Ordering::AcqRel);
        }
        self.commands.lock().push_back(Command { signal, waits });
    }

    /// Runs the last command that may run: nothing is in order by itself.
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
        assert!(!complete.swap(true, Ordering::AcqRel), "the event was given to another operation");
        true
    }
}

/// An operation as `queue.rs` submits it.
fn submit(device: &Device, work: &mut Work, after: &[Event], follows: bool) -> Event {
    work.sweep();
    let event = device.event();
    let signal = event.handle();
    let appended = work.append(&event, after, follows, Event::awaited, |waits| {
        device.append(signal, waits.to_vec());
        Ok::<_, ()>(())
    });
    appended.expect("the device takes everything");
    event
}

/// Three forced switches between three threads, all between two.
fn model(threads: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = (threads > 2).then_some(3);
    builder.check(run);
}

/// An in-order queue of a list that is not, while the device runs: nobody but the queue has the
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
        assert_eq!(work.kept(), 0);
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

/// What has finished behind an operation that has not gives nothing of that one back.
#[test]
fn an_out_of_order_queue_keeps_what_goes_on() {
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
        assert_eq!(work.kept(), 0);
    });
}

/// A queue waits for the operation of another one, whose program lets go of it meanwhile.
#[test]
fn what_another_queue_waits_for_is_kept_by_it() {
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
        assert_eq!((first.kept(), second.kept()), (0, 0));
    });
}

/// What was refused is not kept, and what it would have followed still is.
#[test]
fn a_refused_operation_leaves_everything_as_it_was() {
    model(2, || {
        let (device, mut work) = (Device::new(), Work::new());
        drop(submit(&device, &mut work, &[], true));
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || running.step());
        let event = device.event();
        let kept = work.kept();
        assert_eq!(work.append(&event, &[], true, Event::awaited, |_| Err::<(), _>(7)), Err(7));
        assert_eq!((work.kept(), work.last().is_some()), (kept, true));
        drop(event);
        drop(submit(&device, &mut work, &[], true));
        runner.join().expect("no panic");
        while device.step() {}
        work.sweep();
        assert_eq!(work.kept(), 0);
    });
}

/// A list, which may not be destroyed before its work has finished.
struct List(Arc<Place>, Arc<AtomicUsize>);

impl Drop for List {
    fn drop(&mut self) {
        assert!(self.0.is_complete(), "commands of it are under way");
        self.1.fetch_add(1, Ordering::AcqRel);
    }
}

type Left = After<Parked<List, Event, Arc<Place>>, Event>;

/// As a queue does that goes.
fn park(parking: &Left, list: List, work: Work) {
    let operations = work.operations();
    parking.push(Parked { work, list }, operations);
    parking.collect(drop);
}

/// Of a queue that is gone: its list, its work, whose one operation is under way.
fn left(device: &Device, destroyed: &Arc<AtomicUsize>) -> (List, Work) {
    let mut work = Work::new();
    let event = submit(device, &mut work, &[], false);
    (List(event.handle(), Arc::clone(destroyed)), work)
}

#[test]
fn a_list_is_destroyed_once_and_after_its_work() {
    model(3, || {
        let (device, parking) = (Device::new(), Arc::new(Left::new()));
        parking.drain(&mut Deadline::after(Duration::ZERO), drop, |_| ());
        let destroyed = Arc::new(AtomicUsize::new(0));
        let (list, work) = left(&device, &destroyed);
        let other = left(&device, &destroyed);
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || while running.step() {});
        let parker = {
            let parking = Arc::clone(&parking);
            thread::spawn(move || park(&parking, other.0, other.1))
        };
        park(&parking, list, work);
        parker.join().expect("no panic");
        runner.join().expect("no panic");
        parking.collect(drop);
        assert_eq!((destroyed.load(Ordering::Acquire), parking.len()), (2, 0));
    });
}

/// The context goes: what is not done by then is given up whole.
#[test]
fn a_list_whose_work_goes_on_is_given_up_with_its_events() {
    model(2, || {
        let (device, parking) = (Device::new(), Left::new());
        let destroyed = Arc::new(AtomicUsize::new(0));
        let (list, work) = left(&device, &destroyed);
        park(&parking, list, work);
        let running = Arc::clone(&device);
        let runner = thread::spawn(move || running.step());
        let given_up = RefCell::new(Vec::new());
        let give_up = |parked| given_up.borrow_mut().push(ManuallyDrop::into_inner(parked));
        parking.drain(&mut Deadline::after(Duration::ZERO), drop, give_up);
        let given_up = given_up.into_inner();
        assert_eq!(given_up.len() + destroyed.load(Ordering::Acquire), 1);
        // Another operation does not get the event of one that was given up.
        let next = device.event();
        for parked in &given_up {
            assert!(!Arc::ptr_eq(&parked.list.0, &next.handle()));
        }
        assert!(runner.join().expect("no panic"));
        drop(given_up);
        assert_eq!(destroyed.load(Ordering::Acquire), 1);
        // What is done by then is destroyed.
        let (list, work) = left(&device, &destroyed);
        park(&parking, list, work);
        assert!(device.step());
        parking.drain(&mut Deadline::after(Duration::ZERO), drop, |_| panic!("it is done"));
        assert_eq!(destroyed.load(Ordering::Acquire), 2);
    });
}
