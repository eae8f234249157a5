"""How fast are labels predicted? Every engine, beside transformers' pipeline and a plain call.

    python -m lab.benchmarks.speed.prediction --data FOLDER

Real reviews (NSMC's test file) are labelled in turns, a slice at a time, by

- `Classifier` with each engine, cleaning included, without the linear part that others cannot read;
- with it, by the engine that is fastest on most machines;
- what users of transformers and ONNX Runtime have: see `lab.benchmarks.speed.stock_prediction`.

Then one text at a time, in turns again, different ones and then the same one again and again: the
whole call from text to label, tokenizer included, of each engine and of the stock model in fp32.
Reported are texts a second by the clock and by the processor, ratios to the pipeline of the same
slice (medians), the share of texts with the label of torch in fp32, for torch the share of what the
machine does of matrix products alone, and of one text the median and the 99th percentile. Loading
is outside the time.
"""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.benchmarks.data import NSMC_TEST, DataSettings
from lab.benchmarks.encoder_alone import encoder_alone
from lab.benchmarks.result_files import write_result
from lab.benchmarks.speed.stock_prediction import StockPrediction
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.inference.batched_logits import logits_by_length
from malmoi.inference.classifier import Classifier
from malmoi.inference.engine_choice import open_classifier
from malmoi.pretrain.model.cost import hardware_flops, matrix_seconds
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records

RESULTS = Path(__file__).parents[1] / "results" / "prediction.json"
ENGINES = ("torch-fp32", "torch-bf16", "onnx-fp32", "onnx-int8")
PIPELINE, PLAIN = "pipeline", "plain call"
# The classifier as it is released; everybody else has its encoder.
WHOLE, WHOLE_ENGINE = "onnx-int8 and the linear part", "onnx-int8"
# Texts that choose the batch size of the pipeline, and that warm up everybody.
_CHOOSING, _WARMING = 1000, 64
# Texts that one engine labels one by one before it is another's turn, and those before them that
# are not counted: the processor's caches still hold the engine before.
_TURN, _UNCOUNTED = 50, 3
# Rows and columns of the products whose rate is taken as the machine's.
_MATRIX = (1024, 256, 1024)
Labels = Callable[[list[str]], list[str]]


@dataclass(kw_only=True)
class PredictionSpeedSettings(DataSettings):
    """What is predicted, with what, how often."""

    model: str = "malmoi-medium-reviews"
    """Classifier: name, folder or Hub id."""
    texts: int = 20_000
    """Reviews, the first ones of the file."""
    slices: int = 5
    """Parts of them; everybody takes a turn at each."""
    single_texts: int = 2000
    """Texts that are predicted one at a time."""
    threads: int = 2
    """Threads of everybody."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: PredictionSpeedSettings) -> None:
    """Take turns, print the table, write the results."""
    torch.set_num_threads(settings.threads)
    path = NSMC_TEST.find(settings.folder)
    texts = [record.text for record in islice(iter_records(path), settings.texts)]
    if len(texts) < settings.slices * _WARMING:
        raise InputError(
            f"expected at least {settings.slices * _WARMING} texts, found {len(texts)}"
        )
    folder = str(encoder_alone(settings.model))
    classifiers = {
        name: Classifier.load(folder, name, threads=settings.threads) for name in ENGINES
    }
    stock = StockPrediction(folder, settings.threads)
    sizes = stock.seconds_by_batch_size(texts[:_CHOOSING])
    whole = Classifier.load(settings.model, WHOLE_ENGINE, threads=settings.threads)
    arms: dict[str, Labels] = {name: _labels_by(each) for name, each in classifiers.items()}
    arms[WHOLE] = _labels_by(whole)
    best = min(sizes, key=lambda size: sizes[size])
    arms |= {
        PIPELINE: lambda texts: stock.by_pipeline(texts, best),
        "pipeline bf16, sorted": stock.by_sorted_pipeline,
        "ONNX int8, buckets": stock.by_onnx,
        PLAIN: stock.plainly,
    }
    load_before = os.getloadavg()[0]
    rows, labels = _take_turns(arms, texts, settings.slices)
    singles = {name: arms[name] for name in (*ENGINES, WHOLE, PLAIN)}
    shares = {
        name: _share_of_matrix_rate(name, Path(folder), texts[:_CHOOSING])
        for name in ENGINES
        if name.startswith("torch")
    }
    result = {
        "model": settings.model,
        "texts": len(texts),
        "threads": settings.threads,
        "cpu": _processor(),
        "load_average_before_and_after": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        "versions": {"torch": torch.__version__, "onnxruntime": _onnxruntime_version()},
        "pipeline_batch_size": best,
        "pipeline_seconds_by_batch_size": {str(n): round(s, 1) for n, s in sizes.items()},
        "throughput": _summary(rows, labels),
        "share_of_matrix_rate": shares,
        "one_text_ms": _one_by_one(singles, texts[: settings.single_texts]),
        "same_text_again_ms": _one_by_one(singles, [_usual(texts)] * settings.single_texts),
        "rows": rows,
    }
    write_result(settings.output, result)
    print(json.dumps({k: v for k, v in result.items() if k != "rows"}, indent=1))


def _labels_by(classifier: Classifier) -> Labels:
    return lambda texts: [prediction.label for prediction in classifier.predict(texts)]


def _take_turns(
    arms: Mapping[str, Labels], texts: Sequence[str], slices: int
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Seconds of each arm at each slice, and its labels of all texts."""
    for label in arms.values():
        label(list(texts[:_WARMING]))
    rows: list[dict[str, Any]] = []
    labels: dict[str, list[str]] = {name: [] for name in arms}
    names = list(arms)
    for number, places in enumerate(np.array_split(np.arange(len(texts)), slices)):
        part = [texts[place] for place in places]
        turn = number % len(names)
        for name in (*names[turn:], *names[:turn]):
            began, used = time.perf_counter(), time.process_time()
            labels[name] += arms[name](part)
            row = {
                "slice": number,
                "arm": name,
                "texts": len(part),
                "seconds": round(time.perf_counter() - began, 3),
                "cpu_seconds": round(time.process_time() - used, 3),
            }
            rows.append(row)
            print(row, flush=True)
    return rows, labels


