"""A network in ONNX whose weights are in four bits, made one in eight that takes half the time.

Four bits are small on the disk; ONNX Runtime spreads them out again for every batch.

Legend: B texts, T tokens, N outputs and M inputs of a product, S weights that share a scale.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from malmoi.inference.onnx_graph import MOST_INT8, OnnxGraph, rows_in_int8

# Stands for the numbers that come of it: to be raised where they change.
RECIPE = "eight bits 1"
_PRODUCT = "MatMulNBits"
# The first opset with all operators of a product in int8.
_OPSET = 18
# Numbers without a sign, of four and of eight bits: their middle stands for 0.
_MIDDLE, _ZERO = 8, 128
_LEAST_SCALE = 1e-9


def in_eight_bits(path: Path) -> Path | bytes:
    """The network, products with weights of four bits in int8: a scale an output, and one a token.

    With one scale for all tokens of a batch, a sixth cheaper, a large number is felt by all texts.

    Returns:
        `path` where it has no such products, or is of an opset without the operators.

    Raises:
        google.protobuf.message.DecodeError: the file is damaged.
    """
    network = onnx.load(path)
    stored = {one.name: one for one in network.graph.initializer}
    opset = max((one.version for one in network.opset_import if not one.domain), default=0)
    graph, spread_out = _Graph(), set[str]()
    for node in network.graph.node:
        if opset < _OPSET or not _can_be_spread_out(node, stored):
            graph.nodes.append(node)
            continue
        values, *names = node.input
        halves, scales = (numpy_helper.to_array(stored[name]) for name in names)
        graph.product(values, _spread_out(halves, scales, _attributes(node)), node.output[0])
        spread_out.update(names)
    if not spread_out:
        return path
    read = {name for node in graph.nodes for name in node.input}
    kept = [one for name, one in stored.items() if name in read or name not in spread_out]
    network.graph.ClearField("node")
    network.graph.node.extend(graph.nodes)
    network.graph.ClearField("initializer")
    network.graph.initializer.extend([*kept, *graph.constants.values()])
    return bytes(network.SerializeToString())


def _attributes(node: onnx.NodeProto) -> Mapping[str, Any]:
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


def _can_be_spread_out(node: onnx.NodeProto, stored: Mapping[str, onnx.TensorProto]) -> bool:
    # With a fourth input zero is not in the middle.
    if node.op_type != _PRODUCT or _attributes(node).get("bits", 4) != 4 or len(node.input) != 3:
        return False
    halves, scales = map(stored.get, node.input[1:])
    return halves is not None and scales is not None and scales.data_type == TensorProto.FLOAT


def _spread_out(halves: np.ndarray, scales: np.ndarray, sizes: Mapping[str, int]) -> np.ndarray:
    """Weights, float32 [N, M], of bytes that hold two each, uint8 [N, ceil(M / S), S / 2]."""
    outputs, inputs, size = sizes["N"], sizes["K"], sizes["block_size"]
    numbers = np.stack([halves & 15, halves >> 4], axis=-1).astype(np.float32) - _MIDDLE
    weights: np.ndarray = numbers.reshape(outputs, -1, size) * scales.reshape(outputs, -1, 1)
    return weights.reshape(outputs, -1)[:, :inputs]


class _Graph(OnnxGraph):
    def __init__(self) -> None:
        super().__init__("int8.")
        # Bytes and scales of a product's inputs, by their name: one matrix may go into three.
        self._in_int8: dict[str, tuple[str, str]] = {}

    def product(self, values: str, weights: np.ndarray, output: str) -> None:
        """`values` [B, T, M] times weights, float [N, M]."""
        rows, scales = rows_in_int8(weights)
        numbers, token_scales = self._tokens_in_int8(values, weights.shape[1])
        product = self.node(
            "MatMulInteger",
            numbers,
            self.constant(f"int8.weights.{output}", rows.T, np.int8),
            self.constant("int8.zero", _ZERO, np.uint8),
        )
        product = self.node("Cast", product, to=TensorProto.FLOAT)
        columns = self.constant(f"int8.scales.{output}", scales.ravel(), np.float32)
        self.node("Mul", self.node("Mul", product, columns), token_scales, output=output)

    def _tokens_in_int8(self, values: str, size: int) -> tuple[str, str]:
        """Uint8 [B, T, M] and what each token's are to be multiplied by, [B, T, 1]."""
        if values not in self._in_int8:
            last = self.constant("int8.last", [-1])
            largest = self.node("ReduceMax", self.node("Abs", values), last, keepdims=1)
            share = self.constant("int8.share", 1 / MOST_INT8, np.float32)
            least = self.constant("int8.least", _LEAST_SCALE, np.float32)
            token_scales = self.node("Max", self.node("Mul", largest, share), least)
            in_a_row = self.node("Reshape", token_scales, last)
            zero = self.constant("int8.zero", _ZERO, np.uint8)
            zeros = self.node("Expand", zero, self.node("Shape", in_a_row))
            rows = self.node("Reshape", values, self.constant(f"int8.rows_{size}", [-1, size]))
            rows = self.node("QuantizeLinear", rows, in_a_row, zeros, axis=0)
            numbers = self.node("Reshape", rows, self.node("Shape", values))
            self._in_int8[values] = numbers, token_scales
        return self._in_int8[values]
