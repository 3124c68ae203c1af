"""Records graphs of llama.cpp as traces for `usm-bench ggml`: `record.py FOLDER [--ggml HEADERS]`.

The models have headers and no data: their files are holes, and llama.cpp allocates nothing. Needs
the packages llama-cpp-py-sync, gguf and cffi, a C compiler, and the headers of ggml: a clone of
https://github.com/ggml-org/ggml. `trace.c` tells the format.
"""

import argparse
import ctypes
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass
class Model:
    """Widths of a network, and how it is run."""

    name: str
    arch: str
    embedding: int
    heads: int
    kv_heads: int
    forward: int
    vocabulary: int
    context: int
    batch: int = 512
    flash: bool = False
    layers: int = 8
    head: int = 128
    experts: int = 0
    experts_used: int = 0


LLAMA = dict(arch="llama", embedding=4096, heads=32)
LLAMA2 = dict(LLAMA, kv_heads=32, forward=11008, vocabulary=32000, context=4096)
LLAMA3 = dict(LLAMA, kv_heads=8, forward=14336, vocabulary=128256, context=8192)
QWEN3 = dict(
    arch="qwen3moe", embedding=2048, heads=32, kv_heads=4, forward=768, vocabulary=151936,
    experts=128, experts_used=8, context=8192,
)
QWEN2 = dict(arch="qwen2", embedding=1536, heads=12, kv_heads=2, forward=8960, vocabulary=151936)
MODELS = [
    Model("llama-7b-fa", **LLAMA2, flash=True),
    Model("llama-7b", **LLAMA2),
    Model("llama-3-8b", **LLAMA3),
    Model("llama-3-8b-ub2048-fa", **LLAMA3, batch=2048, flash=True),
    Model("qwen3-moe", **QWEN3),
    Model("qwen3-moe-fa", **QWEN3, flash=True),
    Model("qwen2-1.5b-8k", **QWEN2, context=8192),
    Model("qwen2-1.5b-32k", **QWEN2, context=32768),
    Model(
        "tiny", "llama", embedding=64, heads=2, kv_heads=1, head=32, forward=128, vocabulary=256,
        context=256, batch=32, layers=2,
    ),
]  # fmt: skip


def shapes(model):
    """Names and shapes of the weights, rows first."""
    query, kv = model.heads * model.head, model.kv_heads * model.head
    yield "token_embd.weight", (model.vocabulary, model.embedding)
    yield "output_norm.weight", (model.embedding,)
    yield "output.weight", (model.vocabulary, model.embedding)
    for layer in range(model.layers):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", (model.embedding,)
        yield block + "ffn_norm.weight", (model.embedding,)
        for name, rows in ("q", query), ("k", kv), ("v", kv):
            yield f"{block}attn_{name}.weight", (rows, model.embedding)
            if model.arch == "qwen2":
                yield f"{block}attn_{name}.bias", (rows,)
        yield block + "attn_output.weight", (model.embedding, query)
        if model.arch == "qwen3moe":
            yield block + "attn_q_norm.weight", (model.head,)
            yield block + "attn_k_norm.weight", (model.head,)
            yield block + "ffn_gate_inp.weight", (model.experts, model.embedding)
        each, end = ((model.experts,), "_exps") if model.experts else ((), "")
        for name, rows, columns in (
            ("gate", model.forward, model.embedding),
            ("up", model.forward, model.embedding),
            ("down", model.embedding, model.forward),
        ):
            yield f"{block}ffn_{name}{end}.weight", (*each, rows, columns)


def write_model(model, path):
    """Writes the header and the list of tensors; the data is a hole."""
    import gguf
    import numpy

    writer = gguf.GGUFWriter(path, model.arch)
    writer.add_block_count(model.layers)
    writer.add_context_length(model.context)
    writer.add_embedding_length(model.embedding)
    writer.add_feed_forward_length(model.forward)
    writer.add_head_count(model.heads)
    writer.add_head_count_kv(model.kv_heads)
    writer.add_key_length(model.head)
    writer.add_value_length(model.head)
    writer.add_rope_dimension_count(model.head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(model.vocabulary)
    writer.add_tokenizer_model("no_vocab")
    if model.experts:
        writer.add_expert_count(model.experts)
        writer.add_expert_used_count(model.experts_used)
        writer.add_expert_feed_forward_length(model.forward)
    size = 0
    for name, shape in shapes(model):
        dtype = numpy.dtype(numpy.float16 if len(shape) > 1 else numpy.float32)
        length = int(numpy.prod(shape)) * dtype.itemsize
        writer.add_tensor_info(name, shape, dtype, length)
        size += length + 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    os.truncate(path, path.stat().st_size + size + 64)


def reserve(model, path):
    """Loads the model without memory and makes a context, which plans its largest graphs."""
    from llama_cpp_py_sync import _cffi_bindings as bindings

    # For all libraries to see, or the one loaded before it finds no function behind its own.
    ctypes.CDLL(Path(bindings.__file__).parent / "libggml-base.so.0", ctypes.RTLD_GLOBAL)
    llama, ffi = bindings.get_lib(), bindings.get_ffi()
    silent = ffi.callback("ggml_log_callback", lambda level, text, data: None)
    llama.llama_log_set(silent, ffi.NULL)
    llama.llama_backend_init()
    options = llama.llama_model_default_params()
    # Without memory there is nothing to map.
    options.no_alloc, options.n_gpu_layers, options.load_mode = True, 0, llama.LLAMA_LOAD_MODE_NONE
    loaded = llama.llama_model_load_from_file(str(path).encode(), options)
    if loaded == ffi.NULL:
        raise SystemExit(f"{model.name}: llama.cpp does not load {path}")
    options = llama.llama_context_default_params()
    options.n_ctx, options.n_batch, options.n_ubatch = model.context, model.batch, model.batch
    options.n_seq_max, options.flash_attn_type = 1, int(model.flash)
    if llama.llama_init_from_model(loaded, options) == ffi.NULL:
        raise SystemExit(f"{model.name}: llama.cpp makes no context")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ggml", type=Path, default=Path("ggml"), help="a clone of ggml")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    path = arguments.folder / "model.gguf"
    if arguments.model:
        # In a process of its own, so that the library is loaded before ggml.
        model = next(model for model in MODELS if model.name == arguments.model)
        reserve(model, path)
        return
    library = arguments.folder / "libtrace.so"
    include = [f"-I{arguments.ggml}/include", f"-I{arguments.ggml}/src"]
    command = ["cc", "-O1", "-shared", "-fPIC", *include, HERE / "trace.c", "-o", library, "-ldl"]
    subprocess.run(command, check=True)
    for model in MODELS:
        write_model(model, path)
        before = os.environ.get("LD_PRELOAD", "")
        trace = arguments.folder / f"{model.name}.trace"
        variables = {"LD_PRELOAD": f"{library.resolve()} {before}", "USM_GGML_TRACE": str(trace)}
        again = [sys.executable, __file__, arguments.folder, "--model", model.name]
        subprocess.run(again, check=True, env=os.environ | variables)
        path.unlink()
        print(trace.read_text().partition("\n")[0], trace)
    library.unlink()


if __name__ == "__main__":
    main()
