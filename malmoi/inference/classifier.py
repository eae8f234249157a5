"""The classifier that everything else predicts with: texts in, labels with probabilities out.

Legend: B texts in a batch, T tokens of the longest text in it, K labels.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from malmoi.devices import choose_device, convert_matrices
from malmoi.errors import InputError
from malmoi.inference.batching import DeviceTokens, tokenize_all
from malmoi.inference.torch_engine import probabilities_by_length
from malmoi.loading import loading
from malmoi.model_folders import architecture, has_weights, read_config
from malmoi.model_loading import check_vocabulary, local_source, longest_input
from malmoi.paths import home
from malmoi.text.cleaning.cleaner import clean_text

if TYPE_CHECKING:
    from transformers import PreTrainedModel
from malmoi.tokenizer_folders import load_tokenizer

# Texts tokenised in one go; bounds memory for millions of texts without costing padding.
TEXTS_IN_CHUNK = 65_536

# The temperature that finetune/kfold.py fitted out of fold, beside the weights.
CALIBRATION = "calibration.json"

OnBatch = Callable[[int, int], None]


@dataclass(frozen=True)
class Prediction:
    """What the model says about one text.

    Attributes:
        label: the most probable label.
        probabilities: label to probability, in the model's order of labels; they add up to 1.
        cut: whether the text was longer than what the model reads of it.
    """

    label: str
    probabilities: dict[str, float]
    cut: bool = False

    @property
    def confidence(self) -> float:
        """Probability of `label`, 0 to 1."""
        return self.probabilities[self.label]


class Classifier:
    """A fine-tuned model and its tokenizer; safe to use from several threads."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        *,
        temperature: float = 1.0,
    ) -> None:
        """Take over `model`: it is moved to the best device and prepared for inference only.

        Args:
            temperature: divides the logits, so that probabilities mean what they say (Guo et al.
                2017); labels stay as they are.
        """
        self.name = name
        self._temperature = temperature
        names = model.config.id2label or {}
        self.labels: list[str] = [str(name) for _, name in sorted(names.items())]
        self._device = choose_device()
        self._tokenizer = tokenizer
        self._max_length = longest_input(model, tokenizer)
        self._model = model.eval().to(self._device)
        convert_matrices(self._model, self._device)
        # Fast tokenizers keep truncation as shared state and raise when two threads set it.
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: str | Path) -> Classifier:
        """Load a stock sequence classifier.

        Args:
            path: directory, name of a run or of a released model, or Hub id.

        Raises:
            InputError: in one line, when the directory is missing or lacks its configuration or
                weights, when the weights are damaged or belong to something else than a
                classifier, when tokenizer and model do not match, when labels have no names, or
                when the model expects two texts or gives several labels or a value.
        """
        # With all that it needs it takes a second to import: not before somebody loads a model.
        from transformers import AutoModelForSequenceClassification

        source = local_source(path)
        with loading(source, "the model"):
            model, report = AutoModelForSequenceClassification.from_pretrained(
                source,
                dtype="float32",  # of half of it, layers in two formats do not fit each other
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        missing = sorted(report["missing_keys"])
        if missing:
            raise InputError(
                f"{source} is not a finished classifier: its weights lack {missing[0]}"
                + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
                + "; fine-tune it first with python finetune/kfold.py --model"
            )
        unsupported = unsupported_task(model.config.to_dict())
        if unsupported:
            raise InputError(
                f"{source} {unsupported}; the classifier predicts one label of one text: load this "
                "model with transformers' AutoModelForSequenceClassification instead"
            )
        id2label = model.config.id2label or {}
        names = [str(name) for name in id2label.values()]
        nameless = [name for name in names if name.startswith("LABEL_")]
        if nameless or not id2label:
            raise InputError(
                f"the labels of {source} have no names (found {', '.join(nameless) or 'none'}); "
                'give them in config.json under "id2label", as {"0": "긍정", "1": "부정"}'
            )
        tokenizer = load_tokenizer(source)
        check_vocabulary(model, tokenizer, source)
        return cls(model, tokenizer, _name(path), temperature=_temperature(source))

    def predict(self, texts: Sequence[str], *, progress: OnBatch | None = None) -> list[Prediction]:
        """Predict every text, in the order given.

        Texts are cleaned exactly as the training texts were; one that is empty, or empty after
        cleaning, is predicted from [CLS] [SEP] alone. Equal texts are computed once.

        Args:
            texts: any number, any lengths; what exceeds the model's length is cut off.
            progress: called with (texts done, texts in all) after every batch.

        Raises:
            InputError: one text instead of several, or something that is no text.
        """
        _check_texts(texts)
        rows: dict[str, list[int]] = {}
        for index, text in enumerate(texts):
            rows.setdefault(clean_text(text), []).append(index)
        unique = list(rows)
        predictions: list[Prediction | None] = [None] * len(texts)
        done = 0
        for first in range(0, len(unique), TEXTS_IN_CHUNK):
            chunk = unique[first : first + TEXTS_IN_CHUNK]
            for batch in self._batches(chunk):
                for place, prediction in batch:
                    for index in rows[chunk[place]]:
                        predictions[index] = prediction
                        done += 1
                if progress is not None:
                    progress(done, len(texts))
        return [prediction for prediction in predictions if prediction is not None]

    def _batches(self, texts: list[str]) -> Iterator[list[tuple[int, Prediction]]]:
        """Yield batch by batch, short texts first: places in `texts` with their predictions."""
        with self._lock:
            tokens = tokenize_all(self._tokenizer, texts, self._max_length)
        for places, probabilities in probabilities_by_length(
            self._model,
            DeviceTokens(tokens, self._device),
            np.arange(len(texts)),
            "single",
            self._device,
            temperature=self._temperature,
        ):
            yield [
                (place, self._prediction(row, bool(tokens.was_cut[place])))
                for place, row in zip(places, probabilities.tolist(), strict=True)
            ]

    def _prediction(self, row: list[float], cut: bool) -> Prediction:
        best = max(range(len(row)), key=row.__getitem__)
        return Prediction(self.labels[best], dict(zip(self.labels, row, strict=True)), cut)


def _check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str | bytes):
        raise InputError("expected several texts, found one; for one text write predict([text])[0]")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"expected a text (str) at place {place}, counted from 0, found "
                f"{type(text).__name__}; leave it out or write it as text"
            )


