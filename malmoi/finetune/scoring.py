"""A finished classifier on labelled texts that it has not learnt: `--test` and `malmoi evaluate`.

Legend: N texts, K labels of the classifier.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.files import write_at_once
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.own_test import test_without
from malmoi.finetune.evaluation.calibration import Calibration, apply_temperature
from malmoi.finetune.evaluation.fold_results import CrossValidation, FoldResult
from malmoi.finetune.evaluation.intervals import intervals_95, with_interval
from malmoi.finetune.evaluation.scores import score_task
from malmoi.finetune.report.files import (
    VERSION,
    data_facts,
    package_versions,
    write_predictions,
    write_report,
)
from malmoi.finetune.report.page import ReportContent, report_page
from malmoi.finetune.report.remarks import ScoreRemark, remarks
from malmoi.finetune.report.value_page import value_page
from malmoi.inference.classifier import Classifier
from malmoi.inference.learnt_texts import read_learnt
from malmoi.inference.prediction import ValuePrediction
from malmoi.inference.tasks import has_values, main_score
from malmoi.labels.label_names import nearest_label

# What predictions.csv says of texts that are in no fold.
_NO_FOLD = 0
_KOREAN = {"macro_f1": "매크로 F1", "spearman": "스피어만 상관"}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a classifier says of N labelled texts.

    Attributes:
        classifier: that was asked; the examples may have more labels than it.
        examples: the texts.
        result: its predictions, as of one fold.
        learnt: texts left out because it has learnt them; None where it does not say which.
    """

    classifier: Classifier
    examples: Examples
    result: CrossValidation
    learnt: int | None

    @property
    def scores(self) -> dict[str, Any]:
        """See `malmoi.finetune.evaluation.scores.score_task`."""
        return self.result.results[0].scores

    @cached_property
    def intervals(self) -> dict[str, list[float]]:
        """See `malmoi.finetune.evaluation.intervals`."""
        result = self.result
        predicted = result.predicted(_NO_FOLD)
        return intervals_95(result.task, result.targets, predicted, result.labels)

    @cached_property
    def calibration(self) -> Calibration:
        """Of one label a text: before and after the temperature of the classifier."""
        temperature, scaled = self.classifier.temperature, self.result.probabilities(_NO_FOLD)
        given = apply_temperature(scaled, 1 / temperature)
        return Calibration.measured(given, scaled, self.result.targets, temperature, {})

    @property
    def named(self) -> dict[str, str]:
        """Who was asked, for the report."""
        return {"classifier": self.classifier.name, "engine": self.classifier.engine}

    @property
    def strange(self) -> dict[str, int]:
        """Labels that the classifier does not know, and how many texts have them."""
        known = len(self.classifier.labels)
        return {label: n for label, n in list(self.examples.counts.items())[known:] if n}

    @property
    def card(self) -> tuple[str, str]:
        """The main score for the page of k-fold: a number, and what it is."""
        name = main_score(self.examples.task)
        low, high = self.intervals[name]
        words = f"따로 둔 시험 글 {len(self.examples.texts):,}개의 {_KOREAN[name]}"
        return f"{self.scores[name]:.4f}", f"{words} (95% 구간 {low:.3f}~{high:.3f})"


def evaluate(classifier: Classifier, examples: Examples) -> Evaluation:
    """Ask a classifier about texts that it has not learnt.

    Args:
        examples: as `malmoi.finetune.data.reading.read_test` gives them.

    Raises:
        InputError: it has learnt all of the texts.
    """
    started, folder = time.monotonic(), classifier.folder
    learnt, before = None if folder is None else read_learnt(folder), len(examples.texts)
    if learnt is not None:
        examples = test_without(learnt, examples, classifier.name)
    found = classifier.predict(examples.texts, examples.pairs)
    probabilities = np.zeros((len(found), len(examples.labels)), dtype=np.float32)
    for place, said in enumerate(found):
        values = [said.value] if isinstance(said, ValuePrediction) else said.probabilities.values()
        probabilities[place, : len(values)] = list(values)
    thresholds = np.full(len(examples.labels), 0.5, dtype=np.float32)
    chosen = classifier.description.thresholds
    thresholds[: len(chosen)] = chosen
    fold = FoldResult(
        seed=_NO_FOLD,
        fold=_NO_FOLD,
        places=np.arange(len(found)),
        probabilities=probabilities,
        thresholds=thresholds if chosen else None,
        scores=score_task(
            examples.task, examples.targets, probabilities, examples.labels, thresholds
        ),
        seconds=time.monotonic() - started,
    )
    result = CrossValidation(
        task=examples.task,
        labels=examples.labels,
        targets=examples.targets,
        folds=1,
        seeds=(_NO_FOLD,),
        results=[fold],
    )
    left_out = None if learnt is None else before - len(examples.texts)
    return Evaluation(classifier=classifier, examples=examples, result=result, learnt=left_out)


