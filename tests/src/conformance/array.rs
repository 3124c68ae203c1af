//! Arrays of usm-array, compared with a model that keeps an index for each element.

use std::cell::RefCell;
use std::rc::Rc;

use usm_array::{Array, Error};
use usm_core::{AllocKind, Backend, Queue, QueueOrder};

use crate::Fixture;

/// Programs of a case; `USM_CASES` is their number.
fn programs() -> u64 {
    std::env::var("USM_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(6)
}

/// A small generator: the programs are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// The elements of an array as indices into a vector that its views share.
#[derive(Clone, Debug)]
struct Model {
    memory: Rc<RefCell<Vec<u16>>>,
    indices: Vec<usize>,
    shape: Vec<usize>,
}

impl Model {
    fn values(&self) -> Vec<u16> {
        self.indices.iter().map(|index| self.memory.borrow()[*index]).collect()
    }

    /// The index behind the multi-index that `at` makes of each multi-index of the new shape.
    fn picked(&self, shape: Vec<usize>, at: impl Fn(&[usize]) -> Vec<usize>) -> Self {
        let mut indices = Vec::new();
        for number in 0..shape.iter().product() {
            let (mut rest, mut multi) = (number, vec![0; shape.len()]);
            for (axis, extent) in shape.iter().enumerate().rev() {
                multi[axis] = rest % extent;
                rest /= extent;
            }
            let flat =
                at(&multi).iter().zip(&self.shape).fold(0, |flat, (index, extent)| flat * extent + index);
            indices.push(self.indices[flat]);
        }
        Self { memory: Rc::clone(&self.memory), indices, shape }
    }

    fn store(&self, values: &[u16]) {
        for (index, value) in self.indices.iter().zip(values) {
            self.memory.borrow_mut()[*index] = *value;
        }
    }
}

type Pair<B> = (Array<u16, B>, Model);

fn made<B: Backend + 'static>(random: &mut Random, queue: &Queue<B>, kind: AllocKind) -> Pair<B> {
    let shape: Vec<usize> = (0..random.below(4)).map(|_| [1, 2, 3, 4, 5, 0][random.below(22) % 6]).collect();
    let len = shape.iter().product();
    let values: Vec<u16> = (0..len).map(|_| random.below(60_000) as u16).collect();
    let array = if len == 0 {
        // No runtime gives memory of no bytes.
        let whole = Array::zeros(queue, kind, &[1]).expect("an element");
        let none = whole.select(|axes| axes.range(0, 1, 0)).expect("no element");
        let shape: Vec<isize> = shape.iter().map(|extent| *extent as isize).collect();
        none.reshaped(&shape).expect("a shape without elements")
    } else {
        Array::from_slice(queue, kind, &shape, &values).expect("an array")
    };
    (array, Model { memory: Rc::new(RefCell::new(values)), indices: (0..len).collect(), shape })
}

/// A view of the array, and the same of the model.
fn view<B: Backend + 'static>(random: &mut Random, (array, model): &Pair<B>) -> Pair<B> {
    let ndim = model.shape.len();
    match random.below(4) {
        0 => {
            let shape: Vec<usize> = model.shape.iter().rev().copied().collect();
            let picked = model.picked(shape, |multi| multi.iter().rev().copied().collect());
            (array.transposed(), picked)
        }
        1 if ndim > 0 && model.shape[0] > 0 => {
            let row = random.below(model.shape[0]);
            let index =
                if random.below(2) == 0 { row as isize } else { row as isize - model.shape[0] as isize };
            let picked = model.picked(model.shape[1..].to_vec(), |multi| [&[row], multi].concat());
            (array.row(index).expect("a row"), picked)
        }
        2 => {
            // A range of each axis.
            let ranges: Vec<(usize, isize, usize)> =
                model.shape.iter().map(|extent| range(random, *extent)).collect();
            let part = array.select(|axes| {
                ranges.iter().try_for_each(|(start, step, count)| axes.range(*start as isize, *step, *count))
            });
            let shape = ranges.iter().map(|(_, _, count)| *count).collect();
            let at = |multi: &[usize]| {
                let steps = multi.iter().zip(&ranges);
                steps
                    .map(|(index, (start, step, _))| start.wrapping_add_signed(step * *index as isize))
                    .collect()
            };
            (part.expect("ranges"), model.picked(shape, at))
        }
        _ => {
            let shape = [model.indices.len() as isize, 1];
            let flat = match array.reshaped(&shape) {
                Ok(flat) => flat,
                // Its strides need a copy.
                Err(Error::Reshape { .. }) => return (array.clone(), model.clone()),
                Err(error) => panic!("{error}"),
            };
            (flat, Model { shape: vec![model.indices.len(), 1], ..model.clone() })
        }
    }
}

