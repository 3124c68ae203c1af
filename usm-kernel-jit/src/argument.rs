//! Arguments of kernels whose types are known at run time only.

use usm_core::{Access, Allocation, Backend, Kind, UsmVec};
use usm_kernel::{Bf16, F16, Structure};
use usm_kernel_ir::{Literal, Scalar};

mod sealed {
    /// Its implementations are all types of a kernel's elements, which the list below has, and
    /// tuples of them.
    pub trait Sealed {}
}

/// A type of elements and of scalars of kernels.
pub trait Element: bytemuck::Pod + sealed::Sealed {
    /// The type in a kernel.
    const SCALAR: Scalar;
}

macro_rules! element {
    ($($ty:ty => $scalar:ident),* $(,)?) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const SCALAR: Scalar = Scalar::$scalar;
        }
    )*};
}

element! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    F16 => F16, Bf16 => Bf16, f32 => F32, f64 => F64,
}

/// A tuple of one to sixteen numbers.
pub trait Tuple: sealed::Sealed {
    /// The numbers, in their order.
    fn literals(&self) -> Vec<Literal>;
}

macro_rules! tuple {
    ($first:ident $($ty:ident)*) => {
        impl<$first: Element, $($ty: Element),*> sealed::Sealed for ($first, $($ty,)*) {}
        impl<$first: Element, $($ty: Element),*> Tuple for ($first, $($ty,)*) {
            #[allow(non_snake_case, reason = "each variable has the name of its type")]
            fn literals(&self) -> Vec<Literal> {
                let ($first, $($ty,)*) = self;
                vec![literal($first), $(literal($ty)),*]
            }
        }
        tuple!($($ty)*);
    };
    () => {};
}

tuple!(T0 T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T14 T15);

fn literal<T: Element>(value: &T) -> Literal {
    Literal::from_ne_bytes(T::SCALAR, bytemuck::bytes_of(value))
}

/// An argument of a [`Launch`](crate::Launch).
#[derive(Debug)]
pub struct Argument<'a, B: Backend>(pub(crate) Content<'a, B>);

#[derive(Debug)]
pub(crate) enum Content<'a, B: Backend> {
    Array(Memory<'a, B>),
    Value(Literal),
    /// A structure by value.
    Structure(Fields, Vec<Literal>),
    /// The numbers of a tuple or structure by value.
    Literals(Vec<Literal>),
}

/// The memory of an array.
#[derive(Debug)]
pub(crate) struct Memory<'a, B: Backend> {
    pub(crate) allocation: &'a Allocation<B>,
    pub(crate) element: Scalar,
    /// In elements.
    pub(crate) len: u64,
    pub(crate) access: Access,
    /// The structure whose fields the elements are.
    pub(crate) structure: Option<Fields>,
    /// Whether another array of the launch has the same memory, as a column of the same structures.
    pub(crate) is_again: bool,
}

impl<B: Backend> Clone for Memory<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Memory<'_, B> {}

/// Name and fields of a structure of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [&'static str],
    /// The types of the fields; of one type none.
    pub(crate) types: &'static [&'static str],
}

impl<'a, B: Backend> Argument<'a, B> {
    /// An array that the kernel reads. For a parameter of structures it is their fields, one after
    /// the other.
    #[must_use]
    pub fn read<T: Element, K: Kind>(array: &'a UsmVec<T, K, B>) -> Self {
        Self::array(array.allocation(), T::SCALAR, array.len(), Access::Read)
    }

    /// An array that the kernel reads and writes, also by atomic operations.
    #[must_use]
    pub fn write<T: Element, K: Kind>(array: &'a mut UsmVec<T, K, B>) -> Self {
        Self::array(array.allocation(), T::SCALAR, array.len(), Access::Write)
    }

    /// An array of structures that the kernel reads: of the name, the fields and the types of
    /// fields that the kernel's text declares for this parameter.
    #[must_use]
    pub fn read_structures<S: Structure<Field: Element>, K: Kind>(array: &'a UsmVec<S, K, B>) -> Self {
        Self::structures::<S>(array.allocation(), array.len(), Access::Read)
    }

