//! The LLVM text front-end: accepted input, output and refusals.

#[path = "common/target.rs"]
mod target;

use std::path::Path;

use proptest::prelude::*;
use usm_prune::{
    CfgBuilder, OpKind, Options, PruneStats, TextError, TextErrorKind, Value, prune, prune_llvm,
};

fn pruned(text: &str) -> (String, PruneStats) {
    let pruned = prune_llvm(text, &Options::default()).unwrap();
    let mut sum = PruneStats::default();
    pruned.functions.iter().for_each(|(_, stats)| sum += *stats);
    (pruned.text, sum)
}

/// A fan with a raising path, in the spellings of old and new LLVM versions.
#[test]
fn a_module_is_pruned_and_the_rest_kept() {
    let module = r#"; ModuleID = 'm'
@text = constant [20 x i8] c"call @NRT_incref(x)\00"
declare void @NRT_incref(i8*)
define i32 @"f 1"(ptr %retptr, ptr %excinfo, { ptr, i64 } %arg) #0 {
"B 0":
  call void @NRT_decref(ptr null)
  tail call void @NRT_incref(ptr nonnull dereferenceable(48) %x) #3, !dbg !4 ; a comment
  %call = invoke i32 @g(ptr @NRT_incref)
          to label %ok unwind label %"B 2"
ok:                                               ; preds = %"B 0"
  call void @NRT_decref(i8* %"x")
  %y = load ptr, ptr %p, align 8
  switch i64 %n, label %end [
    i64 0, label %end
    i64 1, label %end
  ]
"B 2":
  store ptr @text, ptr %excinfo, align 8, !numba_exception_output !0
  ret i32 1
end:
  call void @NRT_decref(ptr getelementptr inbounds (i8, ptr @text, i64 1))
  ret i32 0
}
!0 = !{i1 true}
"#;
    let (text, stats) = pruned(module);
    assert_eq!((stats.per_block, stats.fanout_raise, stats.total()), (1, 2, 3));
    let kept: String = module
        .split_inclusive('\n')
        .filter(|line| {
            !line.contains("NRT_decref(ptr null)") && !line.contains("nonnull") && !line.contains("%\"x\"")
        })
        .collect();
    assert_eq!(text, kept);
}

#[test]
fn decrements_move_before_the_terminator() {
    let module = "define void @f() {\n  call void @NRT_decref(ptr %a)\n  call void @NRT_incref(ptr %b)\n  call void @use(ptr %b)\n  ret void\n}\n";
    let (text, stats) = pruned(module);
    assert_eq!(stats.total(), 0);
    assert_eq!(
        text,
        "define void @f() {\n  call void @NRT_incref(ptr %b)\n  call void @use(ptr %b)\n  call void @NRT_decref(ptr %a)\n  ret void\n}\n"
    );
}

#[test]
fn refusals_name_the_line() {
    let refused = |text: &str| prune_llvm(text, &Options::default()).unwrap_err();
    let at = |line, kind| TextError { line, kind };
    assert_eq!(refused("define void @f() {\n  br label %x\n}\n"), at(2, TextErrorKind::UnknownLabel));
    assert_eq!(
        refused("define void @f() {\na:\n  ret void\na:\n  ret void\n}\n"),
        at(4, TextErrorKind::DuplicateLabel)
    );
    assert_eq!(refused("define void @f() {\na:\nb:\n  ret void\n}\n"), at(2, TextErrorKind::NoTerminator));
    assert_eq!(refused("\ndefine void @f() {\n  ret void\n"), at(2, TextErrorKind::UnclosedFunction));
    assert_eq!(refused("define void @f()"), at(1, TextErrorKind::UnclosedFunction));
    let one_line = "define void @f() { ret void }\ndefine void @g() {\n  ret void\n}\n";
    assert_eq!(refused(one_line), at(1, TextErrorKind::UnclosedFunction));
    for line in [
        "call void @NRT_incref(ptr %a) call void @NRT_decref(ptr %a)",
        "call void @NRT_incref(ptr",
        "%x = add i32 1, 2 call void @NRT_incref(ptr %a)",
        "b: call void @NRT_decref(ptr %y)",
        "\"b: c\": tail call void @NRT_incref(ptr null) ; a comment",
        "call void @NRT_incref(ptr %a) %b = load ptr, ptr %c",
    ] {
        let text = format!("define void @f() {{\n  {line}\n  ret void\n}}\n");
        assert_eq!(refused(&text), at(2, TextErrorKind::NotOneInstruction), "{line}");
    }
}

