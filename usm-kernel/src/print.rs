//! What a kernel from one source prints.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::OnceLock;

use bytemuck::Pod;
use usm_core::{Access, Allocation, Backend, Device, Event, Queue, Usage, UsmVec};
use usm_kernel_ir::{Kernel, Scalar, text};

use crate::argument::{
    Arguments, Parameter, ParameterInfo, ParameterKind, RawArgument, RawSlice, Sealed, Signature,
};
use crate::error::LaunchError;
use crate::sharing::{Exclusive, SharedElement, Sharing};

/// A kernel that prints.
///
/// # Safety
/// The text form is that of the body: the arrays of a launch have its lengths.
pub unsafe trait Prints: Send + Sync + 'static {
    /// Its text form.
    const NODES: Option<&'static str>;
}

/// The parameter for what a kernel prints. A launch adds the argument.
pub struct Log<K>(PhantomData<K>);

/// A launch's memory on the host for what it prints: lines that are printed when it is over.
pub struct LogMemory<K: Prints> {
    /// Made when a body needs it.
    arrays: OnceLock<Arrays>,
    kernel: PhantomData<fn() -> K>,
}

struct Arrays {
    kernel: Kernel,
    counter: [AtomicU32; 1],
    integers: Column<i64>,
    singles: Column<f32>,
    doubles: Column<f64>,
}

/// An array that bodies write and the end of the launch reads.
struct Column<T>(Box<[SharedElement<T>]>);

/// The arrays of a launch for what it prints.
#[allow(missing_debug_implementations)]
pub struct LogView<'v, F: Sharing> {
    // Only a launch makes one, with arrays of the lengths that proofs trust.
    counter: &'v [AtomicU32],
    integers: F::Array<'v, i64>,
    singles: F::Array<'v, f32>,
    doubles: F::Array<'v, f64>,
}

impl<'v, F: Sharing> LogView<'v, F> {
    /// The number of lines, and the columns of integers, `f32` and `f64`.
    #[must_use]
    #[allow(clippy::type_complexity)]
    pub fn into_arrays(self) -> (&'v [AtomicU32], F::Array<'v, i64>, F::Array<'v, f32>, F::Array<'v, f64>) {
        (self.counter, self.integers, self.singles, self.doubles)
    }
}

impl<K> fmt::Debug for Log<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl<K: Prints> fmt::Debug for LogMemory<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogMemory")
    }
}

impl<T: Pod> Column<T> {
    fn new(kernel: &Kernel, ty: Scalar) -> Self {
        let logs = kernel.logs();
        let log = logs.iter().find(|(id, _)| kernel.array(*id).element == ty);
        let length = log.map_or(0, |(_, length)| *length);
        Self((0..length).map(|_| SharedElement::new(T::zeroed())).collect())
    }

    /// # Safety
    /// As for [`Sharing::array`].
    unsafe fn view<'v, F: Sharing>(&'v self) -> F::Array<'v, T>
    where
        T: Send + Sync,
    {
        let raw = RawSlice::new(self.0.as_ptr().cast_mut().cast(), self.0.len());
        // SAFETY: the caller's promise; an element has the layout of `T`, and may be written
        // through a shared reference.
        unsafe { F::array(&raw) }
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.0.iter_mut().flat_map(|element| bytemuck::bytes_of(element.get_mut()).to_vec()).collect()
    }
}

impl Arrays {
    fn new(nodes: Option<&str>) -> Self {
        let kernel = nodes.and_then(|nodes| text::parse(nodes).ok());
        let kernel = kernel.expect("the attribute wrote the nodes");
        Self {
            counter: [AtomicU32::new(0)],
            integers: Column::new(&kernel, Scalar::I64),
            singles: Column::new(&kernel, Scalar::F32),
            doubles: Column::new(&kernel, Scalar::F64),
            kernel,
        }
    }

    fn show(&mut self) {
        let mut contents = Vec::new();
        for (id, _) in self.kernel.logs() {
            contents.push(match self.kernel.array(id).element {
                Scalar::U32 => self.counter[0].get_mut().to_ne_bytes().to_vec(),
                Scalar::F32 => self.singles.bytes(),
                Scalar::F64 => self.doubles.bytes(),
                _ => self.integers.bytes(),
            });
        }
        show_printed(&self.kernel, &contents);
    }
}

/// What receives the lines of launches; null stands for the standard output.
static PRINTER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Sends what kernels print to a function instead of the standard output; `None` undoes that. It
/// gets the lines of one launch at a time, long ones in pieces, on the thread that launched or ran
/// it. Where a queue runs its work on one thread, the launch is over only when the function has
/// returned: it must not wait for work of that queue. A panic in it passes to the launch, but is
/// dropped where the launch itself panics.
pub fn set_printer(printer: Option<fn(&str)>) {
    let pointer = printer.map_or(ptr::null_mut(), |printer| printer as *mut ());
    PRINTER.store(pointer, Ordering::Release);
}

/// Prints what the arrays of a launch contain.
#[doc(hidden)]
pub fn show_printed(kernel: &Kernel, contents: &[Vec<u8>]) {
    let printer = PRINTER.load(Ordering::Acquire);
    // SAFETY: only `set_printer` stores a pointer, which is a function of this type.
    let printer = (!printer.is_null()).then(|| unsafe { core::mem::transmute::<*mut (), fn(&str)>(printer) });
    // A second panic would end the process.
    let panics = std::thread::panicking();
    kernel.show_lines(contents, &mut |text| match printer {
        Some(printer) if panics => drop(std::panic::catch_unwind(|| printer(text))),
        Some(printer) => printer(text),
        None if panics => {
            let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
        }
        None => std::print!("{text}"),
    });
}

