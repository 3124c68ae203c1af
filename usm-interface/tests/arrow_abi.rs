//! Arrow's C structures: ownership, release, chunks, missing entries, hostile fields.
#![cfg(feature = "alloc")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};
extern crate alloc;

use alloc::sync::Arc;

use usm_interface::arrow::Column;
use usm_interface::arrow::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowSchema, ImportedColumn, OwnedStructure, Structure,
    export,
};
use usm_interface::dlpack::{Device, DeviceType};
use usm_interface::{Dtype, Kind};

/// Counts its drops.
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn exported(
    shape: &[i64],
    drops: &Arc<AtomicUsize>,
) -> (OwnedStructure<ArrowSchema>, OwnedStructure<ArrowDeviceArray>) {
    let dtype = Dtype::number(Kind::Float, 4).unwrap();
    let column = Column::<4>::new(dtype, shape, 4096, Device::CPU).unwrap();
    export(&column, ptr::without_provenance(4096), Owner(Arc::clone(drops))).unwrap()
}

#[test]
fn an_exported_column_comes_back_and_keeps_its_owner_until_it_is_released_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    for (round, shape) in [&[6][..], &[2, 3], &[4, 1, 5], &[0, 7], &[7, 0]].into_iter().enumerate() {
        let (schema, array) = exported(shape, &drops);
        let (mut schema, mut array) = (schema.into_raw(), array.into_raw());
        // SAFETY: both are as they were exported.
        let taken = unsafe { OwnedStructure::take(NonNull::from(&mut schema)) }.unwrap();
        // SAFETY: as above.
        let imported =
            ImportedColumn::new(taken, unsafe { OwnedStructure::take(NonNull::from(&mut array)) }.unwrap());
        // SAFETY: released now.
        let again = unsafe { OwnedStructure::take(NonNull::from(&mut array)) };
        assert_eq!(again.err().unwrap().to_string(), "release: the structure was released");
        let column = imported.column::<4>().unwrap();
        assert_eq!((column.shape(), column.dtype()), (shape, Dtype::number(Kind::Float, 4).unwrap()));
        assert_eq!((column.address(), column.device()), (4096, Device::CPU));
        assert_eq!(column.nbytes(), 4 * shape.iter().product::<i64>().unsigned_abs());
        assert_eq!(drops.load(Ordering::SeqCst), round);
        std::thread::spawn(move || drop(imported)).join().unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), round + 1);
    }
}

#[test]
fn a_child_that_was_moved_out_outlives_its_parent() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (schema, array) = exported(&[2, 3], &drops);
    let raw = array.into_raw();
    // SAFETY: as the interface allows it: the child is moved by bits, its place is released.
    let child = unsafe { OwnedStructure::take(NonNull::new(*raw.array.children).unwrap()) }.unwrap();
    // SAFETY: as it was exported, but for the child.
    drop(unsafe { OwnedStructure::from_raw(raw) });
    drop(schema);
    assert_eq!((child.get().length, drops.load(Ordering::SeqCst)), (6, 0));
    drop(child);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn an_element_type_that_arrow_lacks_is_refused_and_its_owner_dropped() {
    let drops = Arc::new(AtomicUsize::new(0));
    let complex =
        Column::<4>::new(Dtype::number(Kind::Complex, 8).unwrap(), &[3], 4096, Device::CPU).unwrap();
    let refused = export(&complex, ptr::null(), Owner(Arc::clone(&drops)));
    assert_eq!(refused.err().unwrap().kind().name(), "not_representable");
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    let device = Device { kind: DeviceType::Cuda, id: 3 };
    let column = Column::<4>::new(Dtype::U8, &[3], 4096, device).unwrap();
    let (schema, array) = export(&column, ptr::without_provenance(4096), ()).unwrap();
    assert_eq!((array.get().device_type, array.get().device_id), (2, 3));
    assert_eq!(ImportedColumn::new(schema, array).column::<1>().unwrap().device(), device);
}

unsafe extern "C" fn release_schema(this: *mut ArrowSchema) {
    // SAFETY: called with its structure.
    unsafe { (*this).release = None };
}

unsafe extern "C" fn release_array(this: *mut ArrowArray) {
    // SAFETY: called with its structure.
    let this = unsafe { &mut *this };
    // SAFETY: NULL, or the counter of the structure's owner.
    if let Some(releases) = unsafe { this.private_data.cast::<AtomicUsize>().as_ref() } {
        releases.fetch_add(1, Ordering::SeqCst);
    }
    this.release = None;
}

