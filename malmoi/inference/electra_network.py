"""The ONNX network of an ELECTRA, built of its weights by numpy: no torch, no exporter.

Of a classifier the last layer is computed for the first token alone, as in
`malmoi.inference.first_token`.

Legend: B texts in a batch, T tokens of the longest text in it, H hidden size, K labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from malmoi.inference.electra_export import EMBEDDINGS
from malmoi.inference.engine import EngineName
from malmoi.inference.onnx_graph import OnnxGraph, rows_in_int8

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# The first one with an operator for attention; ONNX Runtime 1.23 and newer read it.
OPSET = 23
# The newest that ONNX Runtime 1.23 reads.
_IR_VERSION = 10
# Added to the scores of padding: the lowest bf16, finite in either number format.
_LOWEST = -3.3895313892515355e38

Weights = Mapping[str, np.ndarray]


def build_network(
    config: Mapping[str, Any], weights: Weights, *, quantized: bool
) -> onnx.ModelProto:
    """Build the network of a classifier of which `malmoi.inference.electra_export.fits` is true.

    Args:
        weights: of any float format; computed in fp32.
        quantized: weights of matrix products in int8, one scale a column, activations as they
            come; word embeddings in int8, one scale a row. Their projection stays in fp32: nothing
            to compute, and a third of the error (measured).
    """
    graph = _Graph(weights, quantized)
    hidden, _ = _hidden(graph, config, first_alone=True)
    first = graph.node("Gather", hidden, graph.constant("first", 0), axis=1)
    pooled = graph.node("Gelu", graph.linear("classifier.dense", first))
    graph.linear("classifier.out_proj", pooled, "logits")
    return graph.model(len(weights["classifier.out_proj.bias"]))


def build_features(
    config: Mapping[str, Any], weights: Weights, *, quantized: bool
) -> onnx.ModelProto:
    """Build the network of an encoder whose "logits" are [CLS] and the mean of tokens, [B, 2 H].

    `malmoi.inference.electra_export.fits` is true of it without a head.
    """
    graph = _Graph(weights, quantized)
    node = graph.node
    hidden, mask = _hidden(graph, config, first_alone=False)
    first = node("Gather", hidden, graph.constant("first", 0), axis=1)
    columns = node("Unsqueeze", mask, graph.constant("last", [2]))
    tokens = graph.constant("tokens", [1])
    total = node("ReduceSum", node("Mul", hidden, columns), tokens, keepdims=0)
    mean = node("Div", total, node("ReduceSum", columns, tokens, keepdims=0))
    node("Concat", first, mean, axis=1, output="logits")
    return graph.model(2 * config["hidden_size"])


def write_electra(
    folder: Path, files: Mapping[EngineName, str], config: Mapping[str, Any], weights: Weights
) -> None:
    """Write what `build_network` builds, by the names in `files`.

    Raises:
        OSError: they cannot be written.
    """
    for engine, name in files.items():
        network = build_network(config, weights, quantized=engine == "onnx-int8")
        (folder / name).write_bytes(network.SerializeToString())


def _hidden(graph: _Graph, config: Mapping[str, Any], *, first_alone: bool) -> tuple[str, str]:
    """What the encoder makes of all tokens, [B, T, H], or of the first; and the mask, [B, T]."""
    node, layer_norm = graph.node, _layer_norm(graph, config.get("layer_norm_eps", 1e-12))
    zero, one = graph.constant("zero", [0]), graph.constant("one", [1])
    length = node("Shape", "input_ids", start=1, end=2)
    positions = node("Slice", f"{EMBEDDINGS}.positions", zero, length)
    graph.constant(f"{EMBEDDINGS}.positions", range(config["max_position_embeddings"]))
    hidden = node(
        "Add",
        graph.word_embeddings(),
        node("Gather", graph.weight(f"{EMBEDDINGS}.token_type_embeddings"), "token_type_ids"),
    )
    embedded = node("Gather", graph.weight(f"{EMBEDDINGS}.position_embeddings"), positions)
    hidden = layer_norm(f"{EMBEDDINGS}.LayerNorm", node("Add", hidden, embedded))
    if config["embedding_size"] != config["hidden_size"]:
        hidden = graph.linear(f"{EMBEDDINGS}_project", hidden, exact=True)
    mask = node("Cast", "attention_mask", to=TensorProto.FLOAT)
    lowest = graph.constant("lowest", _LOWEST, np.float32)
    bias = node("Mul", node("Sub", graph.constant("shown", 1, np.float32), mask), lowest)
    # [B, 1, 1, T], and as many rows as there are queries.
    bias = node("Unsqueeze", bias, graph.constant("middle", [1, 2]))
    rows = node("Expand", bias, node("Concat", one, one, length, one, axis=0))
    heads = config["num_attention_heads"]
    for number in range(last := config["num_hidden_layers"]):
        layer = f"electra.encoder.layer.{number}"
        attention, queries = f"{layer}.attention", hidden
        if first_alone and number == last - 1:
            queries, rows = node("Slice", hidden, zero, one, one), bias
        seen = node(
            "Attention",
            graph.linear(f"{attention}.self.query", queries),
            graph.linear(f"{attention}.self.key", hidden),
            graph.linear(f"{attention}.self.value", hidden),
            rows,
            q_num_heads=heads,
            kv_num_heads=heads,
        )
        seen = node("Add", graph.linear(f"{attention}.output.dense", seen), queries)
        seen = layer_norm(f"{attention}.output.LayerNorm", seen)
        inner = node("Gelu", graph.linear(f"{layer}.intermediate.dense", seen))
        hidden = node("Add", graph.linear(f"{layer}.output.dense", inner), seen)
        hidden = layer_norm(f"{layer}.output.LayerNorm", hidden)
    return hidden, mask


def _layer_norm(graph: _Graph, epsilon: float) -> Callable[[str, str], str]:
    def added(name: str, values: str) -> str:
        weight, bias = graph.weight(name), graph.weight(name, "bias")
        return graph.node("LayerNormalization", values, weight, bias, epsilon=epsilon)

    return added


class _Graph(OnnxGraph):
    """Has the weights that its nodes read."""

    def __init__(self, weights: Weights, quantized: bool) -> None:
        super().__init__()
        self._weights, self._quantized = weights, quantized
        # Outputs of DynamicQuantizeLinear, by what they are of: one matrix may go into three.
        self._in_int8: dict[str, list[str]] = {}

    def weight(self, name: str, part: str = "weight") -> str:
        name = f"{name}.{part}"
        return self.constant(name, self._weights[name], np.float32)

    def word_embeddings(self) -> str:
        name = f"{EMBEDDINGS}.word_embeddings"
        if not self._quantized:
            return self.node("Gather", self.weight(name), "input_ids")
        rows, scales = rows_in_int8(self._weights[f"{name}.weight"])
        found = self.node("Gather", self.constant(f"{name}.int8", rows, np.int8), "input_ids")
        found = self.node("Cast", found, to=TensorProto.FLOAT)
        table = self.constant(f"{name}.scale", scales, np.float32)
        return self.node("Mul", found, self.node("Gather", table, "input_ids"))

    def linear(self, name: str, values: str, output: str = "", exact: bool = False) -> str:
        """`values` [..., in] times the weights [out, in] of a linear layer, and its bias."""
        weights = self._weights[f"{name}.weight"]
        if self._quantized and not exact:
            product = self._product_in_int8(name, values, weights)
        else:
            table = self.constant(f"{name}.weight", weights.T, np.float32)
            product = self.node("MatMul", values, table)
        return self.node("Add", product, self.weight(name, "bias"), output=output)

    def _product_in_int8(self, name: str, values: str, weights: np.ndarray) -> str:
        """In the order in which ONNX Runtime makes one operator of them."""
        if values not in self._in_int8:
            parts = [f"{values}.{part}" for part in ("int8", "scale", "zero")]
            self.nodes.append(helper.make_node("DynamicQuantizeLinear", [values], parts))
            self._in_int8[values] = parts
        quantized, scale, zero = self._in_int8[values]
        rows, scales = rows_in_int8(weights)
        table = self.constant(f"{name}.int8", rows.T, np.int8)
        none = self.constant(f"{name}.zero", np.zeros(len(rows)), np.int8)
        product = self.node("MatMulInteger", quantized, table, zero, none)
        columns = self.constant(f"{name}.scale", scales.ravel(), np.float32)
        product = self.node("Cast", product, to=TensorProto.FLOAT)
        return self.node("Mul", product, self.node("Mul", scale, columns))

    def model(self, outputs: int) -> onnx.ModelProto:
        texts = ["texts", "tokens"]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, texts) for name in INPUTS]
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["texts", outputs])
        constants = list(self.constants.values())
        graph = helper.make_graph(self.nodes, "electra", inputs, [logits], constants)
        return helper.make_model(
            graph,
            producer_name="malmoi",
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
