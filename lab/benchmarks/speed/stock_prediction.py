"""Prediction as users of transformers and of ONNX Runtime have it, to compare ours with.

- `transformers.pipeline("text-classification")` in fp32, at the batch size of `BATCH_SIZES` that
  was the fastest on some texts;
- the same in bf16, texts sorted by length, batches of 32;
- ONNX Runtime with the stock network, its quantizer's default int8, texts of like length together;
- the stock model called on batches of 32 texts in their order, padded to the longest.

None of them cleans the texts.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import quantize_dynamic
from torch import nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from malmoi.inference.batching import batches_by_length

BATCH_SIZES = (1, 4, 8, 16, 32)
_BATCH = 32
_TOKENS_IN_BATCH = 1024


class StockPrediction:
    """The stock model, as a user of transformers calls it."""

    def __init__(self, folder: str, threads: int) -> None:
        """Load it.

        Args:
            folder: of a stock classifier of one label.
            threads: of ONNX Runtime.
        """
        self._model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._names = self._model.config.id2label
        self._pipeline = self._made_pipeline(self._model)
        bf16 = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.bfloat16)
        self._pipeline_bf16 = self._made_pipeline(bf16)
        self._session = _plain_int8(self._model, threads)

    def seconds_by_batch_size(self, texts: list[str]) -> dict[int, float]:
        """Seconds of each batch size."""
        self.by_pipeline(texts[:_BATCH], 8)
        found = {}
        for size in BATCH_SIZES:
            began = time.perf_counter()
            self.by_pipeline(texts, size)
            found[size] = time.perf_counter() - began
        return found

    def by_pipeline(self, texts: list[str], batch_size: int) -> list[str]:
        """Labels of a pipeline."""
        found = self._pipeline(texts, batch_size=batch_size, truncation=True)
        return [one["label"] for one in found]

    def by_sorted_pipeline(self, texts: list[str]) -> list[str]:
        """Labels of a pipeline in bf16 that gets short texts first."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found = self._pipeline_bf16(
            [texts[place] for place in order], batch_size=_BATCH, truncation=True
        )
        labels = [""] * len(texts)
        for place, one in zip(order, found, strict=True):
            labels[place] = one["label"]
        return labels

    def by_onnx(self, texts: list[str]) -> list[str]:
        """Labels of ONNX Runtime in int8."""
        encoded = self._tokenizer(texts, truncation=True)["input_ids"]
        labels = [""] * len(texts)
        for batch in batches_by_length([len(ids) for ids in encoded], _TOKENS_IN_BATCH):
            inputs = self._tokenizer.pad(
                {"input_ids": [encoded[place] for place in batch]}, return_tensors="np"
            )
            values = {name: np.asarray(inputs[name], np.int64) for name in inputs}
            logits = self._session.run(None, values)[0]
            for place, best in zip(batch, logits.argmax(axis=-1).tolist(), strict=True):
                labels[place] = self._names[best]
        return labels

    def plainly(self, texts: list[str]) -> list[str]:
        """Labels of batches in the order of the texts."""
        found: list[str] = []
        for first in range(0, len(texts), _BATCH):
            batch = texts[first : first + _BATCH]
            inputs = self._tokenizer(batch, padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                best = self._model(**inputs).logits.argmax(dim=-1).tolist()
            found += [self._names[place] for place in best]
        return found

    def _made_pipeline(self, model: Any) -> Any:
        return pipeline("text-classification", model=model, tokenizer=self._tokenizer, device="cpu")


class _Logits(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def _plain_int8(model: Any, threads: int) -> onnxruntime.InferenceSession:
    """The whole stock network, exported and quantized with the defaults of both."""
    ids = torch.ones((2, 8), dtype=torch.int64)
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        fp32, int8 = Path(folder) / "fp32.onnx", Path(folder) / "int8.onnx"
        torch.onnx.export(
            _Logits(model).eval(),
            (ids, torch.ones_like(ids)),
            fp32,
            input_names=["input_ids", "attention_mask"],
            output_names=["logits"],
            dynamo=True,
            dynamic_shapes=(sizes, sizes),
            external_data=False,
            verbose=False,
        )
        quantize_dynamic(fp32, int8)
        return onnxruntime.InferenceSession(str(int8), options, providers=["CPUExecutionProvider"])
