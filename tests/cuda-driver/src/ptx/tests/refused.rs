//! Unknown instructions are refused when the module is loaded. The error quotes the line and the
//! instruction.

use super::{parse, text_of};

fn refused(instruction: &str) -> String {
    let text = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 p)\n{{\n.reg .b32 %r<9>;\n.reg .pred %p<9>;\n\
         mov.u32 %r1, 1;\n{instruction}\nret;\n}}\n"
    );
    parse(&text).unwrap_err()
}

#[test]
fn an_instruction_that_is_not_known_is_named_with_its_line() {
    for (instruction, wrong) in [
        ("prmt.b32 %r1, %r2, %r3, %r4;", "line 9: `prmt.b32`: the instruction is not known"),
        ("shfl.idx.b32 %r1, %r2, 0, 31;", "line 9: `shfl.idx.b32`: not without `.sync`"),
        ("shfl.sync.twist.b32 %r1, %r2, 0, 31, -1;", "line 9: `shfl.sync.twist.b32`: the way is not known"),
        ("shfl.sync.idx.b32 %r1, %r2, 0, 31;", "line 9: `shfl.sync.idx.b32`: 4 operands"),
        ("vote.sync.ballot.pred %p1, %p2, -1;", "line 9: `vote.sync.ballot.pred`: not of this type"),
        ("vote.sync.any.pred %p1|%p2, %p2, -1;", "line 9: `vote.sync.any.pred`: a register expected"),
        ("redux.sync.mul.s32 %r1, %r2, -1;", "line 9: `redux.sync.mul.s32`: the operation is not known"),
        ("redux.sync.add.f32 %r1, %r2, -1;", "line 9: `redux.sync.add.f32`: not of this type"),
        ("match.none.sync.b32 %r1, %r2, -1;", "line 9: `match.none.sync.b32`: the question is not known"),
        ("bar.warp.sync;", "line 9: `bar.warp.sync`: 0 operands"),
        ("elect.sync %r1|%p1, -1;", "line 9: `elect.sync`: the instruction is not known"),
        ("mov.b32 {%r1, %r2, %r3}, %r4;", "line 9: `mov.b32`: not in such parts"),
        ("and.b32 %r1, !%r2, %r3;", "line 9: `and.b32`: `!%r2` is no register of the function"),
        ("ld.const.b32 %r1, [nowhere];", "line 9: `ld.const.b32`: `nowhere` is no register of the function"),
        ("mov.u32 %r1, %warpid;", "line 9: `mov.u32`: `%warpid` is no register of the function"),
    ] {
        assert_eq!(refused(instruction), wrong);
    }
}

#[test]
fn what_a_compiler_writes_and_this_does_not_know_is_named_too() {
    for (source, wrong) in [
        (
            "__device__ int count = 3; extern \"C\" __global__ void f(int *x) { *x = count++; }",
            "`.global` outside of functions",
        ),
        ("extern \"C\" __global__ void f(unsigned *x) { *x = __byte_perm(x[1], x[2], x[3]); }", "`prmt"),
    ] {
        let Some(text) = text_of(source) else { return };
        let said = parse(&text).unwrap_err();
        let line: usize = said.strip_prefix("line ").unwrap().split(':').next().unwrap().parse().unwrap();
        let there = text.lines().nth(line - 1).unwrap();
        assert!(said.contains(wrong) && there.contains(wrong.split('`').nth(1).unwrap()), "{said}: {there}");
    }
}