/// Start, step and number of elements of an axis.
fn range(random: &mut Random, extent: usize) -> (usize, isize, usize) {
    if extent == 0 {
        return (0, 1, 0);
    }
    let (start, step) = (random.below(extent), [1, -1, 2, -2][random.below(4)]);
    let room = if step > 0 { extent - 1 - start } else { start };
    (start, step, random.below(room / step.unsigned_abs() + 2))
}

/// The model of a source in the shape of a destination; `None` if it does not fit.
fn broadcast(src: &Model, shape: &[usize]) -> Option<Model> {
    let missing = shape.len().checked_sub(src.shape.len())?;
    let fits = src.shape.iter().zip(&shape[missing..]).all(|(from, to)| from == to || *from == 1);
    let at = |multi: &[usize]| {
        let places = multi[missing..].iter().zip(&src.shape);
        places.map(|(index, extent)| if *extent == 1 { 0 } else { *index }).collect()
    };
    fits.then(|| src.picked(shape.to_vec(), at))
}

/// Random programs of views, copies, fills and stores over all kinds of memory and two contexts
/// give what a list of indices gives.
pub fn arrays_are_lists_of_indices<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let queues: Vec<Queue<B>> = [fixture.context, fixture.other]
        .iter()
        .flat_map(|context| [QueueOrder::InOrder, QueueOrder::OutOfOrder].map(|order| context.queue(order)))
        .collect::<usm_core::Result<_>>()
        .expect("queues");
    let kinds = fixture.kinds();
    for program in 0..programs() {
        let mut random = Random(program);
        let mut arrays: Vec<Pair<B>> = Vec::new();
        for step in 0..60 {
            let action = if arrays.len() < 2 { 0 } else { random.below(6) };
            let place = random.below(arrays.len());
            match action {
                0 => {
                    let (queue, kind) = (random.below(queues.len()), random.below(kinds.len()));
                    arrays.push(made(&mut random, &queues[queue], kinds[kind]));
                }
                1 | 2 => {
                    let part = view(&mut random, &arrays[place]);
                    arrays.push(part);
                }
                3 => {
                    let other = random.below(arrays.len());
                    let ((dst, to), (src, from)) = (&arrays[place], &arrays[other]);
                    let is_late = random.below(2) == 0;
                    let outcome =
                        if is_late { dst.submit_copy_from(src).map(drop) } else { dst.copy_from(src) };
                    match broadcast(from, &to.shape) {
                        Some(from) => {
                            outcome.unwrap_or_else(|error| panic!("program {program}, step {step}: {error}"));
                            to.store(&from.values());
                        }
                        None => assert!(matches!(outcome, Err(Error::Broadcast { .. })), "{outcome:?}"),
                    }
                }
                4 => {
                    let (array, model) = &arrays[place];
                    let value = random.below(60_000) as u16;
                    array.fill(value).expect("a fill");
                    model.store(&vec![value; model.indices.len()]);
                }
                _ => {
                    let (array, model) = &arrays[place];
                    let indices: Vec<usize> =
                        model.shape.iter().map(|extent| random.below(*extent)).collect();
                    if !model.indices.is_empty() {
                        let value = random.below(60_000) as u16;
                        array.set(&indices, value).expect("an element");
                        model.picked(vec![], |_| indices.clone()).store(&[value]);
                        assert_eq!(array.get(&indices).expect("an element"), value);
                    }
                }
            }
            let (array, model) = &arrays[random.below(arrays.len())];
            let shape = array.shape().to_vec();
            assert_eq!(shape, model.shape, "program {program}, step {step}");
            assert_eq!(array.to_vec().expect("elements"), model.values(), "program {program}, step {step}");
        }
    }
}
