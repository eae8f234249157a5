"""Products with weights of four bits, computed in eight; other networks stay as they are."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from malmoi.inference.vectors.eight_bits import in_eight_bits


def network(folder: Path, inputs: int, size: int, *, opset: int = 21, bits: int = 4) -> Path:
    """Two products of one matrix, named as a node of ours would be; [B, T, inputs] to [B, T, 5]."""
    random, blocks = np.random.default_rng(0), -(-inputs // size)
    nodes, constants = [], []
    for number in range(2):
        halves = random.integers(0, 256, (5, blocks, size // 2), dtype=np.uint8)
        scales = random.uniform(0.01, 0.1, 5 * blocks).astype(np.float32)
        names = [f"halves_{number}", f"scales_{number}"]
        constants += [
            numpy_helper.from_array(halves, names[0]),
            numpy_helper.from_array(scales, names[1]),
        ]
        nodes.append(
            helper.make_node(
                "MatMulNBits",
                ["values", *names],
                [f"Abs_{number}"],
                domain="com.microsoft",
                K=inputs,
                N=5,
                bits=bits,
                block_size=size,
            )
        )
    nodes.append(helper.make_node("Sub", ["Abs_0", "Abs_1"], ["found"]))
    values, found = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", "tokens", last])
        for name, last in {"values": inputs, "found": 5}.items()
    )
    graph = helper.make_graph(nodes, "products", [values], [found], constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=opsets), folder / "network")
    return folder / "network"


def run(loaded: Path | bytes, values: np.ndarray) -> np.ndarray:
    given = loaded if isinstance(loaded, bytes) else str(loaded)
    session = onnxruntime.InferenceSession(given, providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, {"values": values})[0]
    return found


@pytest.mark.parametrize(("inputs", "size"), [(64, 16), (67, 32), (33, 64), (200, 128)])
def test_eight_bits_give_what_four_give(tmp_path: Path, inputs: int, size: int) -> None:
    path = network(tmp_path, inputs, size)
    values = np.random.default_rng(1).standard_normal((3, 4, inputs)).astype(np.float32)
    # A large number in one token is not felt by the others; a token of zeros is none of a text.
    values[0, 0, 0], values[0, 1] = 1_000, 0
    expected, loaded = run(path, values), in_eight_bits(path)
    assert isinstance(loaded, bytes)
    found = run(loaded, values)
    error = np.abs(found - expected).max(axis=2) / np.abs(expected).max(axis=2).clip(1e-6)
    assert error.max() < 0.05
    assert np.array_equal(run(loaded, values[1:, 1:]), found[1:, 1:])
    assert not found[0, 1].any()


@pytest.mark.parametrize(("opset", "bits"), [(17, 4), (21, 8)])
def test_other_networks_stay_as_they_are(tmp_path: Path, opset: int, bits: int) -> None:
    path = network(tmp_path, 64, 32, opset=opset, bits=bits)
    assert in_eight_bits(path) == path
