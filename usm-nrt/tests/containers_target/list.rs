//! Lists.

use core::cell::Cell;
use core::ptr;

use usm_nrt::container::list::*;
use usm_nrt::container::*;

use super::{Bytes, GRANTED, NESTED, assert_held, decref, incref};

thread_local! {
    static CURRENT: Cell<*mut List> = const { Cell::new(ptr::null_mut()) };
}

/// A change inside a callback is refused; reading is not.
fn nested() {
    let l = CURRENT.get();
    // SAFETY: the list of the running program.
    unsafe {
        assert_eq!(numba_list_append(l, [0; 8].as_ptr()), LIST_MUTATED);
        assert_eq!(numba_list_delitem(l, 0), LIST_MUTATED);
        assert!(numba_list_length(l) > 0);
    }
}

pub(super) fn run<const N: usize>(mut bytes: Bytes<'_>) {
    let (Some(room), Some(config)) = (bytes.next(), bytes.next()) else { return };
    let mut l = ptr::null_mut();
    // SAFETY: room for the result.
    assert_eq!(unsafe { numba_list_new(&raw mut l, N as isize, room.into()) }, OK);
    let counts = config & 1 != 0;
    let methods = ListMethods {
        item_incref: counts.then_some(incref::<N> as CountFn),
        item_decref: counts.then_some(decref::<N> as CountFn),
    };
    // SAFETY: live, and a table.
    unsafe { numba_list_set_method_table(l, &methods) };
    CURRENT.set(l);
    NESTED.set((config & 2 != 0).then_some(nested as fn()));
    let mut program = Program::<N> { l, model: Vec::new(), counts };
    while program.step(&mut bytes).is_some() {
        program.check();
    }
    program.check();
    // SAFETY: live, and not used afterwards.
    unsafe { numba_list_free(l) };
    NESTED.set(None);
}

struct Program<const N: usize> {
    l: *mut List,
    model: Vec<[u8; N]>,
    counts: bool,
}

impl<const N: usize> Program<N> {
    fn step(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let (action, one, other) = (bytes.next()?, bytes.next()?, bytes.next()?);
        let (item, index) = ([other; N], usize::from(one) % (self.model.len() + 2));
        // Also a missing index, and one below zero.
        let (signed, inside) =
            (index as isize - isize::from(one == 255) * 300, index < self.model.len() && one != 255);
        let expected = if inside { OK } else { LIST_INDEX };
        // SAFETY: the list is live, and items have its size.
        unsafe {
            match action % 16 {
                0..=6 => {
                    // Several, so that lists become long.
                    for _ in 0..=action / 16 {
                        let status = numba_list_append(self.l, item.as_ptr());
                        if status == OK {
                            self.model.push(item);
                        } else {
                            assert_eq!((status, GRANTED.get()), (LIST_NO_MEMORY, 0), "only without memory");
                        }
                    }
                }
                7 => {
                    assert_eq!(numba_list_setitem(self.l, signed, item.as_ptr()), expected);
                    if inside {
                        self.model[index] = item;
                    }
                }
                8 => {
                    let mut out = [0xA5; N];
                    assert_eq!(numba_list_getitem(self.l, signed, out.as_mut_ptr()), expected);
                    assert_eq!(out, if inside { self.model[index] } else { [0xA5; N] });
                }
                9 => {
                    assert_eq!(numba_list_delitem(self.l, signed), expected);
                    if inside {
                        self.model.remove(index);
                    }
                }
                10 | 11 => self.slice(signed, other, bytes.next()?),
                12 => GRANTED.set(usize::from(other)),
                13 => GRANTED.set(if other % 2 == 0 { 0 } else { usize::MAX }),
                14 => self.immutable(),
                _ => self.iterate(),
            }
        }
        Some(())
    }

    unsafe fn slice(&mut self, start: isize, stop: u8, step: u8) {
        let size = self.model.len() as isize;
        let (stop, step) = (isize::from(stop) % (size + 3) - 1, isize::from(step as i8));
        // SAFETY: the list is live.
        let status = unsafe { numba_list_delete_slice(self.l, start, stop, step) };
        let mut indices = Vec::new();
        let mut index = start;
        while step != 0 && if step > 0 { index < stop } else { index > stop } {
            indices.push(index);
            index += step;
        }
        // Begin and end must lie in the list, even if the steps pass the end.
        let ends = if step > 0 { start..=stop - 1 } else { stop + 1..=start };
        let refused = step == 0 || !indices.is_empty() && (*ends.start() < 0 || *ends.end() >= size);
        assert_eq!(status, if refused { LIST_INDEX } else { OK });
        if !refused {
            let mut index = 0;
            self.model.retain(|_| {
                index += 1;
                !indices.contains(&(index - 1))
            });
        }
    }

    unsafe fn immutable(&self) {
        let item = [0; N];
        // SAFETY: the list is live.
        unsafe {
            numba_list_set_is_mutable(self.l, 0);
            assert_eq!(numba_list_append(self.l, item.as_ptr()), LIST_IMMUTABLE);
            assert_eq!(numba_list_setitem(self.l, -1, item.as_ptr()), LIST_IMMUTABLE);
            assert_eq!(numba_list_delitem(self.l, 0), LIST_IMMUTABLE);
            assert_eq!(numba_list_delete_slice(self.l, 0, 1, 1), LIST_IMMUTABLE);
            assert_eq!(numba_list_is_mutable(self.l), 0);
            numba_list_set_is_mutable(self.l, 1);
        }
    }

    unsafe fn iterate(&mut self) {
        let mut room = [0_u8; 32];
        let iter: *mut ListIter = room[1..].as_mut_ptr().cast();
        let mut item = ptr::null();
        // SAFETY: the list is live; there is room for an iterator, at any alignment.
        unsafe {
            assert!(numba_list_iter_sizeof() < 32);
            numba_list_iter(iter, self.l);
            for stored in &self.model {
                assert_eq!(numba_list_iter_next(iter, &raw mut item), OK);
                assert_eq!(item.cast::<[u8; N]>().read(), *stored);
            }
            assert_eq!(numba_list_iter_next(iter, &raw mut item), LIST_EXHAUSTED);
            if self.model.pop().is_some() {
                assert_eq!(numba_list_delitem(self.l, self.model.len() as isize), OK);
                assert_eq!(numba_list_iter_next(iter, &raw mut item), LIST_MUTATED);
            }
        }
    }

    fn check(&self) {
        // SAFETY: the list is live; compiled code reads it this way.
        unsafe {
            let size = (numba_list_size_address(self.l) as *const isize).read();
            assert_eq!((size, numba_list_length(self.l)), (self.model.len() as isize, size));
            assert!(numba_list_allocated(self.l) >= size);
            let base = numba_list_base_ptr(self.l);
            assert_eq!(base.addr() % 16, 0);
            for (index, item) in self.model.iter().enumerate() {
                assert_eq!(base.add(index * N).cast::<[u8; N]>().read(), *item);
            }
        }
        assert_held(self.model.iter().map(|item| &item[..]).filter(|_| self.counts));
    }
}
