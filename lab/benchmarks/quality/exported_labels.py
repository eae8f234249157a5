"""Does an exported folder give the labels of `Classifier`, whoever uses it?

    python -m lab.benchmarks.quality.exported_labels --data FOLDER

Real reviews (NSMC's test file, texts only) are labelled by `Classifier` in fp32, and by what a
stranger has: transformers' pipeline, on the model as it is and on the exported folder; onnxruntime
with tokenizers alone, on the exported networks in fp32 and int8. Reported are the share of other
labels, and the largest difference of a probability; all without the linear part that only Malmoi
adds, and what that changes.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer
from transformers import pipeline

from lab.benchmarks.data import NSMC_TEST, DataSettings
from lab.benchmarks.encoder_alone import encoder_alone
from lab.benchmarks.result_files import write_result
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.engine import EngineName
from malmoi.inference.exported import PUBLISHED_FILES
from malmoi.publishing.folder import export_folder
from malmoi.text.reading.records import iter_records

RESULTS = Path(__file__).parents[1] / "results" / "exported_labels.json"
_BATCH = 8


@dataclass(kw_only=True)
class ExportedLabelsSettings(DataSettings):
    """What is labelled with what."""

    model: str = "malmoi-small-reviews"
    """Classifier of one label: name, folder or Hub id."""
    texts: int = 10_000
    """Reviews, the first ones of the file."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: ExportedLabelsSettings) -> None:
    """Export, label, compare, write the results."""
    path = NSMC_TEST.find(settings.folder)
    texts = [record.text for record in islice(iter_records(path), settings.texts)]
    if not texts:
        raise InputError(f"expected --texts of at least 1, found {settings.texts}")
    model = encoder_alone(settings.model)
    expected, with_linear = _by_classifier(model, texts), _by_classifier(settings.model, texts)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "exported"
        export_folder(model, folder)
        arms = {
            "pipeline, the model as it is": _by_pipeline(str(model), texts),
            "pipeline, exported folder": _by_pipeline(str(folder), texts),
            "tokenizers and onnxruntime, fp32": _by_onnx(folder, "onnx-fp32", texts),
            "tokenizers and onnxruntime, int8": _by_onnx(folder, "onnx-int8", texts),
        }
    result = {
        "model": settings.model,
        "texts": len(texts),
        "arms": {name: _compared(found, expected) for name, found in arms.items()},
        "encoder_instead_of_both": _compared(expected, with_linear),
    }
    write_result(settings.output, result)
    print(json.dumps(result, ensure_ascii=False, indent=1))


def _compared(found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    """How far probabilities are from the expected ones, both float64 [N, K]."""
    others, differences = found.argmax(1) != expected.argmax(1), np.abs(found - expected)
    return {
        "other_labels": int(others.sum()),
        "share": round(float(others.mean()), 5),
        "largest_difference": round(float(differences.max()), 4),
        "median_difference": round(float(np.median(differences.max(1))), 5),
    }


def _by_classifier(model: str | Path, texts: Sequence[str]) -> np.ndarray:
    """Probabilities of Malmoi, float64 [N, K]."""
    found = Classifier.load(model, "torch-fp32").predict(texts)
    return np.array([list(one.probabilities.values()) for one in found])


def _by_pipeline(folder: str, texts: Sequence[str]) -> np.ndarray:
    """Probabilities of a stock pipeline, float64 [N, K]."""
    classify: Any = pipeline("text-classification", model=folder, device="cpu")
    order = list(classify.model.config.id2label.values())
    rows = classify(list(texts), batch_size=_BATCH, truncation=True, top_k=None)
    return np.array(
        [[{one["label"]: one["score"] for one in row}[n] for n in order] for row in rows]
    )


def _by_onnx(folder: Path, engine: EngineName, texts: Sequence[str]) -> np.ndarray:
    """The same of tokenizers and onnxruntime alone, one text at a time."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    network = onnxruntime.InferenceSession(str(folder / PUBLISHED_FILES[engine]))
    rows = []
    for text in texts:
        encoded = tokenizer.encode(text)
        values = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        inputs = {one.name: np.array([values[one.name]]) for one in network.get_inputs()}
        powers = np.exp(network.run(["logits"], inputs)[0][0])
        rows.append(powers / powers.sum())
    return np.array(rows)


if __name__ == "__main__":
    sys.exit(run_command(ExportedLabelsSettings, main, __doc__))
