//! No operation of the codec allocates: parse, check, convert, write.

use core::alloc::{GlobalAlloc, Layout as Block};
use core::cell::Cell;
use core::fmt;
use std::alloc::System;

use usm_interface::dlpack::Device;
use usm_interface::pep3118::{Padding, RawBuffer};
use usm_interface::{
    Field, Policy, Protocol, Spelling, SyclObject, Target, descr, dict, text::Lexer, value::Str,
};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is forwarded to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, block: Block) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, block) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread during `work`.
fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

/// Counts written bytes.
struct Sink(usize);

impl fmt::Write for Sink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(core::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn dictionaries_structures_formats_and_conversions_do_not_allocate() {
    // Tensors have the machine's own order of bytes.
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let own = format!(
        "{{'data': (64, False), 'shape': (2, 3), 'strides': (24, -8), 'typestr': '{order}f8', 'version': 3, 'x': [{{'a': ()}}]}}"
    );
    let count = allocations(|| {
        let policy = Policy::default();
        let mut table = [Field::EMPTY; 8];
        let array = dict::parse::<8>(&own, None, &policy, &mut table).unwrap();
        let mut sink = Sink(0);
        array.write(&mut sink, Spelling::Python).unwrap();
        let target = Target { syclobj: Some(SyclObject::Filter(Str::new("cpu"))), ..Target::default() };
        array.to_interface(Protocol::Sycl, &target).unwrap().write(&mut sink, Spelling::Json).unwrap();
        array.to_tensor(Device::CPU).unwrap().to_buffer().unwrap().write_format(&mut sink).unwrap();

        let mut table = [Field::EMPTY; 8];
        let text = "[(('title', 'a\\n'), '<i4'), ('b', [('c', ('<f4', (2,)), (3,))], 2)]";
        descr::parse(Lexer::new(text), false, &policy, &mut table)
            .unwrap()
            .write(&mut sink, Spelling::Python)
            .unwrap();

        let mut table = [Field::EMPTY; 8];
        let raw = RawBuffer {
            format: Some("T{i:a:xxxxd:b:}"),
            itemsize: 16,
            len: 16,
            shape: Some(&[1]),
            address: 64,
            ..RawBuffer::default()
        };
        raw.validate::<8>(Padding::AsWritten, &policy, &mut table).unwrap().write_format(&mut sink).unwrap();

        // Refusals do not allocate either.
        let mut table = [Field::EMPTY; 8];
        let error =
            dict::parse::<8>("{'shape': (1, -1), 'typestr': '<f4'}", None, &policy, &mut table).unwrap_err();
        fmt::Write::write_fmt(&mut sink, format_args!("{error}")).unwrap();
        assert!(sink.0 > 200);
    });
    assert_eq!(count, 0);
}
