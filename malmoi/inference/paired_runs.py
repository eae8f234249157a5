"""Two runs of k-fold on the same texts: what either got right that the other did not.

Both predictions of a text are by models that did not learn it, so texts are compared one by one.
That tells smaller differences from chance than whether the intervals of two scores overlap.

Legend: T kinds of texts (given label, first and second prediction), K labels, B draws.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.errors import InputError
from malmoi.model_folders import read_json
from malmoi.paths import runs
from malmoi.text.reading.run_predictions import read_predictions

_PREDICTIONS, _REPORT = "predictions.csv", "report.json"
_DRAWS = 2_000
_SEED = 0


@dataclass(frozen=True, kw_only=True)
class DifferingText:
    """A text of which one run is right and the other wrong."""

    id: str
    text: str
    label: str
    first: str
    second: str


@dataclass(frozen=True, kw_only=True)
class PairedRuns:
    """Two runs on the texts that both have with the same label.

    Attributes:
        texts: how many.
        first_f1: macro F1 of the first run over these texts together, 0 to 1.
        second_f1: of the second.
        low: where the interval of 95% of second_f1 - first_f1 begins, over draws of these texts;
            training once more may move scores, too.
        high: where it ends.
        first_alone: texts of which only the first run is right.
        second_alone: of which only the second is.
        differing: these texts, in the order of the first run.
        same_folds: whether both runs kept the same kinds of alike texts in one fold. Where not, one
            of them may have learnt what it was asked, and the scores cannot be compared.
    """

    texts: int
    first_f1: float
    second_f1: float
    low: float
    high: float
    first_alone: int
    second_alone: int
    differing: Sequence[DifferingText]
    same_folds: bool = True

    @property
    def is_sure(self) -> bool:
        """Whether the interval says which is better."""
        return self.same_folds and (self.low > 0 or self.high < 0)


def run_folder(name: str) -> Path:
    """A run of `finetune/kfold.py`, by its name or folder, or that of its classifier.

    Raises:
        InputError: there is none, or it has no predictions.
    """
    given = Path(name)
    named = [runs(kind) / name for kind in ("finetune", "evaluate")]
    for folder in (given.parent if given.name == "model" else given, *named):
        if (folder / _PREDICTIONS).is_file():
            return folder
    raise InputError(
        "expected a run of finetune/kfold.py with {file}, found none named {name}; give the name "
        "of a folder in {runs}, or another folder",
        file=_PREDICTIONS,
        name=name,
        runs=runs("finetune"),
    )


def compare_runs(first: Path, second: Path) -> PairedRuns:
    """Compare two runs text by text; of several seeds the first.

    Raises:
        InputError: a file cannot be read, a run gives no single label, or no text is in both.
    """
    one, other = _predictions(first), _predictions(second)
    both = {key: said for key, said in one.items() if key in other}
    kinds: Counter[tuple[str, str, str]] = Counter()
    differing = []
    for key, (place, predicted) in both.items():
        text, _, label = key
        again = other[key][1]
        kinds[label, predicted, again] += 1
        if (predicted == label) != (again == label):
            differing.append(
                DifferingText(id=place, text=text, label=label, first=predicted, second=again)
            )
    if not both:
        raise InputError(
            "expected texts with equal labels in {first} and {second}, found none",
            first=first,
            second=second,
        )
    counts = np.array(list(kinds.values()))
    draws = np.random.default_rng(_SEED).multinomial(
        counts.sum(), counts / counts.sum(), size=_DRAWS
    )
    names = sorted({name for kind in kinds for name in kind})
    of_kind = np.array([[names.index(name) for name in kind] for kind in kinds])
    exact = macro_f1_of_kinds(counts[None], of_kind, len(names))
    drawn = macro_f1_of_kinds(draws, of_kind, len(names))
    low, high = np.quantile(drawn[1] - drawn[0], (0.025, 0.975))
    first_alone = sum(text.first == text.label for text in differing)
    return PairedRuns(
        texts=len(both),
        first_f1=float(exact[0, 0]),
        second_f1=float(exact[1, 0]),
        low=float(low),
        high=float(high),
        first_alone=first_alone,
        second_alone=len(differing) - first_alone,
        differing=differing,
        same_folds=_fold_rule(first) == _fold_rule(second),
    )


def _fold_rule(run: Path) -> Any:
    """What stayed in one fold; None of a run that an older version has made."""
    return (read_json(run / _REPORT).get("data") or {}).get("in_one_fold")


def macro_f1_of_kinds(counts: np.ndarray, kinds: np.ndarray, num_labels: int) -> np.ndarray:
    """Macro F1 of one or both runs over the labels that texts have, float64 [runs, B].

    Args:
        counts: texts of each kind, [B, T].
        kinds: label, and what each run predicts, [T, 1 + runs].
        num_labels: K.
    """
    is_label = kinds[:, 0, None] == np.arange(num_labels)  # [T, K]
    given = counts @ is_label
    found = []
    for run in range(1, kinds.shape[1]):
        is_said = kinds[:, run, None] == np.arange(num_labels)
        right, said = counts @ (is_label & is_said), counts @ is_said
        f1 = 2 * right / np.maximum(given + said, 1)
        found.append((f1 * (given > 0)).sum(axis=1) / np.maximum((given > 0).sum(axis=1), 1))
    return np.array(found)


def _predictions(run: Path) -> dict[tuple[str, str, str], tuple[str, str]]:
    """By text, second text and label: the id, and what a model said that had not learnt it."""
    path = run / _PREDICTIONS
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    seed = None
    for row in read_predictions(path):
        if not any(name.startswith("probability ") for name in row):
            raise InputError(
                "expected labels in {path}, found values; compare their reports", path=path
            )
        seed = row["seed"] if seed is None else seed
        if row["seed"] != seed:
            break
        label, predicted = row["label"], row["predicted"]
        if label.startswith("[") and predicted.startswith("["):
            raise InputError(
                "expected one label a text in {path}, found {label}; runs of --task multi "
                "are not compared",
                path=path,
                label=label,
            )
        found[row["text"], row.get("pair", ""), label] = row["id"], predicted
    return found
