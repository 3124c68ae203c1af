//! Runs the steps of a schedule on several threads, before earlier steps have ended.
//!
//! Almost every step spends its nodes and finds nothing, so the steps after it are known in
//! advance. Threads begin them early. Their results are used in the order of the schedule. If a
//! step finds something, the later steps that were begun are dropped. So the plan, the bound and
//! the number of nodes are those of one thread, with any number of threads.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::decide::Search;
use super::eject::Ejection;
use super::minimise::{Goal, Run, decide_once, repair_once};
use super::model::Model;
use super::schedule::{End, Step, StepResult};

/// Steps that wait or run, for each thread.
const STEPS: usize = 3;

/// Time between two calls of `stop`.
const LOOK: Duration = Duration::from_millis(20);

/// Whether the caller ends the search.
type Stop<'s> = &'s (dyn Fn() -> bool + Sync);

/// The state of the repair. Each of its steps needs the state after the one before.
type Lane<'m> = Ejection<'m, Model>;

struct Task<'m> {
    step: Step,
    is_begun: bool,
    /// The result of the step, and the state of the repair after it.
    result: Option<(StepResult, Option<Lane<'m>>)>,
}

struct Board<'m> {
    /// In the order of the schedule.
    tasks: VecDeque<Task<'m>>,
    /// The number of the first task.
    first: u64,
    best: Arc<Vec<u64>>,
    /// The state of the repair, unless a thread has it.
    lane: Option<Lane<'m>>,
    is_over: bool,
}

struct Shared<'m> {
    board: Mutex<Board<'m>>,
    /// Signals that there is a task.
    begin: Condvar,
    /// Signals that a task has ended.
    end: Condvar,
    /// Grows when the tasks are dropped.
    epoch: AtomicU64,
}

impl<'m> Shared<'m> {
    fn lock(&self) -> MutexGuard<'_, Board<'m>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self) {
        self.lock().is_over = true;
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.begin.notify_all();
        self.end.notify_all();
    }
}

/// Ends the other threads when a thread ends, also by a panic.
struct Finish<'s, 'm>(&'s Shared<'m>);

impl Drop for Finish<'_, '_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Runs the schedule to its end.
pub(super) fn minimise<'m>(model: &'m Model, run: &mut Run<'m>, goal: &Goal<'_>) {
    let lane = Ejection::new(model);
    let board = Board {
        tasks: VecDeque::new(),
        first: 0,
        best: Arc::new(run.best.clone()),
        lane: Some(lane.clone()),
        is_over: false,
    };
    let shared = Shared {
        board: Mutex::new(board),
        begin: Condvar::new(),
        end: Condvar::new(),
        epoch: AtomicU64::new(0),
    };
    thread::scope(|scope| {
        let finish = Finish(&shared);
        let stop = goal.stop;
        let work = || run_other_thread(&shared, model, stop);
        // The system may refuse a thread. A single thread runs the same schedule.
        let workers = (1..goal.threads).filter(|_| thread::Builder::new().spawn_scoped(scope, work).is_ok());
        let threads = 1 + workers.count();
        run_first_thread(&shared, model, run, lane, threads, goal);
        drop(finish);
    });
}

/// Creates tasks, works on them like the other threads, and uses their results in order.
fn run_first_thread<'m>(
    shared: &Shared<'m>,
    model: &'m Model,
    run: &mut Run<'m>,
    mut lane: Lane<'m>,
    threads: usize,
    goal: &Goal<'_>,
) {
    let mut search = Search::new(model);
    let mut forecast = run.schedule.clone();
    while !(goal.stop)() {
        let mut board = shared.lock();
        while board.tasks.len() < STEPS * threads {
            let Some(step) = forecast.next() else { break };
            let used = forecast.all(step);
            forecast.take(step, &StepResult { used, end: End::Failed });
            board.tasks.push_back(Task { step, is_begun: false, result: None });
        }
        shared.begin.notify_all();
        let Some(first) = board.tasks.front() else { break };
        if first.result.is_none() {
            // Another thread works on it, or it has not begun.
            match take_task(&mut board) {
                Some(task) => {
                    drop(board);
                    run_task(shared, model, &mut search, task, goal.stop);
                }
                None if board.is_over => break,
                None => drop(shared.end.wait_timeout(board, LOOK)),
            }
            continue;
        }
        let Some(Task { step, result: Some((result, after)), .. }) = board.tasks.pop_front() else { break };
        board.first += 1;
        drop(board);
        if let Some(after) = after {
            lane = after;
        }
        let next = run.schedule.next();
        debug_assert_eq!(next, Some(step), "the schedule foretold");
        let as_foretold = matches!(result.end, End::Failed) && result.used == run.schedule.all(step);
        run.take(step, result, goal);
        if !as_foretold {
            forecast = run.schedule.clone();
            let mut board = shared.lock();
            shared.epoch.fetch_add(1, Ordering::Relaxed);
            board.first += board.tasks.len() as u64;
            board.tasks.clear();
            board.best = Arc::new(run.best.clone());
            board.lane = Some(lane.clone());
        }
    }
}

/// A task that a thread has.
struct Assignment<'m> {
    number: u64,
    step: Step,
    best: Arc<Vec<u64>>,
    lane: Option<Lane<'m>>,
}

/// The first task that can begin: a repair waits for the one before it.
fn take_task<'m>(board: &mut Board<'m>) -> Option<Assignment<'m>> {
    let idle = board.lane.is_some();
    let free = |task: &Task<'_>| !task.is_begun && (idle || matches!(task.step, Step::Decide(_)));
    let at = board.tasks.iter().position(free)?;
    board.tasks[at].is_begun = true;
    let step = board.tasks[at].step;
    let lane = if matches!(step, Step::Repair(_)) { board.lane.take() } else { None };
    Some(Assignment { number: board.first + at as u64, step, best: Arc::clone(&board.best), lane })
}

fn run_task<'m>(
    shared: &Shared<'m>,
    model: &'m Model,
    search: &mut Search<'m>,
    task: Assignment<'m>,
    stop: Stop<'_>,
) {
    let Assignment { number, step, best, mut lane } = task;
    let is_dropped = |board: &Board<'_>| board.first > number;
    // Read before the board is read: a later change then ends the task at once.
    let epoch = shared.epoch.load(Ordering::Relaxed);
    if is_dropped(&shared.lock()) {
        return;
    }
    let mut stop = || stop() || shared.epoch.load(Ordering::Relaxed) != epoch;
    let result = match &mut lane {
        Some(lane) => repair_once(lane, step, &best, &mut stop),
        None => decide_once(search, model, step, &mut stop),
    };
    let mut board = shared.lock();
    if !is_dropped(&board) {
        board.lane = board.lane.take().or_else(|| lane.clone());
        let at = (number - board.first) as usize;
        board.tasks[at].result = Some((result, lane));
        shared.end.notify_all();
        shared.begin.notify_all();
    }
}

fn run_other_thread<'m>(shared: &Shared<'m>, model: &'m Model, stop: Stop<'_>) {
    let _finish = Finish(shared);
    let mut search = Search::new(model);
    loop {
        let mut board = shared.lock();
        let task = loop {
            if board.is_over {
                return;
            }
            match take_task(&mut board) {
                Some(task) => break task,
                None => board = shared.begin.wait(board).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(board);
        run_task(shared, model, &mut search, task, stop);
    }
}
