//! Collective operations of a sub-group.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprCall, Result};
use usm_kernel_ir::{Binary, Collection, Expr, Lane, Scalar};

use crate::call::combining_operator;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

impl Reader {
    /// Reads a collective operation of a sub-group; `None` for other names.
    pub(crate) fn read_sub_group(
        &mut self,
        call: &ExprCall,
        name: &str,
        hint: Option<Scalar>,
    ) -> Result<Option<Expr>> {
        let Some(what) = name.strip_prefix("sub_group_") else { return Ok(None) };
        let at = place_of(call.span());
        let arguments: Vec<&Rust> = call.args.iter().collect();
        let how = match what {
            "size" | "id" | "local_id" | "count" => format!("{name}()"),
            "reduce" | "inclusive_scan" | "exclusive_scan" => format!("{name}(value, ADD)"),
            "any" | "all" => format!("{name}(condition)"),
            "broadcast" | "shuffle" => format!("{name}(value, lane)"),
            "shuffle_xor" => format!("{name}(value, bits)"),
            "shuffle_up" | "shuffle_down" => format!("{name}(value, lanes)"),
            _ => return Ok(None),
        };
        let Some(sub_groups) = self.sub_groups.clone() else {
            return refuse(
                call.func.span(),
                "sub-groups need their size: write `#[kernel(group = 64, sub_group = 16)]`",
            );
        };
        if let ("size" | "id" | "local_id" | "count", []) = (what, &arguments[..]) {
            self.dimensions = self.dimensions.max(sub_groups.dimensions());
            return Ok(Some(match what {
                "size" => sub_groups.size(at),
                "id" => sub_groups.id(at),
                "count" => sub_groups.count(at),
                _ => sub_groups.lane(at),
            }));
        }
        let collection = match what {
            "inclusive_scan" => Collection::Inclusive,
            "exclusive_scan" => Collection::Exclusive,
            _ => Collection::Reduce,
        };
        let mut out = Vec::new();
        let reduction = match (what, &arguments[..]) {
            ("reduce" | "inclusive_scan" | "exclusive_scan", [value, operator]) => {
                let (value, combination) = (self.read_expr(value, hint)?, combining_operator(operator)?);
                if !combination.collects(value.ty) {
                    return refuse(operator.span(), format!("{} is not collected by this", value.ty));
                }
                sub_groups.collect(&mut self.kernel, collection, combination, value, &mut out)
            }
            ("any" | "all", [condition]) => {
                let condition = self.read_typed(condition, Scalar::Bool)?;
                let operator = if what == "any" { Binary::Or } else { Binary::And };
                sub_groups.collect(&mut self.kernel, collection, operator, condition, &mut out)
            }
            ("broadcast" | "shuffle" | "shuffle_xor" | "shuffle_up" | "shuffle_down", [value, lane]) => {
                let mut value = self.read_expr(value, hint)?;
                let lane =
                    self.read_after(&mut [&mut value], |reader| reader.read_typed(lane, Scalar::U64))?;
                let lane = match what {
                    "shuffle_xor" => Lane::Xor(lane),
                    "shuffle_up" => Lane::Up(lane),
                    "shuffle_down" => Lane::Down(lane),
                    _ => Lane::At(lane),
                };
                sub_groups.shuffle(&mut self.kernel, value, lane, &mut out)
            }
            _ => return refuse(call.span(), format!("write `{how}`")),
        };
        self.before.append(&mut out);
        Ok(Some(reduction))
    }
}
