"""ONNX Runtime as an engine; neither torch nor transformers is imported for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from malmoi.inference.batching import PaddedBatch
from malmoi.inference.engine import EngineName
from malmoi.workers.local import available_cores

# Warnings of the library are about its own optimizer.
_ERRORS_ONLY = 3
# Its kernel takes 28% of an int8 network's time; apart, the sum and the norm take 6% (measured).
_SLOW_FUSIONS = ["SkipLayerNormFusion"]


class OnnxEngine:
    """An exported classifier on the CPU."""

    place = "cpu"
    tokens_in_batch = 1024

    def __init__(
        self,
        network: Path | bytes,
        name: EngineName,
        threads: int | None = None,
        *,
        output: str | None = None,
    ) -> None:
        """Load a network.

        Args:
            network: the .onnx file, or what stands in one.
            name: says in which number format it is.
            threads: that compute, each a batch of its own; as many as there are cores where it is
                None. Two threads at one batch wait for each other: measured on two cores, 1.9 times
                the time, and more where other programs are at work.
            output: name of what is wanted; the first one where it is None.
        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        self.name = name
        self.batches_at_once = threads or available_cores()
        self._session = onnxruntime.InferenceSession(
            network if isinstance(network, bytes) else str(network),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=_SLOW_FUSIONS,
        )
        self._outputs = [output or self._session.get_outputs()[0].name]
        self._inputs = [item.name for item in self._session.get_inputs()]

    def logits(self, batch: PaddedBatch) -> np.ndarray:
        inputs = {name: getattr(batch, name) for name in self._inputs}
        return self._session.run(self._outputs, inputs)[0]
