//! Random numbers: the Mersenne Twister MT19937, and the one distribution that Numba leaves to a
//! helper. Compiled code reads and writes the state itself. Each thread has one state for each
//! purpose.
//!
//! The generator is that of Matsumoto and Nishimura, *Mersenne Twister* (ACM TOMACS 8, 1998), with
//! the initialisation of 2002. Equal states give the streams of CPython's `random`, NumPy's
//! `RandomState` and Numba.

use alloc::boxed::Box;
use core::cell::Cell;
use core::ffi::{c_int, c_uint};
use core::hash::BuildHasher;
use core::ptr;
use std::hash::RandomState;
use std::thread_local;

use super::math::log;
use crate::export::export;
use crate::fallible::try_into_raw;

/// Number of words of state.
const WORDS: usize = 624;
/// Distance between combined words.
const MIDDLE: usize = 397;

/// The state of a generator: Numba's `rnd_state_t`, field for field.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Twister {
    /// Index of the next word; 624 if all were used.
    pub index: c_int,
    /// The words.
    pub mt: [c_uint; WORDS],
    /// Whether `gauss` holds the second number of a pair.
    pub has_gauss: c_int,
    /// The second number of a pair.
    pub gauss: f64,
    /// Whether the state was seeded.
    pub is_initialized: c_int,
}

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Twister, mt) == 4);
    assert!(offset_of!(Twister, has_gauss) == 2500);
    assert!(offset_of!(Twister, gauss) == 2504);
    assert!(offset_of!(Twister, is_initialized) == 2512);
};

impl Twister {
    const fn unseeded() -> Self {
        Self { index: WORDS as c_int, mt: [0; WORDS], has_gauss: 0, gauss: 0.0, is_initialized: 0 }
    }

    fn seed(&mut self, seed: u32) {
        let mut word = seed;
        for (position, slot) in (1_u32..).zip(&mut self.mt) {
            *slot = word;
            word = (word ^ (word >> 30)).wrapping_mul(1_812_433_253).wrapping_add(position);
        }
        self.restart();
    }

    /// Seeds from a key of any number of words. An empty key counts as one zero.
    fn seed_by_array(&mut self, key: &[u32]) {
        let key = if key.is_empty() { &[0][..] } else { key };
        self.seed(19_650_218);
        let mut at = 1;
        let mut advance = |mt: &mut [u32; WORDS], mix: &dyn Fn(u32, u32, u32) -> u32| {
            let before = mt[at - 1];
            mt[at] = mix(mt[at], before ^ (before >> 30), at as u32);
            at += 1;
            if at == WORDS {
                mt[0] = mt[WORDS - 1];
                at = 1;
            }
        };
        for step in 0..WORDS.max(key.len()) {
            let position = step % key.len();
            let sum = key[position].wrapping_add(position as u32);
            advance(&mut self.mt, &|word, before, _| {
                (word ^ before.wrapping_mul(1_664_525)).wrapping_add(sum)
            });
        }
        for _ in 1..WORDS {
            advance(&mut self.mt, &|word, before, at| {
                (word ^ before.wrapping_mul(1_566_083_941)).wrapping_sub(at)
            });
        }
        // The first word must not be zero.
        self.mt[0] = 0x8000_0000;
        self.restart();
    }

    fn restart(&mut self) {
        self.index = WORDS as c_int;
        self.has_gauss = 0;
        self.gauss = 0.0;
        self.is_initialized = 1;
    }

    /// Computes the next 624 words.
    fn shuffle(&mut self) {
        for at in 0..WORDS {
            let bits = (self.mt[at] & 0x8000_0000) | (self.mt[(at + 1) % WORDS] & 0x7FFF_FFFF);
            let twist = if bits & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.mt[at] = self.mt[(at + MIDDLE) % WORDS] ^ (bits >> 1) ^ twist;
        }
    }

    /// The next 32 random bits. An index that no generator leaves behind counts as 624.
    fn next(&mut self) -> u32 {
        let mut at = usize::try_from(self.index).unwrap_or(WORDS);
        if at >= WORDS {
            self.shuffle();
            at = 0;
        }
        self.index = at as c_int + 1;
        let mut word = self.mt[at];
        word ^= word >> 11;
        word ^= (word << 7) & 0x9D2C_5680;
        word ^= (word << 15) & 0xEFC6_0000;
        word ^ (word >> 18)
    }

