//! Conversions of numbers between any two types and layouts, compared with Rust's `as`.

use usm_core::{
    AllocKind, Allocation, AnyKind, Backend, Device, ErrorKind, Number, Queue, QueueOrder, Strided, UsmVec,
};
use usm_kernel::Programmable;

use super::formats;
use crate::Fixture;
use crate::programs::Random;

/// A number with its parts, of which every type takes what it keeps.
#[derive(Clone, Copy)]
enum Given {
    Integer(i128),
    Real(f64, f64),
}

/// Numbers at the limits of the types, and whatever comes.
fn bytes_of(number: Number, random: &mut Random) -> (Vec<u8>, Given) {
    macro_rules! integer {
        ($ty:ty) => {{
            let any = random.number() as $ty;
            let value = [0, 1, 2, <$ty>::MAX, <$ty>::MIN, any, any / 3][random.below(7)];
            (value.to_ne_bytes().to_vec(), Given::Integer(value.into()))
        }};
    }
    let mut real = || {
        let any = random.number() as i32;
        let limits = [0.0, -0.0, 0.5, -1.5, 1e10, -1e10, 3e38, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        if random.once_in(2) { limits[random.below(limits.len())] } else { f64::from(any) / 512.0 }
    };
    match number {
        Number::Bool => {
            let byte = [0, 1, 7][random.below(3)];
            (vec![byte], Given::Integer(i128::from(byte != 0)))
        }
        Number::I8 => integer!(i8),
        Number::I16 => integer!(i16),
        Number::I32 => integer!(i32),
        Number::I64 => integer!(i64),
        Number::U8 => integer!(u8),
        Number::U16 => integer!(u16),
        Number::U32 => integer!(u32),
        Number::U64 => integer!(u64),
        Number::F32 | Number::C64 => {
            let parts = [real() as f32, real() as f32];
            let bytes = parts.iter().flat_map(|part| part.to_ne_bytes());
            let imaginary = if number == Number::C64 { parts[1] } else { 0.0 };
            (bytes.take(number.size()).collect(), Given::Real(parts[0].into(), imaginary.into()))
        }
        Number::F64 | Number::C128 => {
            let parts = [real(), real()];
            let bytes = parts.iter().flat_map(|part| part.to_ne_bytes());
            let imaginary = if number == Number::C128 { parts[1] } else { 0.0 };
            (bytes.take(number.size()).collect(), Given::Real(parts[0], imaginary))
        }
    }
}

/// The bytes of a number in a type.
fn expected(number: Number, given: Given) -> Vec<u8> {
    macro_rules! part {
        ($ty:ty) => {
            match given {
                Given::Integer(value) => value as $ty,
                Given::Real(value, _) => value as $ty,
            }
            .to_ne_bytes()
            .to_vec()
        };
    }
    let imaginary = if let Given::Real(_, imaginary) = given { imaginary } else { 0.0 };
    match number {
        Number::Bool => {
            let is_true = match given {
                Given::Integer(value) => value != 0,
                Given::Real(real, imaginary) => real != 0.0 || imaginary != 0.0,
            };
            vec![u8::from(is_true)]
        }
        Number::I8 => part!(i8),
        Number::I16 => part!(i16),
        Number::I32 => part!(i32),
        Number::I64 => part!(i64),
        Number::U8 => part!(u8),
        Number::U16 => part!(u16),
        Number::U32 => part!(u32),
        Number::U64 => part!(u64),
        Number::F32 => part!(f32),
        Number::F64 => part!(f64),
        Number::C64 => [part!(f32), (imaginary as f32).to_ne_bytes().to_vec()].concat(),
        Number::C128 => [part!(f64), imaginary.to_ne_bytes().to_vec()].concat(),
    }
}

/// Whether two numbers of a type are equal; NaN is, whatever its bits.
fn are_equal(number: Number, one: &[u8], other: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| match number.part().0 {
        "f32" => f32::from_ne_bytes(bytes.try_into().expect("4 bytes")).is_nan(),
        "f64" => f64::from_ne_bytes(bytes.try_into().expect("8 bytes")).is_nan(),
        _ => false,
    };
    let size = number.part().1;
    one.chunks(size)
        .zip(other.chunks(size))
        .all(|(one, other)| one == other || (is_nan(one) && is_nan(other)))
}

/// Strides of a layout whose axes are in any order, with gaps of whole parts, and its bytes.
fn strides(shape: &[usize], number: Number, random: &mut Random) -> (Vec<isize>, usize, usize) {
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    for last in (1..axes.len()).rev() {
        axes.swap(last, random.below(last + 1));
    }
    let (mut strides, mut covered, mut offset) = (vec![0; shape.len()], number.size(), 0);
    for axis in axes {
        let stride = covered + random.below(2) * number.part().1 * random.below(3);
        strides[axis] = stride as isize;
        if random.once_in(3) {
            strides[axis] = -strides[axis];
            offset += stride * (shape[axis] - 1);
        }
        covered = stride * shape[axis];
    }
    (strides, offset, covered + number.size())
}

fn memory<B: Backend>(queue: &Queue<B>, kind: AllocKind, values: &[u8]) -> Allocation<B> {
    let array = UsmVec::<u8, AnyKind, B>::from_slice_any(queue, queue.context(), kind, values);
    array.expect("memory").into_allocation()
}

fn content<B: Backend>(queue: &Queue<B>, allocation: Allocation<B>) -> Vec<u8> {
    let len = allocation.size();
    // SAFETY: `memory` wrote every byte.
    let array = unsafe { UsmVec::<u8, AnyKind, B>::from_allocation(allocation, len) };
    array.map_err(|(_, error)| error).expect("fits").to_vec(queue).expect("the content")
}

/// One conversion in random layouts. False if the device has no code for it.
fn check<B: Backend>(
    queue: &Queue<B>,
    (to, from): (Number, Number),
    kind: AllocKind,
    random: &mut Random,
) -> bool {
    let shape: Vec<usize> = (0..random.below(4)).map(|_| 1 + random.below(5)).collect();
    let (to_strides, to_offset, to_size) = strides(&shape, to, random);
    let (from_strides, from_offset, from_size) = strides(&shape, from, random);
    let mut source: Vec<u8> = (0..from_size).map(|_| random.number() as u8).collect();
    let before: Vec<u8> = (0..to_size).map(|_| random.number() as u8).collect();
    let mut after = before.clone();
    let mut places = Vec::new();
    for mut number in 0..shape.iter().product::<usize>() {
        let (mut there, mut here) = (to_offset as isize, from_offset as isize);
        for (axis, extent) in shape.iter().enumerate().rev() {
            let index = (number % extent) as isize;
            number /= extent;
            there += index * to_strides[axis];
            here += index * from_strides[axis];
        }
        let (there, here) = (there as usize, here as usize);
        let (bytes, given) = bytes_of(from, random);
        source[here..here + from.size()].copy_from_slice(&bytes);
        after[there..there + to.size()].copy_from_slice(&expected(to, given));
        places.push(there);
    }
    let (dst, src) = (memory(queue, kind, &before), memory(queue, kind, &source));
    let there = Strided::new(to_offset, to.size(), &shape, &to_strides).expect("a layout");
    let here = Strided::new(from_offset, from.size(), &shape, &from_strides).expect("a layout");
    // SAFETY: all bytes are written, and nothing else uses the memory.
    match unsafe { queue.convert_strided_shared((&dst, &there, to), (&src, &here, from)) } {
        Ok(event) => event.wait().expect("the conversion"),
        Err(error) if matches!(error.kind, ErrorKind::Unsupported { .. }) => return false,
        Err(error) => panic!("{to:?} of {from:?}: {error}"),
    }
    let found = content(queue, dst);
    for place in &places {
        let place = *place..place + to.size();
        let (found, after) = (&found[place.clone()], &after[place]);
        assert!(are_equal(to, found, after), "{to:?} of {from:?}: {found:?} instead of {after:?}");
    }
    let is_between = |at: &usize| !places.iter().any(|place| (*place..place + to.size()).contains(at));
    assert!((0..to_size).filter(is_between).all(|at| found[at] == before[at]), "bytes between the elements");
    true
}

/// Conversions equal Rust's, in every kind of memory. `USM_CONVERSIONS` is their number.
pub fn conversions_are_those_of_rust<B: Programmable>(fixture: &Fixture<'_, B>) {
    let mut random = Random::new(37);
    let has_code = !formats(fixture.context).is_empty();
    let queues = [QueueOrder::InOrder, QueueOrder::OutOfOrder]
        .map(|order| fixture.context.queue(order).expect("a queue"));
    for at in 0..skip::cases("USM_CONVERSIONS", 8) as usize {
        // All pairs come in turn, in steps that visit each.
        let pair = at * 31 % (Number::ALL.len() * Number::ALL.len());
        let pair = (Number::ALL[pair / 13], Number::ALL[pair % 13]);
        let kind = AllocKind::ALL[random.below(AllocKind::ALL.len())];
        let converted = check(&queues[random.below(2)], pair, kind, &mut random);
        let is_reached = kind != AllocKind::Device;
        assert!(converted || !(has_code || is_reached), "{pair:?} in {kind} memory");
    }
}

/// The typed form, and what a conversion refuses.
pub fn conversions_refuse_what_they_cannot<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let numbers =
        UsmVec::<f32, Device, B>::from_slice(&queue, &[1.75, -2.5, 300.0, f32::NAN]).expect("an array");
    let mut bytes = UsmVec::<i8, Device, B>::zeroed(&queue, 4).expect("an array");
    match queue.convert(&mut bytes, &numbers) {
        Ok(event) => {
            event.wait().expect("a conversion");
            assert_eq!(bytes.to_vec(&queue).expect("the content"), [1, -2, 127, 0]);
        }
        Err(error) => assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}"),
    }
    let mut fewer = UsmVec::<i8, Device, B>::zeroed(&queue, 3).expect("an array");
    let error = queue.convert(&mut fewer, &numbers).map(drop).expect_err("other lengths");
    assert_eq!(error.kind, ErrorKind::LengthMismatch { expected: 3, found: 4 });
    let (wide, narrow) = (Strided::new(0, 4, &[2], &[4]), Strided::new(8, 2, &[2], &[2]));
    let (wide, narrow) = (wide.expect("a layout"), narrow.expect("a layout"));
    let memory = numbers.allocation();
    let convert = |to: (&Strided<'_>, Number), from: (&Strided<'_>, Number)| {
        // SAFETY: refused before anything runs.
        let outcome = unsafe { queue.convert_strided_shared((memory, to.0, to.1), (memory, from.0, from.1)) };
        outcome.map(drop).expect_err("refused").kind
    };
    let mismatch = ErrorKind::ShapeMismatch { axis: 1, expected: 8, found: 4 };
    assert_eq!(convert((&wide, Number::F64), (&narrow, Number::I16)), mismatch);
    let inside = Strided::new(4, 2, &[2], &[2]).expect("a layout");
    let overlap = convert((&wide, Number::F32), (&inside, Number::I16));
    assert!(matches!(overlap, ErrorKind::Overlap { len: 8, .. }), "{overlap}");
    let beyond = Strided::new(8, 4, &[4], &[4]).expect("a layout");
    let far = convert((&beyond, Number::F32), (&inside, Number::I16));
    assert!(matches!(far, ErrorKind::ShapeMismatch { axis: 0, expected: 4, found: 2 }), "{far}");
}
