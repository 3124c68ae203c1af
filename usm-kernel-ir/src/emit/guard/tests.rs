//! Planted guards: what becomes a bound at each level, and what items ask.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{Guards, Level, Site};
use crate::kernel::{
    Array, ArrayId, Expr, ExprKind, Kernel, Parameter, Place, Query, Space, Stmt, StmtKind, Value, ValueId,
    VarId, Variable,
};
use crate::operator::{Binary, Unary};
use crate::phase::{Part, of_row, phases};
use crate::scalar::{Literal, Scalar};
use crate::verify::verify;

const AT: Place = Place { file: 0, line: 1, column: 1 };
const LIMIT: ValueId = ValueId(0);
const SIGNED: ValueId = ValueId(1);

fn n(value: u64) -> Expr {
    Expr::literal(Literal::integer(Scalar::U64, value), AT)
}

fn gid(dimension: u8) -> Expr {
    Expr::query(Query::GlobalId, dimension, AT)
}

fn limit() -> Expr {
    Expr { kind: ExprKind::Value(LIMIT), ty: Scalar::U64, place: AT }
}

fn signed_limit() -> Expr {
    Expr { kind: ExprKind::Value(SIGNED), ty: Scalar::I64, place: AT }
}

fn var(variable: u32) -> Expr {
    Expr::variable(VarId(variable), Scalar::U64, AT)
}

/// A condition of the items: it reads memory.
fn element() -> Expr {
    Expr::binary(Binary::Ne, Expr::load(ArrayId(0), Scalar::U64, gid(1), AT), n(0), AT)
}

fn two(operator: Binary, left: Expr, right: Expr) -> Expr {
    Expr::binary(operator, left, right, AT)
}

fn not(operand: Expr) -> Expr {
    Expr::unary(Unary::Not, operand, AT)
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt::new(kind, AT)
}

fn store() -> Stmt {
    stmt(StmtKind::Store { array: ArrayId(0), index: gid(1), value: n(7) })
}

fn guard(condition: Expr, then: Vec<Stmt>) -> Stmt {
    stmt(StmtKind::If { condition, then, other: Vec::new() })
}

fn leave(condition: Expr) -> Stmt {
    guard(condition, vec![stmt(StmtKind::Return)])
}

fn kernel(body: Vec<Stmt>) -> Kernel {
    let value = |name: &str, ty| Value { name: name.into(), ty, is_size: false, place: AT };
    let variable = |name: &str| Variable { name: name.into(), ty: Scalar::U64, place: AT };
    Kernel {
        name: "guarded".into(),
        dimensions: 2,
        group: None,
        trusted: false,
        unordered: Vec::new(),
        files: vec!["test.rs".into()],
        place: AT,
        parameters: vec![Parameter::Array(ArrayId(0)), Parameter::Value(LIMIT), Parameter::Value(SIGNED)],
        arrays: vec![Array { name: "a".into(), element: Scalar::U64, space: Space::Write, place: AT }],
        structures: Vec::new(),
        prints: Vec::new(),
        values: vec![value("limit", Scalar::U64), value("signed", Scalar::I64)],
        variables: vec![variable("i"), variable("j")],
        body,
    }
}

/// The guards of a phase, each bound as `dimension: first..end`, what the first and the last id are
/// moved by; then the numbers of conditions of rows, of conditions of items, of statements before
/// and of statements inside.
fn guards(body: Vec<Stmt>, is_of_row: bool) -> (Vec<String>, [usize; 4]) {
    let kernel = kernel(body);
    verify(&kernel).expect("a kernel");
    let phases = phases(&kernel);
    let rows = of_row(&kernel, &phases.homes);
    let level = if is_of_row { Level::Row(&rows) } else { Level::Group };
    let [Part::Items(stmts)] = &phases.parts[..] else { panic!("one phase") };
    let guards = Guards::of(Site { kernel: &kernel, homes: &phases.homes, level }, stmts);
    let moved = |more: Option<u8>| more.map(|more| format!("{more}")).unwrap_or_default();
    let bounds = guards.bounds.iter().map(|bound| {
        let plus = if bound.summand.is_some() { "+" } else { "" };
        format!("{}{plus}: {}..{}", bound.dimension, moved(bound.first), moved(bound.end))
    });
    let counts = [guards.rows.len(), guards.rest.len(), guards.prelude.len(), guards.body.len()];
    (bounds.collect(), counts)
}

fn group(body: Vec<Stmt>) -> (Vec<String>, [usize; 4]) {
    guards(body, false)
}

fn row(body: Vec<Stmt>) -> (Vec<String>, [usize; 4]) {
    guards(body, true)
}

fn texts(bounds: &[&str]) -> Vec<String> {
    bounds.iter().map(|text| String::from(*text)).collect()
}

