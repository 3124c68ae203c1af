"""llvmlite's pruning pass over the modules of an oracle file: `python refprune.py real.json`.

Prints the nanoseconds of one pass over all modules (median of 15, each on freshly parsed modules,
parsing not counted)."""

import json
import sys
import time

import llvmlite.binding as llvm

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine()


def text(record):
    """The record's functions as LLVM IR: calls, branches and the stores that mark raising
    blocks."""
    lines = ["declare void @NRT_incref(ptr)", "declare void @NRT_decref(ptr)", "!0 = !{i1 true}"]
    for number, blocks in enumerate(record["functions"].values()):
        values = sorted({value for block in blocks for _, value in block["ops"] if value != "null"})
        names = {value: f"%v{index}" for index, value in enumerate(values)} | {"null": "null"}
        labels = {block["name"]: f"b{index}" for index, block in enumerate(blocks)}
        arguments = ["i32 %c", "ptr %excinfo"] + [f"ptr %v{index}" for index in range(len(values))]
        lines.append(f"define void @f{number}({', '.join(arguments)}) {{")
        for block in blocks:
            lines.append(f"{labels[block['name']]}:")
            lines += [f"  call void @NRT_{op}ref(ptr {names[value]})" for op, value in block["ops"]]
            if block["raising"]:
                lines.append("  store ptr null, ptr %excinfo, !numba_exception_output !0")
            targets = [f"label %{labels[name]}" for name in block["succ"]]
            if not targets:
                lines.append("  ret void")
            elif len(targets) == 1:
                lines.append(f"  br {targets[0]}")
            else:
                cases = " ".join(f"i32 {index}, {target}" for index, target in enumerate(targets[1:]))
                lines.append(f"  switch i32 %c, {targets[0]} [ {cases} ]")
        lines.append("}")
    return "\n".join(lines)


sources = [(text(record), record["subgraph_limit"]) for record in json.load(open(sys.argv[1]))]
operations = lambda module: str(module).count("call void @NRT_")
times, removed = [], 0
for turn in range(15):
    spent = 0
    for source, limit in sources:
        module = llvm.parse_assembly(source)
        before = operations(module) if turn == 0 else 0
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
        passes = llvm.create_new_module_pass_manager()
        passes.add_refprune_pass(subgraph_limit=limit)
        start = time.perf_counter_ns()
        passes.run(module, builder)
        spent += time.perf_counter_ns() - start
        if turn == 0:
            removed += before - operations(module)
    times.append(spent)
print(removed, sorted(times)[len(times) // 2])
