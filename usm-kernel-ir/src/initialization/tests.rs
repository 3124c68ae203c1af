//! Planted cases: what the walk accepts, and what it does not.

extern crate std;

use alloc::vec;
use alloc::vec::Vec;

use super::{Need, needs};
use crate::kernel::{
    Array, ArrayId, Atomic, Expr, Kernel, Parameter, Place, Query, Space, Stmt, StmtKind, VarId, Variable,
};
use crate::operator::Binary;
use crate::scalar::{Literal, Scalar};
use crate::verify::verify;

const AT: Place = Place { file: 0, line: 1, column: 1 };
const OUT: ArrayId = ArrayId(0);
const OWN: ArrayId = ArrayId(1);
const K: VarId = VarId(0);
const X: VarId = VarId(1);

fn n(value: u64) -> Expr {
    Expr::literal(Literal::integer(Scalar::U64, value), AT)
}

fn lid(dimension: u8) -> Expr {
    Expr::query(Query::LocalId, dimension, AT)
}

fn lsize(dimension: u8) -> Expr {
    Expr::query(Query::LocalSize, dimension, AT)
}

fn gid() -> Expr {
    Expr::query(Query::GlobalId, 0, AT)
}

fn var(variable: VarId) -> Expr {
    Expr::variable(variable, Scalar::U64, AT)
}

fn two(operator: Binary, one: Expr, two: Expr) -> Expr {
    Expr::binary(operator, one, two, AT)
}

fn get(index: Expr) -> Expr {
    Expr::load(OWN, Scalar::U64, index, AT)
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt::new(kind, AT)
}

fn put(index: Expr) -> Stmt {
    stmt(StmtKind::Store { array: OWN, index, value: n(7) })
}

/// Reads an element into the array that is a parameter.
fn out(index: Expr) -> Stmt {
    stmt(StmtKind::Store { array: OUT, index: gid(), value: get(index) })
}

fn when(condition: Expr, then: Vec<Stmt>, other: Vec<Stmt>) -> Stmt {
    stmt(StmtKind::If { condition, then, other })
}

fn each(start: Expr, end: Expr, step: Expr, body: Vec<Stmt>) -> Stmt {
    stmt(StmtKind::For { variable: K, start, end, step, body })
}

fn wait() -> Stmt {
    stmt(StmtKind::Barrier { local: true, global: false })
}

/// A condition that no walk knows.
fn open() -> Expr {
    two(Binary::Gt, Expr::load(OUT, Scalar::U64, gid(), AT), n(3))
}

/// A condition that no walk knows, the same for all items.
fn shared() -> Expr {
    two(Binary::Gt, Expr::query(Query::GlobalSize, 0, AT), n(100))
}

fn kernel(group: Option<Vec<u64>>, dimensions: u8, space: Space, body: Vec<Stmt>) -> Kernel {
    let array = |name: &str, space| Array { name: name.into(), element: Scalar::U64, space, place: AT };
    let variable = |name: &str| Variable { name: name.into(), ty: Scalar::U64, place: AT };
    let kernel = Kernel {
        name: "planted".into(),
        dimensions,
        group,
        trusted: false,
        unordered: Vec::new(),
        files: vec!["planted.rs".into()],
        place: AT,
        parameters: vec![Parameter::Array(OUT)],
        arrays: vec![array("out", Space::Write), array("own", space)],
        structures: Vec::new(),
        prints: Vec::new(),
        values: Vec::new(),
        variables: vec![variable("k"), variable("x")],
        body,
    };
    verify(&kernel).unwrap_or_else(|refusal| panic!("{refusal}"));
    kernel
}

fn private(len: u64, body: Vec<Stmt>) -> bool {
    !needs(&kernel(None, 1, Space::Private(len), body)).is_empty()
}

/// Whether an array of local memory needs zeros, in groups of eight items.
fn local(len: u64, body: Vec<Stmt>) -> bool {
    !needs(&kernel(Some(vec![8]), 1, Space::Local(n(len)), body)).is_empty()
}

/// As many elements as items, in groups of any size.
fn of_any(body: Vec<Stmt>) -> bool {
    !needs(&kernel(None, 1, Space::Local(lsize(0)), body)).is_empty()
}

