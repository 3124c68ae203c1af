//! Checked indices.

use alloc::format;
use alloc::string::String;

use super::super::checked::len;
use super::{Dialect, Writer};
use crate::kernel::{ArrayId, Expr, Place};
use crate::scalar::Scalar;

/// The check on the host, where one thread records. What a failed one does stays out of the loops.
const ON_HOST: &str = "\
static __attribute__((noinline, cold)) void usm_outside(ulong index, ulong len, uint place, uint *record)
{
    if (record[0] != 0u) {
        return;
    }
    record[0] = place;
    record[1] = (uint)index;
    record[2] = (uint)(index >> 32);
    record[3] = (uint)len;
    record[4] = (uint)(len >> 32);
}
#define own_inside(index, len, place, record, failed, noted) ({ \\
    const ulong usm_index = (index), usm_len = (len); \\
    const bool usm_is_inside = __builtin_expect(usm_index < usm_len, 1); \\
    if (!usm_is_inside) { \\
        *(failed) |= (noted); \\
        usm_outside(usm_index, usm_len, place, record); \\
    } \\
    usm_is_inside; \\
})
";

impl Writer<'_> {
    /// An index, and the condition that it is inside; evaluate the condition first. `None` if the
    /// function does not check it.
    pub(super) fn index(&mut self, array: ArrayId, index: &Expr, place: Place) -> (String, Option<String>) {
        let number = self.checks.and_then(|checks| checks.number(array, place));
        let index = self.expr(index);
        let Some(number) = number else { return (index, None) };
        let (len, name) = (self.expr(&len(array, place)), format!("at_{}", self.indices));
        self.indices += 1;
        self.write_index_check();
        let flags = self.record_mask;
        let check =
            format!("own_inside({name} = {index}, {len}, {number}u, usm_record, &usm_failed, {flags})");
        (name, Some(check))
    }

    /// Writes the function that checks.
    fn write_index_check(&mut self) {
        if self.host {
            self.helpers.insert(ON_HOST.into());
            return;
        }
        let (word, wide) = (self.ty(Scalar::U32), self.ty(Scalar::U64));
        let (memory, volatile, cas) = match self.dialect {
            Dialect::OpenCl => ("__global ", "volatile ", "atomic_cmpxchg"),
            Dialect::Cuda => ("", "", "atomicCAS"),
        };
        let qualifiers = self.qualifiers();
        self.helpers.insert(format!(
            "{qualifiers}bool own_inside({wide} index, {wide} len, {word} place, {memory}{word} *record, int *failed, int noted)\n\
             {{\n    \
             if (index < len) {{\n        return true;\n    }}\n    \
             *failed |= noted;\n    \
             if ({cas}(({volatile}{memory}{word} *)record, 0u, place) == 0u) {{\n        \
             record[1] = ({word})index;\n        \
             record[2] = ({word})(index >> 32);\n        \
             record[3] = ({word})len;\n        \
             record[4] = ({word})(len >> 32);\n    \
             }}\n    \
             return false;\n}}\n"
        ));
    }
}
