"""A network in ONNX whose weights are in four bits, computed in eight: twice as fast.

Four bits are small on the disk; ONNX Runtime spreads them out again for every batch.

Legend: B texts, T tokens, N outputs and M inputs of a product, S weights that share a scale.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from malmoi.inference.onnx_graph import OnnxGraph, rows_in_int8

_PRODUCT = "MatMulNBits"
# Four bits without a sign: their middle stands for 0.
_MIDDLE = 8
# The same of eight bits, and how far from it the largest number is.
_ZERO, _MOST = 128, 127
_LEAST_SCALE = 1e-9


def in_eight_bits(path: Path) -> bytes:
    """The network with such products in int8: one scale an output, and one a token.

    With a scale for all tokens of a batch, cheaper by a tenth, one large number is felt by all
    texts. Operators of other kinds and their weights stay as they are.

    Raises:
        google.protobuf.message.DecodeError: the file is damaged.
    """
    network = onnx.load(path)
    stored = {one.name: one for one in network.graph.initializer}
    graph = _Graph()
    for node in network.graph.node:
        sizes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        # With a fourth input zero is not in the middle.
        if node.op_type != _PRODUCT or sizes["bits"] != 4 or len(node.input) > 3:
            graph.nodes.append(node)
            continue
        values, *names = node.input
        halves, scales = (numpy_helper.to_array(stored[name]) for name in names)
        graph.product(values, _spread_out(halves, scales, sizes), output=node.output[0])
    read = {name for node in graph.nodes for name in node.input}
    kept = [one for name, one in stored.items() if name in read]
    found = helper.make_model(
        helper.make_graph(
            graph.nodes,
            network.graph.name,
            network.graph.input,
            network.graph.output,
            [*kept, *graph.constants.values()],
        ),
        ir_version=network.ir_version,
        opset_imports=network.opset_import,
    )
    return bytes(found.SerializeToString())


def _spread_out(halves: np.ndarray, scales: np.ndarray, sizes: Mapping[str, int]) -> np.ndarray:
    """Weights, float32 [N, M], of bytes that hold two each, uint8 [N, M / S, S / 2]."""
    outputs, inputs, size = sizes["N"], sizes["K"], sizes["block_size"]
    numbers = np.stack([halves & 15, halves >> 4], axis=-1).astype(np.float32) - _MIDDLE
    weights = numbers.reshape(outputs, -1, size) * scales.reshape(outputs, -1, 1)
    return np.asarray(weights.reshape(outputs, -1)[:, :inputs], dtype=np.float32)


class _Graph(OnnxGraph):
    def __init__(self) -> None:
        super().__init__()
        # Bytes and scales of a product's inputs, by their name: one matrix may go into three.
        self._in_int8: dict[str, tuple[str, str]] = {}

    def product(self, values: str, weights: np.ndarray, output: str) -> None:
        """`values` [B, T, M] times weights, float [N, M]."""
        rows, scales = rows_in_int8(weights)
        numbers, scale = self._tokens_in_int8(values, weights.shape[1])
        product = self.node(
            "MatMulInteger",
            numbers,
            self.constant(f"{output}.int8", rows.T, np.int8),
            self.constant("int8.zero", _ZERO, np.uint8),
            self.constant("int8.weights_zero", 0, np.int8),
        )
        product = self.node("Cast", product, to=TensorProto.FLOAT)
        columns = self.constant(f"{output}.scale", scales.ravel(), np.float32)
        self.node("Mul", self.node("Mul", product, columns), scale, output=output)

    def _tokens_in_int8(self, values: str, size: int) -> tuple[str, str]:
        """Uint8 [B, T, M] and what each token's are to be multiplied by, [B, T, 1]."""
        if values not in self._in_int8:
            last = self.constant("int8.last", [-1])
            largest = self.node("ReduceMax", self.node("Abs", values), last, keepdims=1)
            share = self.constant("int8.share", 1 / _MOST, np.float32)
            least = self.constant("int8.least", _LEAST_SCALE, np.float32)
            scale = self.node("Max", self.node("Mul", largest, share), least)
            scales = self.node("Reshape", scale, last)
            zero = self.constant("int8.zero", _ZERO, np.uint8)
            zeros = self.node("Expand", zero, self.node("Shape", scales))
            rows = self.node("Reshape", values, self.constant(f"int8.{size}", [-1, size]))
            rows = self.node("QuantizeLinear", rows, scales, zeros, axis=0)
            self._in_int8[values] = self.node("Reshape", rows, self.node("Shape", values)), scale
        return self._in_int8[values]
