"""Writes the tests of ONNX's own operators, each as a file with a model and its true values.

    cases.py FOLDER

A file is a ModelProto whose graph has the inputs as initializers of the same names, and the true
results as initializers whose names begin with "true/". Tensors of more than 4096 elements keep
their extents and lose their data. Cases with inputs that are no tensors have none of them.
Does nothing if the folder has the cases of the installed package already.
"""

import sys
import warnings
from pathlib import Path

import numpy
import onnx
from onnx import numpy_helper

LARGEST = 4096


def tensor(value, name):
    """The value as a tensor of this name, or None for sequences, maps and nothing."""
    if isinstance(value, onnx.TensorProto):
        made = onnx.TensorProto()
        made.CopyFrom(value)
    elif isinstance(value, (list, dict, tuple)) or value is None or isinstance(value, onnx.SparseTensorProto):
        return None
    else:
        made = numpy_helper.from_array(numpy.asarray(value))
    made.name = name
    if numpy.prod(made.dims, dtype=object) > LARGEST:
        for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data"):
            made.ClearField(field)
    return made


def main():
    folder = Path(sys.argv[1])
    stamp = folder / f"of-onnx-{onnx.__version__}"
    if stamp.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        if case.model is None:
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        given, results = case.data_sets[0]
        for infos, values, prefix in ((model.graph.input, given, ""), (model.graph.output, results, "true/")):
            for info, value in zip(infos, values):
                made = tensor(value, prefix + info.name)
                if made is not None:
                    model.graph.initializer.append(made)
        (folder / f"{case.name}.onnx").write_bytes(model.SerializeToString())
    stamp.touch()


main()
