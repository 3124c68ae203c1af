//! Dictionaries, and sets, whose values have no bytes.

use core::cell::Cell;
use core::ffi::c_int;
use core::ptr;

use usm_nrt::container::dict::*;
use usm_nrt::container::set::*;
use usm_nrt::container::*;

use super::{Bytes, GRANTED, NESTED, assert_held, count, decref, incref};

thread_local! {
    static CURRENT: Cell<*mut HashContainer> = const { Cell::new(ptr::null_mut()) };
}

/// A change inside a callback is refused; reading is not.
fn nested() {
    let d = CURRENT.get();
    // SAFETY: the container of the running program.
    unsafe {
        assert_eq!(numba_dict_popitem(d, ptr::null_mut(), ptr::null_mut()), DICT_MUTATED);
        assert_eq!(numba_dict_delitem(d, 0, 0), DICT_MUTATED);
        assert!(numba_dict_length(d) >= 0);
    }
}

/// Keys are equal if their first bytes are. Keys of 0xEE cannot be compared.
unsafe extern "C" fn equal(stored: *const u8, given: *const u8) -> c_int {
    // SAFETY: two keys of a byte or more.
    let (stored, given) = unsafe { (*stored, *given) };
    if given == 0xEE { -1 } else { c_int::from(stored == given) }
}

struct Program<const K: usize, const V: usize> {
    d: *mut HashContainer,
    /// Keys with their values in the order of insertion.
    model: Vec<([u8; K], [u8; V])>,
    counts: bool,
    compares: bool,
    spread: u8,
}

pub(super) fn run<const K: usize, const V: usize>(mut bytes: Bytes<'_>, counts: bool) {
    let (Some(size), Some(config)) = (bytes.next(), bytes.next()) else { return };
    let mut d = ptr::null_mut();
    let is_set = V == 0;
    // SAFETY: room for the result.
    let status = unsafe {
        match (is_set, config & 1) {
            (true, 0) => numba_set_new(&raw mut d, K as isize, 8),
            (true, _) => numba_set_new_sized(&raw mut d, K as isize, size.into()),
            (false, _) => numba_dict_new_sized(&raw mut d, size.into(), K as isize, V as isize),
        }
    };
    assert_eq!(status, OK);
    let compares = config & 2 != 0;
    let chosen = |function: CountFn| counts.then_some(function);
    let methods = DictMethods {
        key_equal: compares.then_some(equal as EqualFn),
        key_incref: chosen(incref::<K>),
        key_decref: chosen(decref::<K>),
        value_incref: chosen(incref::<V>).filter(|_| !is_set),
        value_decref: chosen(decref::<V>).filter(|_| !is_set),
    };
    // SAFETY: live, and a table; that of a set is its first part.
    unsafe {
        if is_set {
            let DictMethods { key_equal, key_incref, key_decref, .. } = methods;
            numba_set_set_method_table(d, &SetMethods { key_equal, key_incref, key_decref });
        } else {
            numba_dict_set_method_table(d, &methods);
        }
    }
    CURRENT.set(d);
    NESTED.set((config & 4 != 0).then_some(nested as fn()));
    let mut program = Program::<K, V> { d, model: Vec::new(), counts, compares, spread: config >> 3 };
    let mut steps = 0;
    while program.step(&mut bytes).is_some() {
        steps += 1;
        if steps % 16 == 0 {
            program.check();
        }
    }
    program.check();
    NESTED.set(None);
    // SAFETY: live, and not used afterwards.
    unsafe { if is_set { numba_set_free(d) } else { numba_dict_free(d) } };
}

impl<const K: usize, const V: usize> Program<K, V> {
    fn key(&self, byte: u8, other: u8) -> ([u8; K], isize) {
        // Bytes that matter only if no callback compares.
        let mut key = [if self.compares { other } else { 7 }; K];
        key[0] = byte;
        // From all different to all equal, including -1.
        (key, isize::from(byte).wrapping_mul(isize::from(self.spread)) - 1)
    }

    fn find(&self, byte: u8) -> Option<usize> {
        self.model.iter().position(|(key, _)| key[0] == byte)
    }

    /// Whether comparing this key fails, which needs another key with the same hash.
    fn fails(&self, byte: u8) -> Option<bool> {
        if !self.compares || byte != 0xEE {
            return Some(false);
        }
        // The slots decide which keys are compared, so the result is unknown.
        if self.model.is_empty() { Some(false) } else { None }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let (action, byte, other) = (bytes.next()?, bytes.next()?, bytes.next()?);
        let (key, hash) = self.key(byte, other);
        let found = self.find(byte);
        if self.fails(byte)? {
            return Some(());
        }
        // SAFETY: everything below is live and has the sizes of the container.
        unsafe {
            match action % 16 {
                0..=5 => self.insert(key, hash, other, found, action % 2 == 0),
                6..=8 => self.lookup(key, hash, found),
                9..=11 => self.remove(key, hash, found),
                12 => self.pop(),
                13 => GRANTED.set(usize::from(other)),
                14 => GRANTED.set(if other % 2 == 0 { 0 } else { usize::MAX }),
                _ => self.iterate(other),
            }
        }
        Some(())
    }