#[test]
fn each_comparison_bounds_an_id_on_either_side() {
    use Binary::{Eq, Ge, Gt, Le, Lt, Ne};
    for (operator, bound, mirrored, negated) in [
        (Lt, "1: ..0", "1: 1..", "1: 0.."),
        (Le, "1: ..1", "1: 0..", "1: 1.."),
        (Gt, "1: 1..", "1: ..0", "1: ..1"),
        (Ge, "1: 0..", "1: ..1", "1: ..0"),
        (Eq, "1: 0..1", "1: 0..1", ""),
        (Ne, "", "", "1: 0..1"),
    ] {
        for condition in [
            (two(operator, gid(1), limit()), bound),
            (two(operator, limit(), gid(1)), mirrored),
            (not(two(operator, gid(1), limit())), negated),
        ] {
            for level in [group, row] {
                let (bounds, counts) = level(vec![guard(condition.0.clone(), vec![store()])]);
                let expected = if condition.1.is_empty() { vec![] } else { texts(&[condition.1]) };
                assert_eq!((bounds, counts), (expected, [0, 0, 0, 1]), "{operator:?}");
            }
        }
    }
}

#[test]
fn a_bound_of_an_outer_dimension_is_a_condition_of_a_row() {
    let body = || vec![guard(two(Binary::Lt, gid(0), limit()), vec![store()])];
    assert_eq!(group(body()), (texts(&["0: ..0"]), [0, 0, 0, 1]));
    assert_eq!(row(body()), (vec![], [1, 0, 0, 1]));
}

#[test]
fn a_signed_id_bounds_a_row_only() {
    let id = gid(1).cast(Scalar::I64, AT);
    let body = || vec![guard(two(Binary::Ge, id.clone(), signed_limit()), vec![store()])];
    assert_eq!(group(body()), (vec![], [0, 0, 0, 1]));
    assert_eq!(row(body()), (texts(&["1: 0.."]), [0, 0, 0, 1]));
}

#[test]
fn an_id_of_32_bits_is_no_bound() {
    let id = gid(1).cast(Scalar::U32, AT).cast(Scalar::U64, AT);
    let body = || vec![guard(two(Binary::Lt, id.clone(), limit()), vec![store()])];
    assert_eq!(group(body()), (vec![], [0, 0, 0, 1]));
    assert_eq!(row(body()), (vec![], [0, 0, 0, 1]));
}

#[test]
fn an_id_with_a_summand_is_asked_again_where_the_sum_may_wrap() {
    let sum = two(Binary::Add, gid(1), limit());
    let body = || vec![guard(two(Binary::Lt, sum.clone(), n(9)), vec![store()])];
    assert_eq!(group(body()), (texts(&["1+: ..0"]), [0, 1, 0, 1]));
    assert_eq!(row(body()), (vec![], [0, 0, 0, 1]));
    // A lower bound would not count for sums that wrap.
    let body = vec![guard(two(Binary::Gt, sum, n(9)), vec![store()])];
    assert_eq!(group(body), (vec![], [0, 0, 0, 1]));
}

#[test]
fn a_bound_behind_a_condition_of_the_items_counts_for_a_group_only() {
    let body = |first, second| vec![guard(two(Binary::AndThen, first, second), vec![store()])];
    let bound = || two(Binary::Lt, gid(1), limit());
    assert_eq!(group(body(element(), bound())), (texts(&["1: ..0"]), [0, 1, 0, 1]));
    assert_eq!(row(body(element(), bound())), (vec![], [0, 0, 0, 1]));
    assert_eq!(row(body(bound(), element())), (texts(&["1: ..0"]), [0, 1, 0, 1]));
}

#[test]
fn a_limit_that_reads_memory_or_an_id_is_asked() {
    let memory = Expr::load(ArrayId(0), Scalar::U64, n(0), AT);
    for limit in [memory, two(Binary::Add, gid(1), n(1))] {
        let body = || vec![guard(two(Binary::Lt, gid(1), limit.clone()), vec![store()])];
        assert_eq!(group(body()), (vec![], [0, 0, 0, 1]));
        assert_eq!(row(body()), (vec![], [0, 0, 0, 1]));
    }
}

#[test]
fn returns_and_nested_guards_add_up() {
    let set = |variable, value| stmt(StmtKind::Set(VarId(variable), value));
    let body = || {
        vec![
            set(0, gid(0)),
            set(1, gid(1)),
            leave(two(Binary::OrElse, two(Binary::Ge, var(1), limit()), two(Binary::Eq, n(3), limit()))),
            guard(two(Binary::Gt, var(1), n(0)), vec![guard(element(), vec![store()])]),
        ]
    };
    assert_eq!(group(body()), (texts(&["1: ..0"]), [0, 1, 2, 1]));
    assert_eq!(row(body()), (texts(&["1: ..0", "1: 1.."]), [1, 0, 2, 1]));
}

#[test]
fn statements_behind_a_guard_are_not_under_it() {
    let body = || vec![guard(two(Binary::Lt, gid(1), limit()), vec![store()]), store()];
    assert_eq!(group(body()), (vec![], [0, 0, 0, 2]));
    assert_eq!(row(body()), (vec![], [0, 0, 0, 2]));
}
