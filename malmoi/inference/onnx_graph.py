"""Nodes and constants of an ONNX network that is being built.

Legend: N rows, M numbers of each.
"""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

MOST_INT8 = 127


class OnnxGraph:
    """A graph that grows; what is added gives the name of its output.

    Attributes:
        nodes: in the order in which they are computed.
        constants: by their names.
    """

    def __init__(self, prefix: str = "") -> None:
        """Nothing is in it.

        Args:
            prefix: of the names that are given here, where others stand beside them.
        """
        self._prefix = prefix
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add an operator of ONNX with one output."""
        output = output or f"{self._prefix}{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, name: str, values: Any, dtype: Any = np.int64) -> str:
        """Add numbers under a name, unless there are some."""
        if name not in self.constants:
            array = np.ascontiguousarray(np.asarray(values, dtype)).reshape(np.shape(values))
            self.constants[name] = numpy_helper.from_array(array, name)
        return name


def rows_in_int8(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows from -127 to 127, int8 [N, M], and what each is to be multiplied by, float32 [N, 1]."""
    exact = weights.astype(np.float32)
    scales = np.abs(exact).max(axis=1, keepdims=True) / MOST_INT8
    scales[scales == 0] = 1
    return np.rint(exact / scales).astype(np.int8), scales
