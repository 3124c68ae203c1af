//! The changes to a right plan.

use usm_pool::{Certificate, Memory, Plan, Problem, Queue};

/// A name and a change of a plan. The change has no effect if the plan lacks that part.
pub(super) type Mutation = (&'static str, fn(&mut Plan, &Problem));

/// All parts except the certificate.
pub(super) const PLAN: [Mutation; 58] = [
    ("offsets empty", |plan, _| plan.offsets.clear()),
    ("offsets shorter", |plan, _| shorter(&mut plan.offsets)),
    ("offsets longer", |plan, _| plan.offsets.push(0)),
    ("placement empty", |plan, _| plan.placement.clear()),
    ("placement shorter", |plan, _| shorter(&mut plan.placement)),
    ("placement longer", |plan, _| plan.placement.push(Memory::Device)),
    ("placement longer by host memory", |plan, _| plan.placement.push(Memory::Host)),
    ("offsets and placement shorter", |plan, _| {
        shorter(&mut plan.offsets);
        shorter(&mut plan.placement);
    }),
    ("offsets and placement longer", |plan, _| {
        plan.offsets.push(1 << 40);
        plan.placement.push(Memory::Device);
    }),
    ("offsets and placement empty", |plan, _| {
        plan.offsets.clear();
        plan.placement.clear();
    }),
    ("rows empty", |plan, _| plan.rows.clear()),
    ("rows shorter", |plan, _| shorter(&mut plan.rows)),
    ("first row missing", |plan, _| plan.rows = plan.rows[1..].to_vec()),
    ("a row twice", |plan, _| plan.rows.push(plan.rows[0])),
    ("rows exchanged", |plan, _| plan.rows.swap(0, 1)),
    ("rows reversed", |plan, _| plan.rows.reverse()),
    ("all rows at 0", |plan, _| plan.rows.iter_mut().for_each(|row| row.offset = 0)),
    ("a row one byte on", |plan, _| plan.rows[2].offset += 1),
    ("a row elsewhere", |plan, _| plan.rows[1].offset += 4096),
    ("a row of another id", |plan, _| plan.rows[1].id = 1 << 50),
    ("a row of its neighbour's id", |plan, _| plan.rows[1].id = plan.rows[0].id),
    ("a row that begins later", |plan, _| plan.rows[3].lower += 1),
    ("a row that ends earlier", |plan, _| plan.rows[3].upper -= 1),
    ("a row that ends later", |plan, _| plan.rows[0].upper += 1),
    ("a row without size", |plan, _| plan.rows[3].size = 0),
    ("a larger row", |plan, _| plan.rows[0].size += 1),
    ("a row of twice the alignment", |plan, _| plan.rows[0].alignment *= 2),
    ("a row without alignment", |plan, _| plan.rows[0].alignment = 0),
    ("a row in the other memory", |plan, _| plan.rows[0].memory = other(plan.rows[0].memory)),
    ("a row in another buffer", |plan, _| plan.rows[0].buffer += 1),
    ("a row in no buffer", |plan, _| plan.rows[0].buffer = usize::MAX),
    ("all buffers at 0, the rest to match", |plan, problem| {
        plan.offsets.fill(0);
        refresh(plan, problem);
    }),
    ("a buffer over one that it conflicts with, the rest to match", |plan, problem| {
        if let Some((i, j)) = conflicting(plan, problem) {
            plan.offsets[i] = plan.offsets[j];
            refresh(plan, problem);
        }
    }),
    ("a buffer over the last byte of another, the rest to match", |plan, problem| {
        if let Some((i, j)) = conflicting(plan, problem) {
            let last = plan.offsets[j] + problem.buffers()[j].size - 1;
            let offset = last & !(problem.buffers()[i].alignment - 1);
            if offset >= plan.offsets[j] {
                plan.offsets[i] = offset;
                refresh(plan, problem);
            }
        }
    }),
    ("a buffer at an odd byte above all, the rest to match", |plan, problem| {
        if let Some(i) = problem.buffers().iter().position(|buffer| buffer.alignment > 1) {
            plan.offsets[i] = plan.peak | 1;
            refresh(plan, problem);
        }
    }),
    ("a buffer beyond 64 bits, the rest to match", |plan, problem| {
        let long = problem.buffers().iter().position(|buffer| buffer.size >= buffer.alignment);
        if let Some(i) = long {
            plan.offsets[i] = !(problem.buffers()[i].alignment - 1);
            refresh(plan, problem);
        }
    }),
    ("a buffer moved without its row", |plan, problem| plan.offsets[0] += problem.buffers()[0].alignment),
    ("a buffer in the other memory, nothing to match", |plan, _| {
        plan.placement[0] = other(plan.placement[0]);
    }),
    ("all buffers in the other memory, nothing to match", |plan, _| {
        plan.placement.iter_mut().for_each(|memory| *memory = other(*memory));
    }),
    ("a peak of 0", |plan, _| plan.peak = 0),
    ("a peak one byte lower", |plan, _| plan.peak -= 1),
    ("a peak one byte higher", |plan, _| plan.peak += 1),
    ("a plain sum of 0", |plan, _| plan.naive = 0),
    ("a plain sum one byte higher", |plan, _| plan.naive += 1),
    ("a plain sum as low as the peak", |plan, _| plan.naive = plan.peak),
    ("no memories", |plan, _| plan.memories.clear()),
    ("a memory twice", |plan, _| plan.memories.push(plan.memories[0])),
    ("a memory that is the other one", |plan, _| {
        plan.memories[0].memory = other(plan.memories[0].memory);
    }),
    ("a memory with a lower peak", |plan, _| plan.memories[0].peak -= 1),
    ("a memory with a buffer more", |plan, _| plan.memories[0].buffers += 1),
    ("a buffer spilled that is not", |plan, problem| plan.spilled.push(problem.buffers()[0].id)),
    ("nothing spilled that is", |plan, _| plan.spilled.clear()),
    ("the other queue", |plan, _| {
        plan.queue = match plan.queue {
            Queue::InOrder => Queue::OutOfOrder,
            _ => Queue::InOrder,
        };
    }),
    ("edges in a circle", |plan, _| plan.ordering_edges.extend([(0, 1), (1, 0)])),
    ("an edge from an operator to itself", |plan, _| plan.ordering_edges.push((1, 1))),
    ("an edge between no operators", |plan, _| plan.ordering_edges.push((usize::MAX, 0))),
    ("edges turned round", |plan, _| {
        plan.ordering_edges.iter_mut().for_each(|edge| *edge = (edge.1, edge.0));
    }),
    ("an edge missing", |plan, _| shorter(&mut plan.ordering_edges)),
];

/// The bound and its certificate.
pub(super) const CERTIFICATE: [Mutation; 26] = [
    ("bound of 0", |plan, _| plan.lower_bound = 0),
    ("bound one byte lower", |plan, _| plan.lower_bound -= 1),
    ("bound one byte higher", |plan, _| plan.lower_bound += 1),
    ("bound of twice the peak", |plan, _| plan.lower_bound = 2 * plan.peak),
    ("bound of 2^64 - 1", |plan, _| plan.lower_bound = u64::MAX),
    ("nobody named", |plan, _| ids(plan, Vec::clear)),
    ("the first left out", |plan, _| ids(plan, |ids| *ids = ids.get(1..).unwrap_or_default().to_vec())),
    ("the last left out", |plan, _| ids(plan, shorter)),
    ("the first twice", |plan, _| ids(plan, |ids| ids.extend(ids.first().copied()))),
    ("the first in the place of the last", |plan, _| {
        ids(plan, |ids| {
            let first = ids.first().copied();
            if let (Some(last), Some(first)) = (ids.last_mut(), first) {
                *last = first;
            }
        });
    }),
    ("the first three times", |plan, _| ids(plan, |ids| *ids = vec![ids[0]; 3])),
    ("an unknown one more", |plan, _| ids(plan, |ids| ids.push(1 << 50))),
    ("an unknown one for the last", |plan, _| {
        ids(plan, |ids| {
            ids.pop();
            ids.push(1 << 50);
        });
    }),
    ("everybody named", |plan, problem| {
        let all: Vec<u64> = problem.buffers().iter().map(|buffer| buffer.id).collect();
        ids(plan, |ids| *ids = all);
    }),
    ("everybody named, bound to match", |plan, problem| {
        let all: Vec<u64> = problem.buffers().iter().map(|buffer| buffer.id).collect();
        ids(plan, |ids| *ids = all);
        if !plan.certificate.is_claim() {
            plan.lower_bound = problem.naive();
        }
    }),
    ("one more that needs not be there, bound to match", |plan, problem| {
        let named: Vec<u64> = named(plan).to_vec();
        let index = |id: u64| problem.buffers().iter().position(|buffer| buffer.id == id);
        let apart = problem.buffers().iter().enumerate().find(|(i, buffer)| {
            let others = named.iter().filter_map(|&id| index(id));
            buffer.size > 0
                && !named.contains(&buffer.id)
                && others.into_iter().any(|j| !problem.conflict(*i, j))
        });
        if let Some((_, buffer)) = apart {
            ids(plan, |ids| ids.push(buffer.id));
            plan.lower_bound += buffer.size;
        }
    }),
    ("an instant later", |plan, _| time(plan, |time| *time += 100)),
    ("no instant", |plan, _| time(plan, |time| *time = u64::MAX)),
    ("an instant before some of them", |plan, problem| {
        let late = |id: &u64| {
            let member = problem.members().iter().find(|member| member.tensor.id == *id);
            member.is_some_and(|member| problem.buffers()[member.buffer].lower > 0)
        };
        if named(plan).iter().any(late) {
            time(plan, |time| *time = 0);
        }
    }),
    ("an antichain called a cut", |plan, _| {
        if let Certificate::Antichain { buffers } = plan.certificate.clone() {
            // Out-of-order plans have no instants.
            plan.certificate = Certificate::TimeCut { time: 0, buffers };
        }
    }),
    ("a claim of less than the bound", |plan, _| claim(plan, 0, plan.lower_bound.saturating_sub(2))),
    ("a claim of more than the bound", |plan, _| claim(plan, 0, plan.lower_bound)),
    ("a claim of the peak", |plan, _| {
        plan.lower_bound = plan.peak + 1;
        claim(plan, 0, plan.peak);
    }),
    ("a claim of 2^64 - 1", |plan, _| {
        plan.lower_bound = u64::MAX;
        claim(plan, 0, u64::MAX);
    }),
    ("a claim of more nodes than there were", |plan, _| {
        claim(plan, plan.nodes + 1, plan.lower_bound.saturating_sub(1));
    }),
    ("a claim of 2^64 - 1 nodes", |plan, _| claim(plan, u64::MAX, plan.lower_bound.saturating_sub(1))),
];

fn shorter<T>(table: &mut Vec<T>) {
    table.truncate(table.len().saturating_sub(1));
}

fn other(memory: Memory) -> Memory {
    if memory == Memory::Device { Memory::Host } else { Memory::Device }
}

/// Recomputes rows, memories and peak from offsets, so that the wrong offset is the only fault.
fn refresh(plan: &mut Plan, problem: &Problem) {
    for (row, member) in plan.rows.iter_mut().zip(problem.members()) {
        row.offset = plan.offsets[member.buffer].saturating_add(member.offset);
    }
    for used in &mut plan.memories {
        let places = problem.buffers().iter().zip(&plan.offsets).zip(&plan.placement);
        let here = places.filter(|(_, memory)| **memory == used.memory);
        used.peak = here.map(|((buffer, offset), _)| offset.saturating_add(buffer.size)).max().unwrap_or(0);
    }
    plan.peak = plan.memories.iter().fold(0, |sum, used| sum.saturating_add(used.peak));
}

/// Two buffers with bytes in one memory that may be live together.
fn conflicting(plan: &Plan, problem: &Problem) -> Option<(usize, usize)> {
    let buffers = problem.buffers();
    let pairs = (0..buffers.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.into_iter().find(|&(i, j)| {
        let bytes = buffers[i].size > 0 && buffers[j].size > 0;
        bytes && problem.conflict(i, j) && plan.placement[i] == plan.placement[j]
    })
}

fn named(plan: &Plan) -> &[u64] {
    match &plan.certificate {
        Certificate::TimeCut { buffers, .. } | Certificate::Antichain { buffers } => buffers,
        _ => &[],
    }
}

fn ids(plan: &mut Plan, change: impl FnOnce(&mut Vec<u64>)) {
    if let Certificate::TimeCut { buffers, .. } | Certificate::Antichain { buffers } = &mut plan.certificate {
        change(buffers);
    }
}

fn time(plan: &mut Plan, change: impl FnOnce(&mut u64)) {
    if let Certificate::TimeCut { time, .. } = &mut plan.certificate {
        change(time);
    }
}

fn claim(plan: &mut Plan, nodes: u64, capacity: u64) {
    plan.certificate = Certificate::Search { nodes, capacity };
}
