//! Atomic operations, with their order and scope.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Result};
use usm_kernel_ir::{Atomic, Expr, Stmt, StmtKind, VarId};

use crate::expression::{self, typed};
use crate::scope::{Scope, refuse};

/// The memory order of an operation. The nodes have relaxed operations and fences. A fence before a
/// releasing operation, and one after an acquiring one, order at least as much on every target.
#[derive(Clone, Copy, Default)]
pub(crate) struct Order {
    releases: bool,
    acquires: bool,
}

impl Order {
    /// The arguments after the values: none, an order, or an order and a scope. A fence has device
    /// scope, which includes the group's.
    fn of(given: &[&Rust]) -> Result<Self> {
        let [order, scope @ ..] = given else { return Ok(Self::default()) };
        let (releases, acquires) = match word(order).as_str() {
            "RELAXED" => (false, false),
            "RELEASE" => (true, false),
            "ACQUIRE" => (false, true),
            "ACQ_REL" | "SEQ_CST" => (true, true),
            _ => return refuse(order.span(), "write RELAXED, ACQUIRE, RELEASE, ACQ_REL or SEQ_CST"),
        };
        match scope {
            [] => {}
            [scope] if matches!(word(scope).as_str(), "GROUP" | "DEVICE") => {}
            [scope] if word(scope) == "SYSTEM" => {
                return refuse(
                    scope.span(),
                    "others see it when the launch has finished: write GROUP or DEVICE",
                );
            }
            [scope, ..] => return refuse(scope.span(), "write GROUP or DEVICE"),
        }
        Ok(Self { releases, acquires })
    }

    fn fenced(self, stmt: Stmt) -> Vec<Stmt> {
        let place = stmt.place;
        let fence = || Stmt::new(StmtKind::Fence { local: true, global: true }, place);
        let before = self.releases.then(fence);
        let behind = self.acquires.then(fence);
        before.into_iter().chain([stmt]).chain(behind).collect()
    }
}

fn word(value: &Rust) -> String {
    match value {
        Rust::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    }
}

/// Whether a method returns the old value.
pub(crate) fn is_atomic(call: &syn::ExprMethodCall) -> bool {
    call.method.to_string().starts_with("fetch_")
        || call.method == "swap"
        || call.method == "compare_exchange"
}

/// `a[i].load(ACQUIRE)`: the element, and the remaining arguments.
pub(crate) fn load(call: &syn::ExprMethodCall, to: VarId, value: Expr) -> Result<Vec<Stmt>> {
    let given: Vec<&Rust> = call.args.iter().collect();
    let order = Order::of(&given)?;
    if order.releases {
        return refuse(call.args.span(), "a load releases nothing: write RELAXED or ACQUIRE");
    }
    let at = value.place;
    Ok(order.fenced(Stmt::new(StmtKind::Set(to, value), at)))
}

/// `a[i].fetch_add(value)`, with an optional order and scope.
pub(crate) fn atomic(call: &syn::ExprMethodCall, old: Option<VarId>, scope: &mut Scope) -> Result<Vec<Stmt>> {
    let operation = match call.method.to_string().as_str() {
        "fetch_add" => Some(Atomic::Add),
        "fetch_sub" => Some(Atomic::Sub),
        "fetch_min" => Some(Atomic::Min),
        "fetch_max" => Some(Atomic::Max),
        "fetch_and" => Some(Atomic::And),
        "fetch_or" => Some(Atomic::Or),
        "fetch_xor" => Some(Atomic::Xor),
        "swap" => Some(Atomic::Exchange),
        "compare_exchange" => None,
        _ => {
            return refuse(
                call.method.span(),
                "no statement of a kernel; atomic operations are `a[i].fetch_add(value)`, _sub, _min, _max, _and, _or, _xor, `swap` and `compare_exchange`",
            );
        }
    };
    let Rust::Index(index) = &*call.receiver else {
        return refuse(call.receiver.span(), "an atomic operation needs an element: `a[i]`");
    };
    expression::may_write(index, scope)?;
    let (array, element, mut index) = expression::element(index, scope)?;
    let at = index.place;
    let given: Vec<&Rust> = call.args.iter().collect();
    let (kind, order) = match (operation, &given[..]) {
        (Some(operation), [value, order @ ..]) if order.len() <= 2 => {
            let value = scope.read_after(&mut [&mut index], |scope| typed(value, element, scope))?;
            (StmtKind::Atomic { operation, array, index, value, old }, order)
        }
        // The old value, whether or not it was the expected one.
        (None, [expected, new, order @ ..]) if order.len() <= 2 => {
            let mut expected =
                scope.read_after(&mut [&mut index], |scope| typed(expected, element, scope))?;
            let new =
                scope.read_after(&mut [&mut index, &mut expected], |scope| typed(new, element, scope))?;
            let [expected, new] = [expected, new].map(Box::new);
            (StmtKind::CompareExchange { array, index, expected, new, old }, order)
        }
        (Some(_), _) => {
            return refuse(
                call.method.span(),
                "an atomic operation has a value, and then an order and a scope, or none: `a[i].fetch_add(1, ACQUIRE, GROUP)`",
            );
        }
        (None, _) => {
            return refuse(
                call.method.span(),
                "write `a[i].compare_exchange(expected, new)`, and then an order and a scope, or none; the value is the old one",
            );
        }
    };
    Ok(Order::of(order)?.fenced(Stmt::new(kind, at)))
}