    unsafe fn insert(&mut self, key: [u8; K], hash: isize, byte: u8, found: Option<usize>, keep: bool) {
        let (value, mut old) = ([byte; V], [0xA5; V]);
        // SAFETY: as in `step`.
        let status = unsafe {
            match (V == 0, keep) {
                (true, _) => numba_set_add(self.d, key.as_ptr(), hash),
                (_, true) => numba_dict_insert(self.d, key.as_ptr(), hash, value.as_ptr(), old.as_mut_ptr()),
                (_, false) => numba_dict_insert_ez(self.d, key.as_ptr(), hash, value.as_ptr()),
            }
        };
        match found {
            Some(at) => {
                assert_eq!(status, REPLACED);
                assert!(!keep || old == self.model[at].1, "the old value");
                self.model[at].1 = value;
            }
            None if status == OK => {
                assert!(!keep || old == [0; V] || V == 0);
                self.model.push((key, value));
            }
            None => {
                assert_eq!((status, GRANTED.get()), (DICT_NO_MEMORY, 0), "only without memory");
                self.check();
            }
        }
    }

    unsafe fn lookup(&self, key: [u8; K], hash: isize, found: Option<usize>) {
        let mut value = [0xA5; V];
        // SAFETY: as in `step`.
        let position = unsafe { numba_dict_lookup(self.d, key.as_ptr(), hash, value.as_mut_ptr()) };
        assert_eq!(position >= 0, found.is_some());
        assert_eq!(value, found.map_or([0; V], |at| self.model[at].1));
        if V == 0 {
            // SAFETY: as in `step`.
            let contains = unsafe { numba_set_contains(self.d, key.as_ptr(), hash) };
            assert_eq!(contains, isize::from(found.is_some()));
        }
    }

    unsafe fn remove(&mut self, key: [u8; K], hash: isize, found: Option<usize>) {
        // SAFETY: as in `step`.
        unsafe {
            if V == 0 {
                assert_eq!(numba_set_discard(self.d, key.as_ptr(), hash), OK);
            } else {
                let position = numba_dict_lookup(self.d, key.as_ptr(), hash, ptr::null_mut());
                let expected = if found.is_some() { OK } else { DICT_MUTATED };
                assert_eq!(numba_dict_delitem(self.d, hash, position), expected);
            }
        }
        if let Some(at) = found {
            self.model.remove(at);
        }
    }

    unsafe fn pop(&mut self) {
        let (mut key, mut value) = ([0; K], [0; V]);
        // SAFETY: as in `step`.
        let status = unsafe { numba_dict_popitem(self.d, key.as_mut_ptr(), value.as_mut_ptr()) };
        match self.model.pop() {
            None => assert_eq!(status, DICT_EMPTY),
            Some(last) => {
                assert_eq!((status, (key, value)), (OK, last));
                if self.counts {
                    NESTED.set(None);
                    // The caller now owns the item's references.
                    count(&key, -1);
                    if V != 0 {
                        count(&value, -1);
                    }
                    NESTED.set(None);
                }
            }
        }
    }

    /// Visits some elements, then makes a change that the iterator must detect.
    unsafe fn iterate(&mut self, steps: u8) {
        let mut room = [0_u8; 40];
        // The caller's memory, not aligned.
        let iter: *mut KeyedIter = room[1..].as_mut_ptr().cast();
        let (mut key, mut value) = (ptr::null(), ptr::null());
        // SAFETY: as in `step`; there is room for an iterator.
        unsafe {
            assert!(numba_dict_iter_sizeof() < 40 && numba_set_iter_sizeof() < 40);
            numba_dict_iter(iter, self.d);
            for (stored, _) in self.model.iter().take(steps.into()) {
                assert_eq!(numba_dict_iter_next(iter, &raw mut key, &raw mut value), OK);
                assert_eq!(key.cast::<[u8; K]>().read(), *stored);
            }
            if !self.model.is_empty() {
                self.pop();
                assert_eq!(numba_dict_iter_next(iter, &raw mut key, &raw mut value), DICT_MUTATED);
            }
        }
    }

    /// Compares all elements in order, and the references.
    fn check(&self) {
        let mut iter = [0_usize; 4];
        let (mut key, mut value) = (ptr::null(), ptr::null());
        // SAFETY: live.
        unsafe {
            assert_eq!(numba_dict_length(self.d), self.model.len() as isize);
            numba_dict_iter(iter.as_mut_ptr().cast(), self.d);
            for element in &self.model {
                assert_eq!(numba_dict_iter_next(iter.as_mut_ptr().cast(), &raw mut key, &raw mut value), OK);
                assert_eq!((key.cast::<[u8; K]>().read(), value.cast::<[u8; V]>().read()), *element);
                assert!(key.addr() % 8 == 0 && value.addr() % 8 == 0);
            }
            let end = numba_dict_iter_next(iter.as_mut_ptr().cast(), &raw mut key, &raw mut value);
            assert_eq!(end, DICT_EXHAUSTED);
        }
        let values = self.model.iter().filter(|_| V != 0).map(|(_, value)| &value[..]);
        let elements = self.model.iter().map(|(key, _)| &key[..]).chain(values);
        assert_held(elements.filter(|_| self.counts));
    }
}
