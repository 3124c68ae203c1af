//! OpenCL memory objects, created by direct calls and adopted.

use core::ptr;

use usm_core::{ErrorKind, MemoryType};
use usm_opencl::raw::{borrow_buffer, cl_command_queue, cl_context, cl_event, cl_mem, cl_uint, take_buffer};

use super::{Raw, Release, Status, Theirs, with};
use crate::pattern;

impl Theirs {
    /// A buffer with one reference, the caller's.
    fn buffer(&self, size: usize) -> cl_mem {
        type Create = unsafe extern "C" fn(cl_context, u64, usize, Raw, *mut Status) -> cl_mem;
        let (create, mut status): (Create, Status) = (self.call(c"clCreateBuffer"), 0);
        // SAFETY: a live context, no host pointer.
        let buffer = unsafe { create(self.context, 1, size, ptr::null_mut(), &raw mut status) };
        assert_eq!(status, 0);
        buffer
    }

    /// `size` bytes of a buffer at `origin`, as a buffer.
    fn part(&self, whole: cl_mem, origin: usize, size: usize) -> cl_mem {
        type Create = unsafe extern "C" fn(cl_mem, u64, cl_uint, *const [usize; 2], *mut Status) -> cl_mem;
        let (create, mut status): (Create, Status) = (self.call(c"clCreateSubBuffer"), 0);
        let region = [origin, size];
        // SAFETY: a live buffer, and CL_BUFFER_CREATE_TYPE_REGION with its structure.
        let part = unsafe { create(whole, 1, 0x1220, &raw const region, &raw mut status) };
        assert_eq!(status, 0);
        part
    }

    /// The content, by a blocking read on the other library's queue.
    fn content<const N: usize>(&self, buffer: cl_mem) -> [u8; N] {
        type Read = unsafe extern "C" fn(
            cl_command_queue,
            cl_mem,
            cl_uint,
            usize,
            usize,
            Raw,
            cl_uint,
            *const cl_event,
            *mut cl_event,
        ) -> Status;
        let (read, mut bytes): (Read, [u8; N]) = (self.call(c"clEnqueueReadBuffer"), [0; N]);
        let to = bytes.as_mut_ptr().cast();
        // SAFETY: a live queue and buffer, room for the bytes, and the call waits.
        let status = unsafe { read(self.queue, buffer, 1, 0, N, to, 0, ptr::null(), ptr::null_mut()) };
        assert_eq!(status, 0);
        bytes
    }

    fn buffer_references(&self, buffer: cl_mem) -> cl_uint {
        self.references(c"clGetMemObjectInfo", buffer, 0x1105)
    }

    fn release_buffer(&self, buffer: cl_mem) {
        let release: Release = self.call(c"clReleaseMemObject");
        // SAFETY: the other library's reference, released once.
        assert_eq!(unsafe { release(buffer) }, 0);
    }
}

#[test]
fn opencl_buffers_of_theirs_are_filled_and_copied_by_ours() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        let (kept, given) = (theirs.buffer(4096), theirs.buffer(4096));
        // SAFETY: live buffers of the context. The borrowed one is used only between operations of
        // the backend, and ownership of the second passes.
        let (mut borrowed, mut taken) =
            unsafe { (borrow_buffer(&context, kept).unwrap(), take_buffer(&context, given).unwrap()) };
        assert_eq!((borrowed.size(), taken.size()), (4096, 4096));
        assert_eq!((borrowed.raw().as_raw(), taken.raw().as_raw()), (kept, given));
        assert_eq!((theirs.buffer_references(kept), theirs.buffer_references(given)), (2, 1));
        let row = *context.stats().of(MemoryType::Buffer);
        assert_eq!((row.live, row.current), (1, 4096), "the ledger does not count borrowed buffers");
        let _ = queue.fill_buffer(&mut taken, 0, 4096, &[1, 2, 3, 4]).unwrap();
        let _ = queue.fill_buffer(&mut taken, 16, 16, &pattern(16)).unwrap();
        queue.copy_buffer(&mut borrowed, 0, &taken, 0, 4096).unwrap().wait().unwrap();
        let found = theirs.content::<4096>(kept);
        assert_eq!(
            (&found[..4], &found[16..32], &found[32..36]),
            (&[1, 2, 3, 4][..], &pattern(16)[..], &[1, 2, 3, 4][..])
        );
        // The other library may release its reference first, with work in flight.
        let _ = queue.fill_buffer(&mut borrowed, 0, 4096, &[7]).unwrap();
        theirs.release_buffer(kept);
        let mut bytes = [0; 4096];
        queue.read_buffer_to(&borrowed, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 4096]);
        let retain: Release = theirs.call(c"clRetainMemObject");
        // SAFETY: live buffers; the references are released below.
        assert_eq!(unsafe { (retain(kept), retain(given)) }, (0, 0));
        drop((borrowed, taken));
        context.synchronize(core::time::Duration::from_secs(10)).unwrap();
        assert_eq!((theirs.buffer_references(kept), theirs.buffer_references(given)), (1, 1));
        let row = *context.stats().of(MemoryType::Buffer);
        assert_eq!((row.live, row.current), (0, 0));
        theirs.release_buffer(kept);
        theirs.release_buffer(given);
        drop((queue, context));
        theirs.release();
    });
}