def _share_of_matrix_rate(name: str, folder: Path, texts: list[str]) -> float:
    """Operations a second of a network, against those of large products of the same numbers."""
    opened = open_classifier(folder, name)
    tokens = opened.tokenizer([clean_text(text) for text in texts])

    def network() -> None:
        for _ in logits_by_length(opened.engine, tokens, range(len(texts))):
            pass

    operations = hardware_flops(network)
    dtype = torch.bfloat16 if name == "torch-bf16" else torch.float32
    shares = []
    for _ in range(5):
        began = time.perf_counter()
        network()
        rate = operations / (time.perf_counter() - began)
        shares.append(rate / matrix_seconds({_MATRIX: 1}, torch.device("cpu"), dtype)[1])
    return round(statistics.median(shares), 2)


def _summary(
    rows: Sequence[Mapping[str, Any]], labels: Mapping[str, list[str]]
) -> dict[str, dict[str, Any]]:
    """Medians over the slices, by arm."""
    by_arm = {name: [row for row in rows if row["arm"] == name] for name in labels}
    theirs = by_arm[PIPELINE]
    reference = labels[ENGINES[0]]
    found = {}
    for name, mine in by_arm.items():
        ratios = {
            key: statistics.median(
                other[key] / row[key] for row, other in zip(mine, theirs, strict=True)
            )
            for key in ("seconds", "cpu_seconds")
        }
        same = sum(one == other for one, other in zip(labels[name], reference, strict=True))
        found[name] = {
            "texts_per_second": round(statistics.median(r["texts"] / r["seconds"] for r in mine)),
            "texts_per_cpu_second": round(
                statistics.median(r["texts"] / r["cpu_seconds"] for r in mine)
            ),
            "times_the_pipeline": round(ratios["seconds"], 2),
            "times_the_pipeline_by_cpu": round(ratios["cpu_seconds"], 2),
            "same_labels_as_torch_fp32": round(same / len(reference), 4),
        }
    return found


def _usual(texts: Sequence[str]) -> str:
    """A text of the median length."""
    return sorted(texts, key=len)[len(texts) // 2]


def _one_by_one(arms: Mapping[str, Labels], texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Milliseconds of one text, in turns of `_TURN` texts: a program has one engine, not five."""
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for first in range(0, len(texts), _TURN):
        for name, label in arms.items():
            for text in texts[:_UNCOUNTED]:
                label([text])
            for text in texts[first : first + _TURN]:
                began = time.perf_counter()
                label([text])
                seconds[name].append(time.perf_counter() - began)
    plain = statistics.median(seconds[PLAIN])
    return {
        name: {
            "of_the_plain_call": round(statistics.median(times) / plain, 2),
            "median": round(1000 * statistics.median(times), 2),
            "p99": round(1000 * float(np.quantile(times, 0.99)), 2),
        }
        for name, times in seconds.items()
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor()


def _onnxruntime_version() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)


if __name__ == "__main__":
    sys.exit(run_command(PredictionSpeedSettings, main, "Time prediction beside the pipeline."))