#[test]
fn a_private_array_is_written_by_a_loop_over_it() {
    let fill = |end| each(n(0), n(end), n(1), vec![put(var(K))]);
    assert!(!private(8, vec![fill(8), out(n(3))]));
    // More rounds than are walked one by one.
    assert!(!private(4096, vec![fill(5000), out(n(3))]));
    assert!(!private(8, vec![fill(4), out(n(3))]), "the element that is read is written");
    assert!(private(8, vec![fill(4), out(n(4))]), "half of the array");
    assert!(private(8, vec![fill(4), out(gid())]), "an index that is not known");
    assert!(private(8, vec![out(n(3)), fill(8)]), "written after the read");
    assert!(private(8, vec![each(n(0), n(8), n(2), vec![put(var(K))]), out(gid())]), "every second one");
    assert!(private(8, vec![each(n(1), n(8), n(1), vec![put(var(K))]), out(gid())]), "not the first one");
}

#[test]
fn single_elements_of_a_private_array_are_told_apart() {
    assert!(!private(2, vec![put(n(0)), put(n(1)), out(gid())]));
    assert!(!private(3, vec![put(n(0)), put(n(1)), out(n(1))]));
    assert!(private(2, vec![put(n(0)), out(n(1))]));
    let set = stmt(StmtKind::Set(X, n(1)));
    assert!(!private(2, vec![set.clone(), put(var(X)), out(n(1))]), "an index through a variable");
    assert!(private(2, vec![set, put(var(X)), out(n(0))]));
    let unknown = stmt(StmtKind::Set(X, two(Binary::Rem, gid(), n(2))));
    assert!(private(2, vec![unknown.clone(), put(var(X)), out(n(1))]), "an index that is not known");
    assert!(private(2, vec![unknown.clone(), put(var(X)), unknown, out(var(X))]));
}

#[test]
fn a_write_under_a_condition_counts_only_on_both_ways() {
    let fill = || each(n(0), n(4), n(1), vec![put(var(K))]);
    assert!(private(4, vec![when(open(), vec![fill()], vec![]), out(n(1))]));
    assert!(private(4, vec![when(open(), vec![put(n(0))], vec![put(n(1))]), out(n(0))]));
    assert!(!private(4, vec![when(open(), vec![fill()], vec![fill()]), out(n(1))]));
    assert!(!private(4, vec![when(open(), vec![fill(), out(n(1))], vec![])]), "read where it is written");
    let leave = stmt(StmtKind::Return);
    assert!(!private(4, vec![when(open(), vec![leave], vec![fill()]), out(n(1))]));
    // A known condition has one way.
    assert!(!private(4, vec![when(two(Binary::Lt, n(1), n(2)), vec![fill()], vec![]), out(n(1))]));
    assert!(private(4, vec![when(two(Binary::Lt, n(2), n(1)), vec![fill()], vec![]), out(n(1))]));
}

#[test]
fn a_loop_that_may_not_run_writes_nothing() {
    let once = |body| each(n(0), gid(), n(1), body);
    assert!(private(2, vec![once(vec![put(n(0))]), out(n(0))]));
    assert!(!private(2, vec![once(vec![put(n(0)), out(n(0))])]), "within a round");
    assert!(private(2, vec![once(vec![out(n(0)), put(n(0))])]), "of the round before");
    let start = stmt(StmtKind::Set(X, n(0)));
    let next = stmt(StmtKind::Set(X, two(Binary::Add, var(X), n(1))));
    let repeat = stmt(StmtKind::While(two(Binary::Lt, var(X), gid()), vec![put(n(1)), next]));
    assert!(private(2, vec![start.clone(), repeat.clone(), out(n(1))]));
    // The loop changes the index.
    assert!(private(2, vec![start, repeat, put(var(X)), out(n(0))]));
}

#[test]
fn a_loop_that_is_left_does_not_fill() {
    let fill = |kind| {
        let leave = when(open(), vec![stmt(kind)], vec![]);
        each(n(0), n(4), n(1), vec![leave, put(var(K))])
    };
    for kind in [StmtKind::Break, StmtKind::Continue] {
        assert!(private(4, vec![fill(kind), out(n(3))]));
    }
}

#[test]
fn operands_that_are_not_evaluated_read_nothing() {
    let below = two(Binary::Lt, n(4), n(4));
    let guarded = two(Binary::AndThen, below.clone(), two(Binary::Eq, get(n(0)), n(0)));
    assert!(!private(4, vec![when(guarded, vec![], vec![])]));
    let read = two(Binary::OrElse, below, two(Binary::Eq, get(n(0)), n(0)));
    assert!(private(4, vec![when(read, vec![], vec![])]));
}

