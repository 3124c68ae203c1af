//! Random values and conditions.

use usm_kernel_ir::Scalar;

use super::Writer;

/// Numbers near the ends of types, and powers of two.
const ENDS: [u64; 7] = [255, 127, 128, 64, 100, 16, 8];
const COMPARISONS: [&str; 7] = ["<", "<", "<=", ">", ">=", "==", "!="];
const IDS: [&str; 8] =
    ["global_id", "global_id", "local_id", "local_id", "group_id", "local_size", "global_size", "groups"];
/// Those that a kernel without groups has.
const IDS_WITHOUT_GROUPS: [&str; 4] = ["global_id", "global_id", "global_id", "global_size"];

/// The value as another type.
pub(super) fn cast(value: &str, from: Scalar, to: Scalar) -> String {
    if from == to { value.to_owned() } else { format!("({value} as {to})") }
}

impl Writer {
    /// A literal of this type, mostly small.
    pub(super) fn literal(&mut self, ty: Scalar) -> String {
        let value = match self.random.below(8) {
            0 => 0,
            1 | 2 => 1,
            3 => 2,
            4 => 3,
            5 => self.random.below(12),
            6 => self.random.below(128),
            _ => *self.random.pick(&ENDS),
        };
        let value = if ty == Scalar::I8 { value.min(127) } else { value };
        format!("{value}_{ty}")
    }

    /// An id or size of the item, of type `u64`.
    fn id(&mut self) -> String {
        let ids: &[&str] = if self.grouped { &IDS } else { &IDS_WITHOUT_GROUPS };
        let (id, dimension) = (self.word(ids), self.random.below(self.dimensions));
        format!("{id}({dimension})")
    }

    fn id_as(&mut self, ty: Scalar) -> String {
        cast(&self.id(), Scalar::U64, ty)
    }

    /// Any variable, as this type.
    pub(super) fn variable_as(&mut self, ty: Scalar) -> String {
        match self.variable(|_| true) {
            Some(variable) => cast(&variable.name, variable.ty, ty),
            None => self.literal(ty),
        }
    }

    /// Mostly a variable of this type.
    fn variable_of(&mut self, ty: Scalar) -> String {
        match self.variable(|variable| variable.ty == ty) {
            Some(variable) if self.random.percent(80) => variable.name,
            _ => self.id_as(ty),
        }
    }

    /// A value of this type, of at most `depth` levels.
    pub(super) fn expr(&mut self, ty: Scalar, depth: u32) -> String {
        match self.random.below(if depth == 0 { 5 } else { 14 }) {
            0 => self.literal(ty),
            1 | 2 => self.variable_of(ty),
            3 => self.id_as(ty),
            4 => self.variable_as(ty),
            5 | 6 => self.binary(ty, depth, "+", 0),
            7 => self.binary(ty, depth, "-", 0),
            8 => self.binary(ty, depth, "*", 60),
            9 => {
                let operator = self.word(&["/", "%", "%", "&", ">>", "<<", "|", "^"]);
                self.binary(ty, depth, operator, 70)
            }
            10 => {
                let function = self.word(&["min", "max"]);
                format!("{function}({}, {})", self.expr(ty, depth - 1), self.expr(ty, depth - 1))
            }
            11 => {
                let from = self.scalar();
                cast(&self.expr(from, depth - 1), from, ty)
            }
            12 => {
                let condition = self.condition(depth - 1);
                let (one, other) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
                if self.random.percent(70) {
                    return format!("(if {condition} {{ {one} }} else {{ {other} }})");
                }
                if self.random.percent(50) {
                    let name = self.name();
                    return format!(
                        "{{ let mut {name} = {one};\nif {condition} {{ {name} = {other}; }}\n{name} }}"
                    );
                }
                let (from, low) = (self.scalar(), self.random.below(100));
                let (value, name) = (self.expr(from, depth - 1), self.name());
                let (high, last) = (low + self.random.below(28), cast(&name, from, ty));
                format!(
                    "(match {value} {{ {low} | 120 => {one}, {low}..={high} => {other}, {name} => {last} }})"
                )
            }
            _ => self.element(ty, depth),
        }
    }

    /// The right side is a literal in `literals` of 100 cases.
    fn binary(&mut self, ty: Scalar, depth: u32, operator: &str, literals: u64) -> String {
        let left = self.expr(ty, depth - 1);
        let right = if self.random.percent(literals) { self.literal(ty) } else { self.expr(ty, depth - 1) };
        format!("({left} {operator} {right})")
    }

    /// An element of a parameter of this type, if there is one.
    fn element(&mut self, ty: Scalar, depth: u32) -> String {
        let array = match ty {
            Scalar::U32 => self.word(&["a", "a", "a", "a", "o", "r"]),
            Scalar::U8 => "b",
            _ => return self.expr(ty, depth - 1),
        };
        format!("{array}[{}]", self.expr(Scalar::U64, depth - 1))
    }

    /// A condition, which may differ between items.
    pub(super) fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.random.percent(20) {
            let operator = self.word(&["&&", "||"]);
            return format!("({} {operator} {})", self.condition(depth - 1), self.condition(depth - 1));
        }
        if self.random.percent(8) {
            return format!("!({})", self.condition(0));
        }
        let (ty, operator) = (self.scalar(), self.word(&COMPARISONS));
        let depth = depth.min(1);
        format!("({}) {operator} ({})", self.expr(ty, depth), self.expr(ty, depth))
    }

    /// A condition that is mostly equal for all items of a group.
    pub(super) fn uniform_condition(&mut self) -> String {
        let operator = self.word(&["<", ">", "==", "!="]);
        let right = self.literal(Scalar::U64);
        let counter = self.variable(|variable| variable.uniform);
        let left = match counter {
            Some(counter) if self.random.percent(60) => cast(&counter.name, counter.ty, Scalar::U64),
            _ if self.grouped && self.random.percent(10) => {
                format!("(l[{}] as u64)", self.literal(Scalar::U64))
            }
            _ if self.grouped => {
                let left = ["(n as u64)", "m", "(k as u64)", "groups(0)", "local_size(0)", "group_id(0)"];
                self.word(&left).to_owned()
            }
            _ => self.word(&["(n as u64)", "m", "(k as u64)"]).to_owned(),
        };
        format!("{left} {operator} {right}")
    }

    /// The condition of a branch or jump, and whether it is equal for all items of a group: only
    /// where `uniform`, in `percent` of 100 cases.
    pub(super) fn choice(&mut self, uniform: bool, percent: u64, depth: u32) -> (String, bool) {
        let uniform = uniform && self.random.percent(percent);
        (if uniform { self.uniform_condition() } else { self.condition(depth) }, uniform)
    }
}