def _temperature(source: str) -> float:
    """The fitted temperature of a directory; 1 where none was fitted."""
    path = Path(source) / CALIBRATION
    if not path.is_file():
        return 1.0
    try:
        temperature = float(json.loads(path.read_text(encoding="utf-8"))["temperature"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"expected a temperature in {path}, found {error}; delete the file to go without"
        ) from error
    if not 0 < temperature < float("inf"):
        raise InputError(
            f"expected a temperature above 0 in {path}, found {temperature:g}; delete the file to "
            "go without"
        )
    return temperature


def unsupported_task(config: dict[str, Any]) -> str:
    """What a model does that `Classifier` cannot show; empty where it can.

    Args:
        config: its config.json; `problem_type` is transformers' field, `finetune_task` ours.
    """
    if config.get("problem_type") == "multi_label_classification":
        return "gives several labels to a text"
    if config.get("problem_type") == "regression":
        return "predicts a value, not a label"
    if config.get("finetune_task") in ("pair", "pair-regression"):
        return "reads two texts at a time"
    return ""


def _name(path: str | Path) -> str:
    """`memos-1` for runs/finetune/memos-1/model, otherwise the last folder or the Hub id."""
    place = Path(path)
    if not place.is_dir():
        return str(path)
    place = place.resolve()
    return place.parent.name if place.name == "model" else place.name


def find_classifiers(root: Path | None = None) -> list[Path]:
    """Classifiers on disk that `Classifier.load` accepts: own runs, newest first, then released.

    Only complete runs count: weights and report.json are both there. Models of several labels, of
    pairs and of values are left out.

    Args:
        root: the folder with `runs/` and `checkpoints/`; `malmoi.paths.home()` without one.
    """
    root = home() if root is None else root
    runs = [
        path
        for path in (root / "runs" / "finetune").glob("*/model")
        if has_weights(path)
        and (path.parent / "report.json").is_file()
        and not path.parent.name.startswith(".")
        and not unsupported_task(read_config(path))
    ]
    runs.sort(key=lambda path: (path.parent / "report.json").stat().st_mtime, reverse=True)
    released = [
        path
        for path in sorted((root / "checkpoints").glob("*"))
        if has_weights(path)
        and architecture(path).endswith("ForSequenceClassification")
        and not unsupported_task(read_config(path))
    ]
    return runs + released