/// A producer's own structures: the test owns all that they point at.
struct Foreign {
    buffers: [*const c_void; 3],
    schema: ArrowSchema,
    array: ArrowArray,
    releases: AtomicUsize,
}

impl Foreign {
    fn new(format: &'static CStr, length: i64) -> Box<Self> {
        let mut this = Box::new(Self {
            buffers: [ptr::null(), ptr::without_provenance(4096), ptr::null()],
            schema: ArrowSchema {
                format: format.as_ptr(),
                release: Some(release_schema),
                ..ArrowSchema::RELEASED
            },
            array: ArrowArray { length, n_buffers: 2, release: Some(release_array), ..ArrowArray::RELEASED },
            releases: AtomicUsize::new(0),
        });
        this.array.private_data = (&raw mut this.releases).cast();
        this.array.buffers = this.buffers.as_mut_ptr();
        this
    }

    /// What the checks say of it.
    fn verdict(&mut self) -> Result<Vec<i64>, String> {
        // SAFETY: valid as far as the fields say; the test refuses the rest.
        let schema = unsafe { OwnedStructure::take(NonNull::from(&mut self.schema)) }
            .map_err(|error| error.to_string())?;
        // SAFETY: as above.
        let array = unsafe { OwnedStructure::take(NonNull::from(&mut self.array)) }
            .map_err(|error| error.to_string())?;
        let imported = ImportedColumn::on_host(schema, array);
        imported.column::<4>().map(|column| column.shape().to_vec()).map_err(|error| error.to_string())
    }
}

#[test]
fn missing_entries_are_counted_where_they_are_used() {
    // Entries 1 and 9 are missing.
    let bitmap = [0b1111_1101_u8, 0b0000_0101];
    for (offset, length, expected) in [
        (0, 11, Err("null_count: 2 entries are missing (null)")),
        (2, 7, Ok(7)),
        (2, 8, Err("null_count: 1 entry is missing (null)")),
        (10, 1, Ok(1)),
        (5, 0, Ok(0)),
    ] {
        let mut foreign = Foreign::new(c"g", length);
        foreign.buffers[0] = bitmap.as_ptr().cast();
        (foreign.array.offset, foreign.array.null_count) = (offset, -1);
        let expected = expected.map(|length| vec![length]).map_err(str::to_owned);
        assert_eq!(foreign.verdict(), expected, "{offset} {length}");
    }
    // The producer's number holds: its bitmap is not read.
    let mut foreign = Foreign::new(c"g", 11);
    foreign.buffers[0] = bitmap.as_ptr().cast();
    assert_eq!(foreign.verdict(), Ok(vec![11]));
}

#[test]
fn hostile_fields_are_refused_by_name_and_released_once() {
    type Change = fn(&mut Foreign);
    let cases: [(&CStr, Change, &str); 18] = [
        (c"g", |it| it.array.length = -1, "length: extent -1 is negative"),
        (c"g", |it| it.array.offset = -5, "offset: offset -5 is negative"),
        (c"g", |it| it.array.offset = i64::MAX, "offset: the lowest or highest byte does not fit 63 bits"),
        (c"g", |it| it.array.length = i64::MAX, "length: the size in bytes does not fit 63 bits"),
        (c"g", |it| it.buffers[1] = ptr::null(), "buffers: null pointer for 24 bytes"),
        (
            c"g",
            |it| it.buffers[1] = ptr::without_provenance(usize::MAX - 8),
            "buffers: address 0xfffffffffffffff7 and extent leave the address space",
        ),
        (c"g", |it| it.array.buffers = null_mut(), "buffers: NULL where the structure must have a value"),
        (c"g", |it| it.array.n_buffers = 3, "buffers: 3, where the format has 2"),
        (c"g", |it| it.array.n_buffers = -1, "buffers: -1, where the format has 2"),
        (c"g", |it| it.array.n_children = 1, "children: 1, where the format has 0"),
        (c"g", |it| it.schema.format = ptr::null(), "format: NULL where the structure must have a value"),
        (
            c"g",
            |it| it.array.dictionary = &raw mut it.array,
            "dictionary: dictionary-encoded columns are no arrays: decode it",
        ),
        (c"\xff", |_| (), "format: not a format of Arrow"),
        (c"vu", |_| (), "format: columns of texts are no arrays of numbers"),
        (c"b", |_| (), "format: columns of booleans, which are packed bits, are no arrays of numbers"),
        (c"+s", |_| (), "format: columns of structures are no arrays of numbers"),
        (c"+w:2", |it| it.array.n_buffers = 1, "children: 0, where the format has 1"),
        (
            c"+w:2",
            |it| {
                (it.array.n_buffers, it.array.n_children, it.schema.n_children) = (1, 1, 1);
            },
            "children: NULL where the structure must have a value",
        ),
    ];
    for (format, change, expected) in cases {
        let mut foreign = Foreign::new(format, 3);
        change(&mut foreign);
        assert_eq!(foreign.verdict(), Err(expected.to_owned()));
        assert_eq!(foreign.releases.load(Ordering::SeqCst), 1, "{expected}");
    }
    let mut released = Foreign::new(c"g", 3);
    released.array.release = None;
    assert_eq!(released.verdict(), Err("release: the structure was released".to_owned()));
}