    /// The next multiple of 2^-53 in [0, 1).
    fn next_double(&mut self) -> f64 {
        let (high, low) = (self.next() >> 5, self.next() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }
}

export! {
    /// Seeds a state with a number.
    fn numba_rnd_init(state: *mut Twister, seed: c_uint) {
        // SAFETY: null, or used by this C caller only.
        if let Some(state) = unsafe { state.as_mut() } {
            state.seed(seed);
        }
    }
    /// Seeds a state with a key of `length` words, like CPython's `random.seed`.
    fn usm_nrt_rnd_init_by_array(state: *mut Twister, key: *const c_uint, length: usize) {
        // SAFETY: null, or used by this C caller only.
        let Some(state) = (unsafe { state.as_mut() }) else { return };
        let key = if key.is_null() || length == 0 {
            &[][..]
        } else {
            // SAFETY: the C caller's `length` words to read.
            unsafe { core::slice::from_raw_parts(key, length) }
        };
        state.seed_by_array(key);
    }
    /// Computes the next 624 words. The caller then sets `index` to 0.
    fn numba_rnd_shuffle(state: *mut Twister) {
        // SAFETY: null, or used by this C caller only.
        if let Some(state) = unsafe { state.as_mut() } {
            state.shuffle();
        }
    }
    /// The next 32 random bits; 0 for a null state.
    fn usm_nrt_rnd_next(state: *mut Twister) -> c_uint {
        // SAFETY: null, or used by this C caller only.
        unsafe { state.as_mut() }.map_or(0, Twister::next)
    }
    /// The next multiple of 2^-53 in [0, 1); 0 for a null state.
    fn usm_nrt_rnd_next_double(state: *mut Twister) -> f64 {
        // SAFETY: null, or used by this C caller only.
        unsafe { state.as_mut() }.map_or(0.0, Twister::next_double)
    }
    /// The calling thread's generator for `random`. The system seeds it at first use and after a
    /// fork. Null without memory, as for the next two.
    fn numba_get_py_random_state() -> *mut Twister {
        state_of_thread(Purpose::Python)
    }
    /// The calling thread's generator for `numpy.random`.
    fn numba_get_np_random_state() -> *mut Twister {
        state_of_thread(Purpose::Numpy)
    }
    /// The calling thread's generator for the compiler's own needs.
    fn numba_get_internal_random_state() -> *mut Twister {
        state_of_thread(Purpose::Internal)
    }
    /// A Poisson variate of mean `lambda`, at least 10. Returns -1 for a null state, and for a mean
    /// that is smaller, NaN or near the largest `i64`.
    fn numba_poisson_ptrs(state: *mut Twister, lambda: f64) -> i64 {
        // SAFETY: null, or used by this C caller only.
        match unsafe { state.as_mut() } {
            Some(state) if (10.0..=9.2e18).contains(&lambda) => poisson(state, lambda),
            _ => -1,
        }
    }
}

/// Transformed rejection with squeeze: algorithm PTRS of W. Hörmann, *The transformed rejection
/// method for generating Poisson random variables* (1993). The order of operations is that of
/// NumPy's legacy generator, so that streams are equal.
fn poisson(state: &mut Twister, lambda: f64) -> i64 {
    let b = 0.931 + 2.53 * lambda.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let accepted_at_once = 0.9277 - 3.6224 / (b - 2.0);
    let log_lambda = log(lambda);
    loop {
        let u = state.next_double() - 0.5;
        let v = state.next_double();
        let edge = 0.5 - u.abs();
        let k = ((2.0 * a / edge + b) * u + lambda + 0.43).floor();
        if edge >= 0.07 && v <= accepted_at_once {
            return k as i64;
        }
        if k < 0.0 || (edge < 0.013 && v > edge) {
            continue;
        }
        let hat = log(v) + log(inverse_alpha) - log(a / (edge * edge) + b);
        if hat <= -lambda + k * log_lambda - log_gamma(k + 1.0) {
            return k as i64;
        }
    }
}

/// ln Γ(x) for x ≥ 1 by Stirling's series, raised to x > 7 by the recurrence. It does not use the
/// system's function, because streams depend on the last bit.
fn log_gamma(x: f64) -> f64 {
    /// B(2k) / (2k (2k − 1)), in the decimal digits of the published series.
    const SERIES: [f64; 10] = [
        8.333_333_333_333_333e-2,
        -2.777_777_777_777_778e-3,
        7.936_507_936_507_937e-4,
        -5.952_380_952_380_952e-4,
        8.417_508_417_508_418e-4,
        -1.917_526_917_526_918e-3,
        6.410_256_410_256_41e-3,
        -2.955_065_359_477_124e-2,
        1.796_443_723_688_307e-1,
        -1.392_432_216_905_9,
    ];
    if x == 1.0 || x == 2.0 {
        return 0.0;
    }
    let shift_count = if x <= 7.0 { (7.0 - x).trunc() } else { 0.0 };
    let mut at = x + shift_count;
    let square = 1.0 / (at * at);
    let series = SERIES.iter().rev().copied().reduce(|sum, term| sum * square + term).unwrap_or(0.0);
    let mut value = series / at + 0.5 * log(core::f64::consts::TAU) + (at - 0.5) * log(at) - at;
    for _ in 0..shift_count as u32 {
        value -= log(at - 1.0);
        at -= 1.0;
    }
    value
}

/// The purpose of a generator.
#[derive(Clone, Copy)]
enum Purpose {
    Python,
    Numpy,
    Internal,
}

/// A thread's three generators, on the heap. A library's thread-local variables are cheap to find
/// only while they are small (see `local/thread_slot.rs`).
struct States(Cell<*mut Twister>);

thread_local! {
    static STATES: States = const { States(Cell::new(ptr::null_mut())) };
}

impl States {
    /// The first of the three, made at first use.
    fn get_or_init(&self) -> *mut Twister {
        if self.0.get().is_null() {
            self.0.set(unseeded().cast());
        }
        self.0.get()
    }
}

impl Drop for States {
    fn drop(&mut self) {
        let states = self.0.replace(ptr::null_mut());
        if !states.is_null() {
            // SAFETY: made by `unseeded`. The thread ends, and its pointers with it.
            drop(unsafe { Box::from_raw(states.cast::<[Twister; 3]>()) });
        }
    }
}

/// Three unseeded generators; null without memory.
fn unseeded() -> *mut [Twister; 3] {
    try_into_raw([const { Twister::unseeded() }; 3]).map_or(ptr::null_mut(), core::ptr::NonNull::as_ptr)
}

/// The calling thread's generator. Destructors that run later at a thread's end get a generator
/// that is never freed.
fn state_of_thread(purpose: Purpose) -> *mut Twister {
    watch_forks();
    let first = STATES.try_with(States::get_or_init).unwrap_or_else(|_| unseeded().cast());
    if first.is_null() {
        return first;
    }
    // SAFETY: `purpose` is below three.
    let state = unsafe { first.add(purpose as usize) };
    // SAFETY: this thread's own, and no reference to it exists.
    if unsafe { (*state).is_initialized } == 0 {
        let key = entropy();
        // SAFETY: as above; the reference ends here.
        unsafe { &mut *state }.seed_by_array(&key);
    }
    state
}

/// As many words as a state has, from the operating system. Without such a file the words come from
/// its 128-bit key for hash tables, combined with the process and a counter.
fn entropy() -> [u32; WORDS] {
    let mut bytes = [0; 4 * WORDS];
    let file = std::fs::File::open("/dev/urandom");
    if file.and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes)).is_ok() {
        let mut words =
            bytes.chunks_exact(4).map(|word| word.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)));
        return core::array::from_fn(|_| words.next().unwrap_or(0));
    }
    let state = RandomState::new();
    let process = std::process::id();
    core::array::from_fn(|index| state.hash_one((process, index)) as u32)
}

/// Resets the child's generators after a fork, so that it does not repeat its parent's numbers.
#[cfg(unix)]
fn watch_forks() {
    use core::sync::atomic::{AtomicBool, Ordering};

    type Hook = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Hook, parent: Hook, child: Hook) -> c_int;
    }

    unsafe extern "C" fn forget() {
        let first = STATES.try_with(|states| states.0.get()).unwrap_or(ptr::null_mut());
        for place in (0..3).take_while(|_| !first.is_null()) {
            // SAFETY: `place` is below three.
            let state = unsafe { first.add(place) };
            // SAFETY: this thread's own, and the child has no other thread.
            unsafe { (*state).is_initialized = 0 };
        }
    }

    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the hook touches memory of its own thread only. A failure (no memory) leaves
        // forks without the reset.
        let _ = unsafe { pthread_atfork(None, None, Some(forget)) };
    }
}

#[cfg(not(unix))]
fn watch_forks() {}