#[test]
fn local_memory_is_written_by_all_items_before_a_barrier() {
    let mirror = || two(Binary::Sub, n(7), lid(0));
    assert!(!local(8, vec![put(lid(0)), wait(), out(mirror())]));
    assert!(local(8, vec![put(lid(0)), out(mirror())]), "no barrier");
    assert!(!local(8, vec![put(lid(0)), out(lid(0))]), "the own element");
    assert!(local(8, vec![wait(), out(mirror()), put(lid(0))]), "written after the read");
    let global = stmt(StmtKind::Barrier { local: false, global: true });
    assert!(local(8, vec![put(lid(0)), global, out(mirror())]), "a barrier for other memory");
    assert!(local(16, vec![put(lid(0)), wait(), out(gid())]), "half of the array");
    assert!(!local(16, vec![put(lid(0)), wait(), out(mirror())]), "only the written half is read");
    let both = || vec![put(lid(0)), put(two(Binary::Add, lid(0), n(8)))];
    assert!(!local(16, [both(), vec![wait(), out(gid())]].concat()));
    assert!(local(8, vec![when(open(), vec![put(lid(0))], vec![]), wait(), out(mirror())]));
    assert!(!local(8, vec![when(open(), vec![put(lid(0))], vec![put(lid(0))]), wait(), out(mirror())]));
    // What one item writes on one way, another one writes on the other way: perhaps nobody does.
    assert!(local(8, vec![when(open(), vec![put(lid(0))], vec![put(mirror())]), wait(), out(mirror())]));
}

#[test]
fn edges_of_a_tile_are_written_by_some_items() {
    let at = |by: u64| put(two(Binary::Add, lid(0), n(by)));
    let left = |by| when(two(Binary::Lt, lid(0), n(1)), vec![at(by)], vec![]);
    let read = || two(Binary::Add, lid(0), n(2));
    assert!(!local(10, vec![at(1), left(0), left(9), wait(), out(read())]));
    assert!(local(10, vec![at(1), left(0), wait(), out(read())]), "not the last element");
}

#[test]
fn items_share_loops_over_local_memory() {
    let share = |end, step| each(lid(0), end, step, vec![put(var(K))]);
    assert!(!local(20, vec![share(n(20), n(8)), wait(), out(gid())]));
    assert!(local(20, vec![share(n(19), n(8)), wait(), out(gid())]));
    assert!(local(20, vec![share(n(20), n(9)), wait(), out(gid())]));
    let any = |len, end, step| {
        let body = vec![share(end, step), wait(), out(gid())];
        !needs(&kernel(None, 1, Space::Local(len), body)).is_empty()
    };
    assert!(!any(n(2000), n(2000), lsize(0)));
    assert!(!any(n(2000), n(2001), lsize(0)));
    assert!(!any(lsize(0), lsize(0), lsize(0)));
    assert!(any(n(2000), n(1999), lsize(0)));
    assert!(any(n(2000), n(2000), n(64)));
    assert!(any(two(Binary::Add, lsize(0), n(1)), lsize(0), lsize(0)));
}

#[test]
fn groups_of_any_size_have_an_element_for_each_item() {
    assert!(!of_any(vec![put(lid(0)), wait(), out(gid())]));
    assert!(of_any(vec![put(gid()), wait(), out(gid())]));
    assert!(of_any(vec![put(two(Binary::Add, lid(0), n(1))), wait(), out(gid())]));
    let mine = stmt(StmtKind::Set(X, lid(0)));
    assert!(!of_any(vec![mine.clone(), put(var(X)), wait(), out(gid())]));
    let changed = stmt(StmtKind::Set(X, two(Binary::Add, var(X), n(1))));
    let change = when(shared(), vec![changed], vec![]);
    assert!(of_any(vec![mine, change, put(var(X)), wait(), out(gid())]));
    let first = |end| {
        let fill = each(n(0), end, n(1), vec![put(var(K))]);
        vec![when(two(Binary::Eq, lid(0), n(0)), vec![fill], vec![]), wait(), out(gid())]
    };
    assert!(!of_any(first(lsize(0))), "by the first item");
    assert!(of_any(first(n(7))));
    let second = each(n(0), lsize(0), n(1), vec![put(var(K))]);
    let second = when(two(Binary::Eq, lid(0), n(1)), vec![second], vec![]);
    assert!(of_any(vec![second, wait(), out(gid())]), "a group may have no second item");
    let deep = when(
        open(),
        vec![when(
            two(Binary::Eq, lid(0), n(0)),
            vec![each(n(0), lsize(0), n(1), vec![put(var(K))])],
            vec![],
        )],
        vec![put(lid(0))],
    );
    assert!(of_any(vec![deep, wait(), out(gid())]), "the first item on one way, others on the other");
}