impl<K: Prints> Drop for LogMemory<K> {
    fn drop(&mut self) {
        if let Some(arrays) = self.arrays.get_mut() {
            arrays.show();
        }
    }
}

impl<K> Sealed for Log<K> {}
impl<K: Prints> Parameter for Log<K> {
    type Raw = LogMemory<K>;
    type View<'v, F: Sharing> = LogView<'v, F>;
    type Value = ();
    type Form = fn(K);
    const INFO: ParameterInfo = ParameterInfo { kind: ParameterKind::Atomic, element_bytes: 0 };

    fn value(_: &Self::View<'_, Exclusive>) {}

    fn raw_value(_: &Self::Raw) {}

    fn view_len(_: &Self::View<'_, Exclusive>) -> usize {
        0
    }

    #[inline]
    fn reborrow<'s, F: Sharing>(view: &'s mut LogView<'_, F>) -> LogView<'s, F> {
        LogView {
            counter: view.counter,
            integers: F::reborrow(&mut view.integers),
            singles: F::reborrow(&mut view.singles),
            doubles: F::reborrow(&mut view.doubles),
        }
    }

    fn raw_len(_: &Self::Raw) -> usize {
        0
    }

    fn passed(_: &Self::Raw) -> RawArgument<'_> {
        RawArgument::Log(K::NODES)
    }

    unsafe fn view<'v, F: Sharing>(raw: &'v LogMemory<K>) -> LogView<'v, F> {
        let arrays = raw.arrays.get_or_init(|| Arrays::new(K::NODES));
        LogView {
            counter: &arrays.counter,
            // SAFETY: the caller's promise.
            integers: unsafe { arrays.integers.view::<F>() },
            // SAFETY: as above.
            singles: unsafe { arrays.singles.view::<F>() },
            // SAFETY: as above.
            doubles: unsafe { arrays.doubles.view::<F>() },
        }
    }
}

macro_rules! arguments_and_log {
    ($($parameter:ident $argument:ident),+) => {
        // SAFETY: the program's arguments keep the promise; the log refers to no other memory.
        unsafe impl<B: Backend, K: Prints, $($parameter: Parameter, $argument),+>
            Arguments<($($parameter,)+ Log<K>,), B> for ($($argument,)+)
        where
            Self: Arguments<($($parameter,)+), B>,
        {
            #[allow(non_snake_case)]
            fn raw(&mut self) -> <($($parameter,)+ Log<K>,) as Signature>::Raw {
                let ($($parameter,)+) = Arguments::<($($parameter,)+), B>::raw(self);
                ($($parameter,)+ LogMemory { arrays: OnceLock::new(), kernel: PhantomData },)
            }

            fn for_each_allocation(&self, visit: impl FnMut(&Allocation<B>)) {
                Arguments::<($($parameter,)+), B>::for_each_allocation(self, visit);
            }

            fn with_usages<R>(&self, receive: impl FnOnce(&[Usage<'_, B>]) -> R) -> R {
                Arguments::<($($parameter,)+), B>::with_usages(self, receive)
            }
        }
    };
}

arguments_and_log!(P0 A0);
arguments_and_log!(P0 A0, P1 A1);
arguments_and_log!(P0 A0, P1 A1, P2 A2);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7, P8 A8);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7, P8 A8, P9 A9);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7, P8 A8, P9 A9, P10 A10);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7, P8 A8, P9 A9, P10 A10, P11 A11);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7, P8 A8, P9 A9, P10 A10, P11 A11, P12 A12);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7, P8 A8, P9 A9, P10 A10, P11 A11, P12 A12, P13 A13);
arguments_and_log!(P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7, P8 A8, P9 A9, P10 A10, P11 A11, P12 A12, P13 A13, P14 A14);

/// The arrays of a launch on a device for what it prints.
pub(crate) struct DeviceLog<B: Backend> {
    kernel: Kernel,
    /// 64-bit words, the widest that are stored.
    arrays: Vec<UsmVec<u64, Device, B>>,
}

impl<B: Backend> DeviceLog<B> {
    /// Arrays of zeros.
    pub(crate) fn new(queue: &Queue<B>, nodes: Option<&str>) -> Result<Self, LaunchError> {
        let kernel = nodes.and_then(|nodes| text::parse(nodes).ok());
        let kernel = kernel.expect("the attribute wrote the nodes");
        let words = |(id, length)| {
            let bytes: u64 = kernel.array(id).element.bytes() * length;
            UsmVec::zeroed(queue, bytes.div_ceil(8) as usize)
        };
        let arrays = kernel.logs().into_iter().map(words).collect::<Result<_, _>>()?;
        Ok(Self { kernel, arrays })
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = usize> {
        self.arrays.iter().map(|array| array.as_ptr() as usize)
    }

    pub(crate) fn usages(&self) -> impl Iterator<Item = Usage<'_, B>> {
        self.arrays.iter().map(|array| Usage::of(array.allocation(), Access::Write))
    }

    /// Waits for a launch and prints what it stored. Its failure stays with the event.
    pub(crate) fn show(&self, queue: &Queue<B>, event: &Event<B>) {
        let _ = event.wait();
        let contents = self.arrays.iter().map(|array| array.to_vec(queue));
        let contents: Result<Vec<_>, _> = contents.collect();
        let Ok(contents) = contents else { return };
        let bytes: Vec<Vec<u8>> = contents.iter().map(|words| bytemuck::cast_slice(words).to_vec()).collect();
        show_printed(&self.kernel, &bytes);
    }
}
