//! The runs of each sample: on the device, and as a plain loop.

use core::time::Duration;
use std::time::Instant;

use usm_core::backend::Dyn;
use usm_core::{AllocKind, Device, ErrorKind, MemorySource, Queue, Request, UsmVec};
use usm_kernel::sample::{
    BINS, histogram, histogram_plain, matmul, matmul_plain, reduce_plain, reverse, reverse_plain,
    running_sums, saxpy, saxpy_plain, scan_plain, sum,
};
use usm_kernel::{BuildError, DeviceCode, Executable, Formats, Launch, LaunchError, NdRange};

use super::Sample;
use crate::error::{Error, Result};

/// Time limit for a device's first written word.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// Rows and columns of the tiles that matmul is written for.
const TILE: u64 = 16;
/// Values that each item of histogram counts.
const COUNTED: u64 = 256;

/// The results: the largest absolute difference from the plain loop, and the fastest time of each,
/// in seconds.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) max_error: f64,
    pub(super) seconds: f64,
    pub(super) reference_seconds: f64,
}

/// The work of one command.
pub(super) struct Job {
    pub(super) queue: Queue<Dyn>,
    pub(super) size: usize,
    pub(super) group: u64,
    pub(super) repeat: u32,
    /// Allowed formats of code.
    pub(super) formats: Formats,
}

/// Converts a refused launch: its range and groups, of the option `groups`, are bad input,
/// everything else is the device's failure.
pub(super) fn launch_error(error: LaunchError, groups: &str) -> Error {
    match error {
        LaunchError::Memory(error) => Error::unable(error),
        LaunchError::Range(_)
        | LaunchError::WrongGroup { .. }
        | LaunchError::GroupTooLarge { .. }
        | LaunchError::LocalMemoryTooLarge { .. } => Error::bad(error).in_field(groups),
        error => Error::bad(error),
    }
}

/// Converts a failed build: a device that takes no code of the kernel is bad input, everything else
/// is the device's failure.
pub(super) fn build_error(error: BuildError) -> Error {
    match error {
        BuildError::Format { .. } | BuildError::NoCode { .. } => Error::bad(error).in_field("--device"),
        error => Error::unable(error).with_log(),
    }
}

fn timed<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

/// Refuses a device that accepts work and never finishes it, before the longer waits of the
/// sample.
pub(super) fn check_executes(queue: &Queue<Dyn>) -> Result<()> {
    let request = Request::new(AllocKind::Device, 4);
    let mut word = queue.context().allocate(&request).map_err(Error::unable)?;
    let event = queue.fill_bytes(&mut word, 0, 4, &[0]).map_err(Error::unable)?;
    let Err(error) = event.wait_for(FIRST_WORD) else { return Ok(()) };
    if !matches!(error.kind, ErrorKind::Timeout { .. }) {
        return Err(Error::unable(error));
    }
    // The work in flight will never end, so later waits need no time.
    queue.context().set_wait_limit(Duration::ZERO);
    let limit = FIRST_WORD.as_secs();
    Err(Error::unable(format!(
        "the device takes work and executes nothing: 4 bytes were not written within {limit} s (a driver that only records?)"
    ))
    .in_field("--device"))
}

impl Job {
    /// Refuses sizes that the machine cannot hold, before any allocation of that size.
    pub(super) fn check_memory(&self, sample: Sample) -> Result<()> {
        let elements = self.size as u128;
        // Bytes of all arrays that live at the same time: inputs and results, on the device, on the
        // host and in the plain loop.
        let sample_bytes = match sample {
            Sample::Matmul => elements.saturating_mul(elements).saturating_mul(4 * 8),
            Sample::Histogram => elements * 2,
            Sample::Reverse | Sample::Reduce => elements * 4 * 4,
            Sample::Saxpy | Sample::Scan => elements * 4 * 7,
        };
        let available = self.queue.context().info().global_mem_size;
        if sample_bytes <= u128::from(available) {
            return Ok(());
        }
        Err(Error::unable(format!("{sample_bytes} bytes needed, the device has {available}"))
            .in_field("--size"))
    }

