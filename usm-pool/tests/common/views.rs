//! Random operator graphs rich in views and permits: views at offsets, of views, of the same bytes,
//! of parts; blocks written part by part; permits for any input, for several, for views.

use usm_pool::{Graph, Op, Tensor, TensorKind};

use super::executor::Random;

/// The tensors so far: size, root and offset in it; and the written bytes of each root.
struct World {
    tensors: Vec<(Tensor, u64, usize, u64)>,
    written: Vec<Vec<bool>>,
    readable: Vec<usize>,
}

impl World {
    fn add(&mut self, tensor: Tensor, size: u64, place: Option<(usize, u64)>) -> usize {
        let id = self.tensors.len();
        let (root, at) = place.unwrap_or((id, 0));
        self.written.push(if place.is_none() { vec![false; size as usize] } else { Vec::new() });
        self.tensors.push((tensor, size, root, at));
        id
    }

    /// A view of `of`: often of the same bytes or from the same byte on, otherwise any part.
    fn view(&mut self, random: &mut Random, of: usize) -> usize {
        let (_, whole, root, at) = self.tensors[of];
        let size = if random.below(3) == 0 { whole } else { random.below(whole + 1) };
        let offset = if random.below(2) == 0 { 0 } else { random.below(whole - size + 1) };
        let id = self.tensors.len() as u64;
        self.add(Tensor::new(id, size).alias_of(of as u64, offset), size, Some((root, at + offset)))
    }

    fn write(&mut self, tensor: usize) {
        let (_, size, root, at) = self.tensors[tensor];
        self.written[root][at as usize..(at + size) as usize].fill(true);
        self.readable.push(tensor);
    }

    fn is_written(&self, tensor: usize) -> bool {
        let (_, size, root, at) = self.tensors[tensor];
        self.written[root][at as usize..(at + size) as usize].iter().all(|&written| written)
    }

    /// A tensor with content: mostly a recent one, sometimes through a new view that no operator
    /// makes.
    fn input(&mut self, random: &mut Random) -> Option<usize> {
        let window = self.readable.len().min(5) as u64;
        let of = *self.readable.get(self.readable.len().checked_sub(1 + random.below(window) as usize)?)?;
        if random.below(3) > 0 {
            return Some(of);
        }
        let view = self.view(random, of);
        if random.below(2) == 0 {
            self.readable.push(view);
        }
        Some(view)
    }
}

/// A graph of up to `most` operators.
pub(crate) fn graph(random: &mut Random, most: u64) -> Graph {
    let mut world = World { tensors: Vec::new(), written: Vec::new(), readable: Vec::new() };
    for _ in 0..random.below(3) {
        let (id, size) = (world.tensors.len() as u64, 1 + random.below(96));
        let given = world.add(Tensor::new(id, size).kind(TensorKind::Activation), size, None);
        world.write(given);
    }
    let mut ops = Vec::new();
    let mut outputs = Vec::new();
    // Blocks that are written part by part: the remaining parts.
    let mut parts: Vec<usize> = Vec::new();
    for _ in 0..1 + random.below(most) {
        let mut inputs: Vec<usize> = Vec::new();
        for _ in 0..random.below(4) {
            inputs.extend(world.input(random));
        }
        // Often a view of a tensor that the operator reads already.
        if let (Some(&of), true) = (inputs.first(), random.below(2) == 0) {
            inputs.push(world.view(random, of));
        }
        let mut op = Op::new("").inputs(inputs.iter().map(|&t| t as u64));
        let mut made: Vec<usize> = Vec::new();
        for _ in 0..1 + random.below(8) / 5 {
            let id = world.tensors.len() as u64;
            // Mostly as large as an input, so that permits matter.
            let like = inputs.get(random.below(inputs.len() as u64) as usize).map(|&t| world.tensors[t].1);
            let free = random.below(96);
            let size = if random.below(3) > 0 { like.unwrap_or(free) } else { free };
            match random.below(10) {
                0 if !inputs.is_empty() => made.push(world.view(random, inputs[0])),
                1 | 2 => {
                    let tensor = Tensor::new(id, size).kind(TensorKind::Activation);
                    let root = world.add(tensor, size, None);
                    let cut = random.below(size + 1);
                    for (offset, size) in [(0, cut), (cut, size - cut)] {
                        let id = world.tensors.len() as u64;
                        let part = Tensor::new(id, size).alias_of(root as u64, offset);
                        parts.push(world.add(part, size, Some((root, offset))));
                    }
                    made.extend(parts.pop());
                    if random.below(2) == 0 {
                        made.extend(parts.pop());
                    }
                }
                3 => made.extend(parts.pop()),
                _ => {
                    let tensor =
                        Tensor::new(id, size).alignment(1 << (random.below(4) / 3 * random.below(4)));
                    made.push(world.add(tensor, size, None));
                }
            }
        }
        // An operator that reads a block and writes a part of it would make a view.
        let root = |tensor: usize| world.tensors[tensor].2;
        let torn = |&made: &usize| {
            let view_of_read = inputs.iter().any(|&input| root(input) == root(made));
            view_of_read && parts_of(&world, made)
        };
        let (kept, back): (Vec<_>, Vec<_>) = made.iter().copied().partition(|made| !torn(made));
        parts.extend(back);
        for &output in &kept {
            op = op.outputs([output as u64]);
            for &input in &inputs {
                if random.below(3) == 0 {
                    op = op.in_place(input as u64, output as u64);
                }
            }
        }
        for &output in &kept {
            world.write(output);
            let whole = world.tensors[output].2;
            if whole != output && world.is_written(whole) && !world.readable.contains(&whole) {
                world.readable.push(whole);
            }
            if random.below(12) == 0 {
                outputs.push(output as u64);
            }
        }
        ops.push(op);
    }
    let mut builder = Graph::builder().default_alignment(1);
    for (tensor, ..) in world.tensors {
        builder = builder.tensor(tensor);
    }
    for op in ops {
        builder = builder.op(op);
    }
    for id in outputs {
        builder = builder.output(id);
    }
    builder.build().expect("a well-formed random graph")
}

/// Whether the tensor is a part of a block that no operator has written as a whole.
fn parts_of(world: &World, tensor: usize) -> bool {
    !world.is_written(tensor)
}