#[test]
fn two_dimensions_have_a_linear_id() {
    let of = |group: Option<Vec<u64>>, len, index| {
        let body = vec![put(index), wait(), out(gid())];
        !needs(&kernel(group, 2, Space::Local(len), body)).is_empty()
    };
    let linear = |row, column, width| two(Binary::Add, two(Binary::Mul, row, width), column);
    let items = || two(Binary::Mul, lsize(0), lsize(1));
    assert!(!of(None, items(), linear(lid(0), lid(1), lsize(1))));
    assert!(of(None, items(), linear(lid(1), lid(0), lsize(1))), "swapped ids");
    assert!(of(None, items(), linear(lid(0), lid(1), lsize(0))), "the other width");
    let stated = || Some(vec![4, 8]);
    assert!(!of(stated(), n(32), linear(lid(0), lid(1), n(8))));
    assert!(!of(stated(), n(32), linear(lid(1), lid(0), n(4))), "all elements, in another order");
    assert!(of(stated(), n(32), linear(lid(0), lid(1), n(4))));
    assert!(of(stated(), n(33), linear(lid(0), lid(1), n(8))));
}

#[test]
fn a_group_as_long_as_the_array_needs_no_zeros() {
    let body = || vec![put(lid(0)), wait(), out(two(Binary::Sub, n(63), lid(0)))];
    let of = |kernel: &Kernel| needs(kernel);
    let unless = |sizes: &[u64]| vec![Need { array: OWN, unless: Some(sizes.to_vec()) }];
    assert_eq!(of(&kernel(None, 1, Space::Local(n(64)), body())), unless(&[64]));
    let tile = put(two(Binary::Add, two(Binary::Mul, lid(0), n(8)), lid(1)));
    assert_eq!(of(&kernel(None, 2, Space::Local(n(64)), vec![tile, wait(), out(n(9))])), unless(&[8, 8]));
    let late = vec![out(n(0)), put(lid(0))];
    assert_eq!(of(&kernel(None, 1, Space::Local(n(64)), late)), [Need { array: OWN, unless: None }]);
}

#[test]
fn barriers_in_loops_count_from_round_to_round() {
    let round = |body| vec![each(n(0), Expr::query(Query::GlobalSize, 0, AT), n(1), body)];
    assert!(!local(8, round(vec![put(lid(0)), wait(), out(gid()), wait()])));
    assert!(local(8, round(vec![out(gid()), wait(), put(lid(0)), wait()])), "the first round reads first");
    let after = [round(vec![put(lid(0)), wait()]), vec![out(gid())]].concat();
    assert!(local(8, after), "no round may run");
}

#[test]
fn atomic_operations_read() {
    let add =
        |old| stmt(StmtKind::Atomic { operation: Atomic::Add, array: OWN, index: n(0), value: n(1), old });
    assert!(local(8, vec![add(None)]));
    assert!(!local(8, vec![put(lid(0)), wait(), add(None)]));
    let swap = |old| {
        stmt(StmtKind::Atomic { operation: Atomic::Exchange, array: OWN, index: n(0), value: n(1), old })
    };
    assert!(!local(8, vec![swap(None)]));
    assert!(local(8, vec![swap(Some(X))]));
    let [expected, new] = [n(1), n(2)].map(alloc::boxed::Box::new);
    let compare = StmtKind::CompareExchange { array: OWN, index: n(0), expected, new, old: None };
    assert!(local(8, vec![stmt(compare)]));
}

#[test]
fn a_walk_ends_early_in_huge_loops() {
    let mut nested = kernel(None, 1, Space::Private(4), vec![]);
    for _ in 0..6 {
        nested.variables.push(nested.variables[0].clone());
    }
    let mut body = vec![put(n(0))];
    for variable in 2..8 {
        body = vec![stmt(StmtKind::For {
            variable: VarId(variable),
            start: n(0),
            end: n(4000),
            step: n(1),
            body,
        })];
    }
    nested.body = [body, vec![out(n(0))]].concat();
    verify(&nested).unwrap();
    let start = std::time::Instant::now();
    let _ = needs(&nested);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