    /// The range of one item per element; the group must divide the size.
    fn item_range(&self) -> Result<NdRange<1>> {
        NdRange::new([self.size as u64], [self.group]).map_err(|error| launch_error(error.into(), "--group"))
    }

    fn device<T: bytemuck::Pod>(&self, values: &[T]) -> Result<UsmVec<T, Device, Dyn>> {
        UsmVec::from_slice(&self.queue, values).map_err(Error::unable)
    }

    /// The built kernel. Building is not timed: a program does it once.
    fn build_kernel<K: DeviceCode<D>, const D: usize>(&self) -> Result<Executable<K, Dyn, D>> {
        Executable::build_from(self.queue.context(), self.formats).map_err(build_error)
    }

    /// Small whole numbers around zero.
    fn numbers(count: usize, step: usize) -> Vec<f32> {
        (0..count).map(|i| (i.wrapping_mul(step) % 17) as f32 - 8.0).collect()
    }

    /// Runs both `repeat` times; each returns its seconds and its result.
    fn compare<T: Copy + Into<f64>>(
        &self,
        mut ours: impl FnMut() -> Result<(f64, Vec<T>)>,
        mut plain: impl FnMut() -> (f64, Vec<T>),
    ) -> Result<Outcome> {
        let mut outcome =
            Outcome { max_error: 0.0, seconds: f64::INFINITY, reference_seconds: f64::INFINITY };
        for _ in 0..self.repeat {
            let (seconds, values) = ours()?;
            let (reference_seconds, expected) = plain();
            if values.len() != expected.len() {
                return Err(Error::unable("the result has another length"));
            }
            for (found, expected) in values.into_iter().zip(expected) {
                let error = (found.into() - expected.into()).abs();
                // NaN counts as the largest error; JSON has no infinity.
                let error = if error.is_finite() { error } else { f64::MAX };
                outcome.max_error = outcome.max_error.max(error);
            }
            outcome.seconds = outcome.seconds.min(seconds);
            outcome.reference_seconds = outcome.reference_seconds.min(reference_seconds);
        }
        Ok(outcome)
    }

    /// The seconds from the launch to its end.
    fn time_launch(
        &self,
        launch: impl FnOnce() -> core::result::Result<usm_core::Event<Dyn>, LaunchError>,
    ) -> Result<f64> {
        let (seconds, result) = timed(|| launch().and_then(|event| Ok(event.wait()?)));
        result.map_err(|error| launch_error(error, "--group"))?;
        Ok(seconds)
    }

    pub(super) fn reverse(&self) -> Result<Outcome> {
        let (range, ready) = (self.item_range()?, self.build_kernel()?);
        // A larger group was already refused as too large for the range.
        let group = self.group as usize;
        let numbers = Self::numbers(self.size, 5);
        self.compare(
            || {
                let mut a = self.device(&numbers)?;
                let seconds =
                    self.time_launch(|| Launch::new(&self.queue, range).run_on(&ready, reverse, (&mut a,)))?;
                Ok((seconds, a.to_vec(&self.queue).map_err(Error::unable)?))
            },
            || {
                let mut a = numbers.clone();
                let (seconds, ()) = timed(|| reverse_plain(&mut a, group));
                (seconds, a)
            },
        )
    }

    pub(super) fn reduce(&self) -> Result<Outcome> {
        let numbers = Self::numbers(self.size, 5);
        let (a, ready) = (self.device(&numbers)?, self.build_kernel()?);
        self.compare(
            || {
                let (seconds, sums) = timed(|| sum(&ready, &self.queue, &a, self.group));
                Ok((seconds, vec![sums.map_err(|error| launch_error(error, "--group"))?]))
            },
            || {
                let (seconds, sum) = timed(|| reduce_plain(&numbers));
                (seconds, vec![sum])
            },
        )
    }