#[test]
fn a_list_that_contains_itself_ends() {
    let mut foreign = Foreign::new(c"+w:1", 3);
    let (mut schemas, mut arrays) = ([&raw mut foreign.schema], [&raw mut foreign.array]);
    (foreign.array.n_buffers, foreign.array.n_children, foreign.schema.n_children) = (1, 1, 1);
    (foreign.schema.children, foreign.array.children) = (schemas.as_mut_ptr(), arrays.as_mut_ptr());
    // SAFETY: a copy by bits; its place stays as it is, for the circle.
    let (schema, array) =
        unsafe { (ptr::read(&raw const foreign.schema), ptr::read(&raw const foreign.array)) };
    // SAFETY: valid as far as the fields say.
    let imported =
        unsafe { ImportedColumn::on_host(OwnedStructure::from_raw(schema), OwnedStructure::from_raw(array)) };
    assert_eq!(imported.column::<4>().unwrap_err().to_string(), "ndim: more than 4 dimensions");
    assert_eq!(imported.column::<64>().unwrap_err().to_string(), "ndim: more than 64 dimensions");
    assert_eq!(imported.column::<65>().unwrap_err().to_string(), "ndim: more than 64 dimensions");
}

struct Chunks {
    left: i64,
    words: &'static CStr,
}

unsafe extern "C" fn chunk_schema(_: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    let schema =
        ArrowSchema { format: c"i".as_ptr(), release: Some(release_schema), ..ArrowSchema::RELEASED };
    // SAFETY: a place for the answer.
    unsafe { out.write(schema) };
    0
}

unsafe extern "C" fn next_chunk(this: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the stream of the test.
    let chunks = unsafe { &mut *(*this).private_data.cast::<Chunks>() };
    chunks.left -= 1;
    let array = match chunks.left {
        0.. => ArrowArray {
            length: chunks.left,
            n_buffers: 2,
            release: Some(release_array),
            ..ArrowArray::RELEASED
        },
        -1 => ArrowArray::RELEASED,
        _ => return 5,
    };
    // SAFETY: a place for the answer.
    unsafe { out.write(array) };
    0
}

unsafe extern "C" fn words(this: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the stream of the test.
    unsafe { &*(*this).private_data.cast::<Chunks>() }.words.as_ptr()
}

unsafe extern "C" fn release_stream(this: *mut ArrowArrayStream) {
    // SAFETY: the stream of the test, released once.
    drop(unsafe { Box::from_raw((*this).private_data.cast::<Chunks>()) });
    // SAFETY: as above.
    unsafe { (*this).release = None };
}

#[test]
fn a_stream_gives_its_chunks_then_none_then_its_words() {
    let chunks = Box::into_raw(Box::new(Chunks { left: 2, words: c"the file is gone" }));
    let stream = ArrowArrayStream {
        get_schema: Some(chunk_schema),
        get_next: Some(next_chunk),
        get_last_error: Some(words),
        release: Some(release_stream),
        private_data: chunks.cast(),
    };
    // SAFETY: as the interface requires it.
    let mut stream = unsafe { OwnedStructure::from_raw(stream) };
    drop(stream.schema().unwrap());
    assert_eq!(stream.next_chunk().unwrap().unwrap().get().length, 1);
    assert_eq!(stream.next_chunk().unwrap().unwrap().get().length, 0);
    assert!(stream.next_chunk().unwrap().is_none());
    assert_eq!(stream.next_chunk().err(), Some(5));
    assert_eq!(stream.last_error(), Some(c"the file is gone"));
    // SAFETY: a stream without callbacks.
    let mut empty = unsafe { OwnedStructure::from_raw(ArrowArrayStream::RELEASED) };
    assert_eq!(
        (empty.schema().err(), empty.next_chunk().err(), empty.last_error()),
        (Some(-1), Some(-1), None)
    );
}