    /// As [`read_structures`](Self::read_structures), for an array that the kernel writes too.
    #[must_use]
    pub fn write_structures<S: Structure<Field: Element>, K: Kind>(array: &'a mut UsmVec<S, K, B>) -> Self {
        Self::structures::<S>(array.allocation(), array.len(), Access::Write)
    }

    /// Bytes that the kernel reads as whole elements of a type; the rest after the last one is not
    /// used. `None` for `bool`, of which not every byte is a value.
    #[must_use]
    pub fn read_as<K: Kind>(bytes: &'a UsmVec<u8, K, B>, element: Scalar) -> Option<Self> {
        let len = elements(bytes.len(), element)?;
        Some(Self::array(bytes.allocation(), element, len, Access::Read))
    }

    /// As [`read_as`](Self::read_as), for an array that the kernel writes too.
    #[must_use]
    pub fn write_as<K: Kind>(bytes: &'a mut UsmVec<u8, K, B>, element: Scalar) -> Option<Self> {
        let len = elements(bytes.len(), element)?;
        Some(Self::array(bytes.allocation(), element, len, Access::Write))
    }

    /// A scalar.
    #[must_use]
    pub fn value<T: Element>(value: T) -> Self {
        Self(Content::Value(literal(&value)))
    }

    /// A tuple by value, of the types that the kernel's text declares; `u64` for `usize`.
    #[must_use]
    pub fn tuple<T: Tuple>(value: T) -> Self {
        Self(Content::Literals(value.literals()))
    }

    /// The numbers of a tuple or structure by value, of types that are known at run time only.
    /// Names of fields are not compared. Bits beyond the width of a type are not used.
    #[must_use]
    pub fn literals(values: &[Literal]) -> Self {
        let values = values.iter().map(|value| Literal::integer(value.ty, value.bits));
        Self(Content::Literals(values.collect()))
    }

    /// A structure by value: of the name, the fields and the types of fields that the kernel's text
    /// declares for this parameter.
    #[must_use]
    pub fn structure<S: Structure<Field: Element>>(value: &S) -> Self {
        let fields = Fields::of::<S>();
        let mut rest = bytemuck::bytes_of(value);
        let types = fields.scalars(S::Field::SCALAR);
        let part = |ty: Scalar| {
            // A structure that is not its fields is refused by its types.
            let (part, more) = rest.split_at_checked(ty.bytes() as usize)?;
            rest = more;
            Some(Literal::from_ne_bytes(ty, part))
        };
        Self(Content::Structure(fields, types.map_while(part).collect()))
    }

    /// A scalar of a type that is known at run time only. Bits beyond the width of the type are
    /// not used.
    #[must_use]
    pub const fn literal(value: Literal) -> Self {
        Self(Content::Value(Literal::integer(value.ty, value.bits)))
    }

    const fn array(allocation: &'a Allocation<B>, element: Scalar, len: usize, access: Access) -> Self {
        Self(Content::Array(Memory {
            allocation,
            element,
            len: len as u64,
            access,
            structure: None,
            is_again: false,
        }))
    }

    fn structures<S: Structure<Field: Element>>(
        allocation: &'a Allocation<B>,
        structures: usize,
        access: Access,
    ) -> Self {
        const {
            let bytes = size_of::<S>() / size_of::<S::Field>();
            assert!(
                !S::TYPES.is_empty() || bytes == S::FIELDS.len(),
                "a structure has the bytes of its fields"
            );
        }
        Self(Content::Array(Memory {
            allocation,
            element: S::Field::SCALAR,
            // The bytes of the structures are no more than a machine has.
            len: (structures * (size_of::<S>() / size_of::<S::Field>())) as u64,
            access,
            structure: Some(Fields::of::<S>()),
            is_again: false,
        }))
    }
}

impl Fields {
    const fn of<S: Structure>() -> Self {
        Self { name: S::NAME, fields: S::FIELDS, types: S::TYPES }
    }

    /// The types of the fields; `one` where all have one type.
    fn scalars(self, one: Scalar) -> impl Iterator<Item = Scalar> {
        (0..self.fields.len()).map_while(move |position| match self.types {
            [] => Some(one),
            types => Scalar::from_name(types.get(position)?),
        })
    }
}

fn elements(bytes: usize, element: Scalar) -> Option<usize> {
    if element == Scalar::Bool {
        return None;
    }
    Some(bytes / usize::try_from(element.bytes()).ok()?)
}