    pub(super) fn matmul(&self) -> Result<Outcome> {
        let (size, elements) = (self.size, self.size * self.size);
        if self.group != TILE * TILE {
            let group_size = self.group;
            let error =
                format!("{group_size} items, matmul is written for {TILE} x {TILE} = {}", TILE * TILE);
            return Err(Error::bad(error).in_field("--group"));
        }
        let side = size as u64;
        let range =
            NdRange::covering([side; 2], [TILE; 2]).map_err(|error| launch_error(error.into(), "--group"))?;
        let ready = self.build_kernel()?;
        let (a, b) = (Self::numbers(elements, 5), Self::numbers(elements, 7));
        let (device_a, device_b) = (self.device(&a)?, self.device(&b)?);
        self.compare(
            || {
                let mut c =
                    UsmVec::<f32, Device, Dyn>::zeroed(&self.queue, elements).map_err(Error::unable)?;
                let arguments = (side, side, side, &device_a, &device_b, &mut c);
                let seconds =
                    self.time_launch(|| Launch::new(&self.queue, range).run_on(&ready, matmul, arguments))?;
                Ok((seconds, c.to_vec(&self.queue).map_err(Error::unable)?))
            },
            || {
                let mut c = vec![0.0; elements];
                let (seconds, ()) = timed(|| matmul_plain(size, size, &a, &b, &mut c));
                (seconds, c)
            },
        )
    }

    pub(super) fn histogram(&self) -> Result<Outcome> {
        let groups = (self.size as u64).div_ceil(self.group.saturating_mul(COUNTED).max(1));
        let range = NdRange::new([self.group.saturating_mul(groups)], [self.group])
            .map_err(|error| launch_error(error.into(), "--group"))?;
        let values: Vec<u8> = (0..self.size).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 16) as u8).collect();
        let (device_values, ready) = (self.device(&values)?, self.build_kernel()?);
        self.compare(
            || {
                let mut counts = self.device(&[0_u32; BINS])?;
                let arguments = (&device_values, &mut counts);
                let seconds = self
                    .time_launch(|| Launch::new(&self.queue, range).run_on(&ready, histogram, arguments))?;
                Ok((seconds, counts.to_vec(&self.queue).map_err(Error::unable)?))
            },
            || {
                let mut counts = [0; BINS];
                let (seconds, ()) = timed(|| histogram_plain(&values, &mut counts));
                (seconds, counts.to_vec())
            },
        )
    }

    pub(super) fn saxpy(&self) -> Result<Outcome> {
        let (range, ready) = (self.item_range()?, self.build_kernel()?);
        let (alpha, x, y) = (0.5, Self::numbers(self.size, 5), Self::numbers(self.size, 7));
        let device_x = self.device(&x)?;
        self.compare(
            || {
                let mut device_y = self.device(&y)?;
                let arguments = (alpha, &device_x, &mut device_y);
                let seconds =
                    self.time_launch(|| Launch::new(&self.queue, range).run_on(&ready, saxpy, arguments))?;
                Ok((seconds, device_y.to_vec(&self.queue).map_err(Error::unable)?))
            },
            || {
                let mut y = y.clone();
                let (seconds, ()) = timed(|| saxpy_plain(alpha, &x, &mut y));
                (seconds, y)
            },
        )
    }

    pub(super) fn scan(&self) -> Result<Outcome> {
        let input: Vec<u32> = (0..self.size).map(|i| (i % 1_000) as u32).collect();
        let (device_input, parts, carry) = (self.device(&input)?, self.build_kernel()?, self.build_kernel()?);
        self.compare(
            || {
                let zeros = UsmVec::<u32, Device, Dyn>::zeroed(&self.queue, self.size);
                let mut result = zeros.map_err(Error::unable)?;
                let seconds = self.time_launch(|| {
                    running_sums((&parts, &carry), &self.queue, &device_input, &mut result, self.group)
                })?;
                Ok((seconds, result.to_vec(&self.queue).map_err(Error::unable)?))
            },
            || {
                let mut result = vec![0; self.size];
                let (seconds, ()) = timed(|| scan_plain(&input, &mut result));
                (seconds, result)
            },
        )
    }
}
