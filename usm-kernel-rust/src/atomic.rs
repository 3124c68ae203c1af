//! Atomic operations, with their order and scope.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Result};
use usm_kernel_ir::{Atomic, Expr, Stmt, StmtKind, VarId};

use crate::reader::Reader;
use crate::refusal::refuse;

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
    fn of(arguments: &[&Rust]) -> Result<Self> {
        let [order, reader @ ..] = arguments else { return Ok(Self::default()) };
        let (releases, acquires) = match word(order).as_str() {
            "RELAXED" => (false, false),
            "RELEASE" => (true, false),
            "ACQUIRE" => (false, true),
            "ACQ_REL" | "SEQ_CST" => (true, true),
            _ => return refuse(order.span(), "write RELAXED, ACQUIRE, RELEASE, ACQ_REL or SEQ_CST"),
        };
        match reader {
            [] => {}
            [reader] if matches!(word(reader).as_str(), "GROUP" | "DEVICE") => {}
            [reader] if word(reader) == "SYSTEM" => {
                return refuse(
                    reader.span(),
                    "others see it when the launch has finished: write GROUP or DEVICE",
                );
            }
            [reader, ..] => return refuse(reader.span(), "write GROUP or DEVICE"),
        }
        Ok(Self { releases, acquires })
    }

    fn fence(self, stmt: Stmt) -> Vec<Stmt> {
        let place = stmt.place;
        let fence = || Stmt::new(StmtKind::Fence { local: true, global: true }, place);
        let before = self.releases.then(fence);
        let behind = self.acquires.then(fence);
        before.into_iter().chain([stmt]).chain(behind).collect()
    }
}

impl Reader {
    /// `a[i].fetch_add(value)`, with an optional order and scope.
    pub(crate) fn read_atomic(
        &mut self,
        call: &syn::ExprMethodCall,
        old: Option<VarId>,
    ) -> Result<Vec<Stmt>> {
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
        self.check_writable(index)?;
        let (array, element, mut index) = self.read_element(index)?;
        let at = index.place;
        let arguments: Vec<&Rust> = call.args.iter().collect();
        let (kind, order) = match (operation, &arguments[..]) {
            (Some(operation), [value, order @ ..]) if order.len() <= 2 => {
                let value = self.read_after(&mut [&mut index], |reader| reader.read_typed(value, element))?;
                (StmtKind::Atomic { operation, array, index, value, old }, order)
            }
            // The old value, whether or not it was the expected one.
            (None, [expected, new, order @ ..]) if order.len() <= 2 => {
                let mut expected =
                    self.read_after(&mut [&mut index], |reader| reader.read_typed(expected, element))?;
                let new = self
                    .read_after(&mut [&mut index, &mut expected], |reader| reader.read_typed(new, element))?;
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
        Ok(Order::of(order)?.fence(Stmt::new(kind, at)))
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
    let arguments: Vec<&Rust> = call.args.iter().collect();
    let order = Order::of(&arguments)?;
    if order.releases {
        return refuse(call.args.span(), "a load releases nothing: write RELAXED or ACQUIRE");
    }
    let at = value.place;
    Ok(order.fence(Stmt::new(StmtKind::Set(to, value), at)))
}