/// Text on a label's line is read: terminators, and the mark of a raising block.
#[test]
fn instructions_beside_a_label_are_read() {
    let module = r#"define i32 @f(ptr %excinfo) {
a:
  call void @NRT_incref(ptr %x)
  br i1 %c, label %b, label %"c: d"
b: store ptr @text, ptr %excinfo, align 8, !numba_exception_output !0
  ret i32 1
"c: d": %y = load ptr, ptr %p ; call void @NRT_decref(ptr %y)
  call void @NRT_decref(ptr %x)
  br label %e
e: ret i32 0
}
"#;
    let (text, stats) = pruned(module);
    assert_eq!((stats.fanout_raise, stats.total()), (2, 2));
    let kept: String = module.split_inclusive('\n').filter(|line| !line.contains("cref(ptr %x)")).collect();
    assert_eq!(text, kept);
    let refused = prune_llvm(&module.replace("e: ret i32 0", "e: br label %f"), &Options::default());
    assert_eq!(refused.unwrap_err(), TextError { line: 10, kind: TextErrorKind::UnknownLabel });
    let refused = prune_llvm(
        &module.replace("e: ret i32 0", "e: ret i32 0\n  call void @NRT_decref(ptr %x)"),
        &Options::default(),
    );
    assert_eq!(refused.unwrap_err(), TextError { line: 11, kind: TextErrorKind::NoTerminator });
}

proptest! {
    /// A graph written as text is pruned like the graph.
    #[test]
    fn text_and_graph_agree(
        blocks in prop::collection::vec(
            (prop::collection::vec((any::<bool>(), 0u32..3), 0..3), prop::collection::vec(0usize..9, 0..4), prop::bool::weighted(0.2)),
            1..9,
        ),
    ) {
        let mut builder = CfgBuilder::new();
        let ids: Vec<_> = blocks.iter().map(|block| builder.block(block.2)).collect();
        let mut text = String::from("define i32 @f(ptr %excinfo) {\n");
        for (index, (ops, targets, raising)) in blocks.iter().enumerate() {
            text += &format!("b{index}:\n");
            for &(inc, value) in ops {
                builder.op(ids[index], if inc { OpKind::Inc } else { OpKind::Dec }, Value(value));
                text += &format!("  call void @NRT_{}cref(ptr %v{value})\n", if inc { "in" } else { "de" });
            }
            if *raising {
                text += "  store ptr null, ptr %excinfo, !numba_exception_output !0\n";
            }
            let targets: Vec<usize> = targets.iter().map(|to| to % blocks.len()).collect();
            targets.iter().for_each(|&to| builder.edge(ids[index], ids[to]));
            text += &match targets.split_first() {
                None => String::from("  ret i32 0\n"),
                Some((first, rest)) => {
                    let cases: String = rest.iter().map(|to| format!("    i32 7, label %b{to}\n")).collect();
                    format!("  switch i32 %s, label %b{first} [\n{cases}  ]\n")
                }
            };
        }
        text += "}\n";
        let mut cfg = builder.build().unwrap();
        let expected = prune(&mut cfg, &Options::default());
        let result = prune_llvm(&text, &Options::default()).unwrap();
        prop_assert_eq!(result.functions, [(String::from("f"), expected)]);
        let left: usize = ids.iter().map(|&id| cfg.ops(id).len()).sum();
        prop_assert_eq!(result.text.matches("@NRT_").count(), left);
        // The output is readable, and nothing is left to remove.
        let again = prune_llvm(&result.text, &Options::default()).unwrap();
        prop_assert_eq!(again.functions[0].1.total(), 0);
        prop_assert_eq!(again.text, result.text);
    }

    /// No text panics, and accepted text only loses operations.
    #[test]
    fn any_text_is_answered(lines in prop::collection::vec(
        prop_oneof![
            Just(String::from("define void @f() {")), Just(String::from("}")), Just(String::from("a:")),
            Just(String::from("  br label %a")), Just(String::from("call void @NRT_decref(ptr %a)")),
            "[ -~]{0,40}", "(call|store|\\(|\\)|@NRT_incref|%x|,|!|\"|=|;| ){0,12}",
        ],
        0..12,
    )) {
        target::llvm(lines.join("\n").as_bytes());
    }
}

#[test]
fn the_corpus_finds_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/prune_llvm");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return skip::missing("corpora", "that of prune_llvm is only in the repository");
    };
    let texts: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(texts.len() >= 8, "{} texts", texts.len());
    let accepted = texts.iter().filter(|text| target::llvm(text)).count();
    assert!(accepted >= 6, "{accepted} of {} texts are read", texts.len());
}