def write_evaluation(folder: Path, found: Evaluation) -> None:
    """Write `report.json`, `predictions.csv` and, of one label or a value, `report.html`.

    Args:
        folder: is there, and empty.
    """
    examples, result = found.examples, found.result
    write_predictions(folder / "predictions.csv", examples, result)
    data = data_facts(examples)
    data["left_out"]["learnt"] = found.learnt
    report = {
        "version": VERSION,
        **found.named,
        "data": data | {"labels_not_known": found.strange, "in_one_fold": "no folds"},
        "pooled": found.scores,
        "intervals_95": found.intervals,
        "seconds": round(result.results[0].seconds, 3),
    }
    if examples.task == "single":
        report["calibration"] = found.calibration.describe()
    if page := evaluation_page(found):
        write_at_once(folder / "report.html", page)
    write_report(folder / "report.json", report)


def evaluation_page(found: Evaluation) -> str:
    """`report.html`, of one label or a value; "" of others."""
    examples = found.examples
    if examples.task == "single":
        content = ReportContent(
            examples=examples,
            calibration=found.calibration,
            weighted=True,
            notes=notes_of(found),
            intervals=found.intervals,
            settings=found.named,
            environment=package_versions(),
        )
        return report_page(content, keywords=False)
    if has_values(examples.task):
        facts = {"settings": found.named, "environment": package_versions()}
        notes = notes_of(found)
        return value_page(examples, found.result, facts, notes=notes, intervals=found.intervals)
    return ""


def notes_of(found: Evaluation) -> list[ScoreRemark]:
    """What the scores do not say by themselves."""
    notes = []
    if found.strange:
        notes.append(_on_strange(found.strange, found.classifier.labels))
    if found.learnt:
        notes.append(
            ScoreRemark(
                english=f"left out {found.learnt:,} texts that the classifier has learnt",
                korean=f"모델이 학습한 글 {found.learnt:,}개는 뺐습니다.",
            )
        )
    if found.learnt is None:
        notes.append(
            ScoreRemark(
                english="the classifier does not list the texts that it has learnt; if some are "
                "among these, the scores are too high",
                korean="모델이 어떤 글을 학습했는지 알 수 없습니다. 여기 있는 글을 학습했다면 "
                "점수가 실제보다 높습니다.",
            )
        )
    return notes


def _on_strange(counts: dict[str, int], known: Sequence[str]) -> ScoreRemark:
    shown = []
    for label, count in counts.items():
        near = nearest_label(label, known)
        shown.append(f"{label} ({count:,}{f'; did you mean {near}?' if near else ''})")
    korean = ", ".join(f"{label} {count:,}개" for label, count in counts.items())
    return ScoreRemark(
        english="labels that the classifier does not know, whose texts count as wrong: "
        + ", ".join(shown),
        korean=f"모델이 모르는 라벨의 글은 틀린 것으로 셉니다: {korean}.",
    )


def print_evaluation(found: Evaluation) -> None:
    """Say the scores, and what they do not say."""
    count = f"{len(found.examples.texts):,} {found.examples.what}"
    print(f"test: {with_interval(found.scores, found.intervals)}, with 95% intervals, of {count}")
    notes = notes_of(found)
    if found.examples.task in ("single", "pair"):
        notes = remarks(found.scores, weighted=True) + notes
    for note in notes:
        print(note.english, flush=True)