/// Sub-buffers of one buffer share bytes where their regions overlap. A copy there is refused; a
/// copy beside works.
#[test]
fn opencl_parts_of_one_buffer_overlap_where_their_regions_do() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        let whole = theirs.buffer(4096);
        let (low, high) = (theirs.part(whole, 0, 2048), theirs.part(whole, 1024, 2048));
        // SAFETY: live buffers of the context; each operation below is waited for before the next.
        let (mut all, mut left, right) = unsafe {
            (
                borrow_buffer(&context, whole).unwrap(),
                borrow_buffer(&context, low).unwrap(),
                borrow_buffer(&context, high).unwrap(),
            )
        };
        assert_eq!((left.size(), right.size()), (2048, 2048));
        let values = pattern(4096);
        queue.write_buffer_from(&mut all, 0, &values).unwrap().wait().unwrap();
        // Byte 1024 of the left part is byte 0 of the right one.
        let refused = queue.copy_buffer(&mut left, 1024, &right, 0, 64).map(drop).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Overlap { dst: 1024, src: 1024, len: 64 });
        let refused = queue.copy_buffer(&mut left, 1000, &right, 0, 25).map(drop).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Overlap { dst: 1000, src: 1024, len: 25 });
        let refused = queue.copy_buffer(&mut all, 3000, &right, 1950, 64).map(drop).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Overlap { dst: 3000, src: 2974, len: 64 });
        queue.copy_buffer(&mut left, 1000, &right, 0, 24).unwrap().wait().unwrap();
        queue.copy_buffer(&mut left, 0, &right, 0, 64).unwrap().wait().unwrap();
        let mut found = vec![0; 4096];
        queue.read_buffer_to(&all, 0, &mut found).unwrap();
        assert_eq!(found[..64], values[1024..1088]);
        assert_eq!(found[1000..1024], values[1024..1048]);
        assert_eq!(found[1024..], values[1024..]);
        drop((all, left, right));
        context.synchronize(core::time::Duration::from_secs(10)).unwrap();
        [low, high, whole].into_iter().for_each(|buffer| theirs.release_buffer(buffer));
        drop((queue, context));
        theirs.release();
    });
}

/// Refused, and the caller keeps the reference.
#[test]
fn opencl_memory_objects_that_are_no_buffers_of_the_context_are_refused() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        let other = Theirs::start(backend).unwrap();
        let foreign = other.buffer(64);
        // SAFETY: a live memory object that is not used.
        let refused = unsafe { [borrow_buffer(&context, foreign), take_buffer(&context, foreign)] };
        for refused in refused {
            let (expected, refused) = (context.id(), refused.unwrap_err());
            assert_eq!(refused.kind, ErrorKind::WrongContext { expected, found: 0 });
            // Its context has no number, and the error invents none.
            let said = refused.to_string();
            assert!(said.ends_with(&format!("context {expected}")) && !said.contains("context 0"), "{said}");
        }
        assert_eq!(other.buffer_references(foreign), 1);
        other.release_buffer(foreign);
        type CreateImage = unsafe extern "C" fn(
            cl_context,
            u64,
            *const [cl_uint; 2],
            *const [usize; 9],
            Raw,
            *mut Status,
        ) -> cl_mem;
        let (create, mut status): (CreateImage, Status) = (theirs.call(c"clCreateImage"), 0);
        // CL_RGBA of CL_UNORM_INT8; CL_MEM_OBJECT_IMAGE1D of 16 pixels.
        let (format, description) = ([0x10B5, 0x10D2], [0x10F4, 16, 0, 0, 0, 0, 0, 0, 0]);
        // SAFETY: a live context, structures of the specification's layout, no host pointer.
        let image = unsafe {
            create(
                theirs.context,
                1,
                &raw const format,
                &raw const description,
                ptr::null_mut(),
                &raw mut status,
            )
        };
        if status == 0 {
            // SAFETY: a live memory object that is not used.
            let refused = unsafe { borrow_buffer(&context, image) }.unwrap_err();
            assert!(matches!(refused.kind, ErrorKind::Unsupported { .. }), "{refused}");
            assert_eq!(theirs.buffer_references(image), 1);
            theirs.release_buffer(image);
        } else {
            usm_tests::skip::part("images of OpenCL", format_args!("status {status}"));
        }
        assert_eq!(context.stats().of(MemoryType::Buffer).count, 0);
        drop((queue, context));
        other.release();
        theirs.release();
    });
}
