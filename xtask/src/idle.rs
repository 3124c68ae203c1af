//! The time in which processor cores had nothing to do, minute by minute: it shows where a run
//! waits.

use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs;

/// Idle and total time of all cores since the machine started, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
}

impl Ticks {
    /// Reads the first line of `/proc/stat`: `cpu  USER NICE SYSTEM IDLE IOWAIT ...`. None on other
    /// systems.
    fn of(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(Self { idle, all: ticks.iter().take(8).sum() })
    }

    fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Hundredths of the time since `before` that were idle.
    fn percent_since(self, before: Self) -> u64 {
        let all = self.all.saturating_sub(before.all);
        (self.idle.saturating_sub(before.idle) * 100).checked_div(all).unwrap_or(0)
    }
}

/// Runs `body`, and prints afterwards how much of each minute the cores were idle.
pub(crate) fn shown<T>(body: impl FnOnce() -> T) -> T {
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let minutes = scope.spawn(|| watch(&has_ended));
        let result = body();
        has_ended.store(true, Ordering::Relaxed);
        if let Ok(minutes) = minutes.join()
            && !minutes.is_empty()
        {
            println!("\n{}", text(&minutes));
        }
        result
    })
}

fn watch(has_ended: &AtomicBool) -> Vec<u64> {
    let mut minutes = Vec::new();
    let Some(mut before) = Ticks::now() else { return minutes };
    loop {
        for _ in 0..120 {
            if has_ended.load(Ordering::Relaxed) {
                return minutes;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        let Some(now) = Ticks::now() else { return minutes };
        minutes.push(now.percent_since(before));
        before = now;
    }
}

fn text(minutes: &[u64]) -> String {
    let mut text = String::from("idle processor time by minute, in percent:");
    for (place, idle) in minutes.iter().enumerate() {
        if place % 10 == 0 {
            let _ = write!(text, "\n{place:5}:");
        }
        let _ = write!(text, " {idle:3}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_idle_ticks_counts_waits_for_disks() {
        let before = Ticks::of("cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 2 3 4 5\n").expect("ticks");
        assert_eq!(before, Ticks { idle: 850, all: 1000 });
        let now = Ticks::of("cpu  150 0 80 815 55 0 0 0 7 0\n").expect("ticks");
        assert_eq!(now.percent_since(before), 20);
        assert_eq!(now.percent_since(now), 0);
        assert_eq!(Ticks::of("intr 5"), None);
    }

    #[test]
    fn ten_minutes_are_a_line() {
        let text = text(&[5; 12]);
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with("\n   10:   5   5"), "{text}");
    }
}
