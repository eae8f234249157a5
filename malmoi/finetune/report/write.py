"""What a run leaves in its folder: `report.json`, `report.html`, `predictions.csv`, the classifier.

docs/reference/report-json.md describes `report.json`.
"""

import json
import time
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.files import write_at_once
from malmoi.finetune.baselines.baseline import Baseline
from malmoi.finetune.baselines.registry import ENCODER, KOREAN, MODEL
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.folds import SplitTexts
from malmoi.finetune.evaluation.calibration import Calibration, calibrate_out_of_fold
from malmoi.finetune.evaluation.fold_results import CrossValidation
from malmoi.finetune.evaluation.learning_curve import CurvePoint
from malmoi.finetune.evaluation.selective import Accepted, accepted_shares
from malmoi.finetune.plan import KfoldPlan, QuickPlan
from malmoi.finetune.report.files import (
    VERSION,
    data_facts,
    package_versions,
    pooled_scores,
    write_predictions,
    write_report,
)
from malmoi.finetune.report.page import ComparedRow, ReportContent, report_page
from malmoi.finetune.report.remarks import remarks_on_alike
from malmoi.finetune.report.value_page import value_page
from malmoi.finetune.scoring import Evaluation
from malmoi.finetune.training.linear_folds import Added
from malmoi.inference.calibration import CALIBRATION
from malmoi.inference.learnt_texts import text_keys, write_learnt
from malmoi.inference.tasks import has_values

_ENCODER_ALONE, _LINEAR_ALONE = "인코더만", "선형 모델만"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a run found out.

    Attributes:
        plan: of the run.
        examples: the texts.
        split: which of them are in which fold.
        reading: how the files were read, as JSON.
        result: of k-fold.
        final_training: what the training on all texts decided.
        learnt: texts left out because the classifier that was gone on from has learnt them.
        cut: texts of which the encoder learnt only the beginning.
        added: encoder and linear model, each by itself; None where one of them is all.
        baselines: rows of the table of baselines.
        summaries: what report.json says of each.
        curve: the learning curve.
    """

    plan: KfoldPlan | QuickPlan
    examples: Examples
    split: SplitTexts
    reading: Any
    result: CrossValidation
    final_training: dict[str, Any]
    learnt: int = 0
    cut: int = 0
    added: Added | None = None
    baselines: list[Baseline] = field(default_factory=list)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    curve: list[CurvePoint] = field(default_factory=list)

    @cached_property
    def calibration(self) -> Calibration | None:
        """Temperature scaling of the first seed's probabilities; of one label a text only."""
        if self.examples.task != "single":
            return None
        result, seed = self.result, self.result.seeds[0]
        return calibrate_out_of_fold(
            result.probabilities(seed), result.targets, result.fold_of(seed)
        )

    @cached_property
    def accepted(self) -> list[Accepted]:
        """What answering sure texts alone brings, where there are calibrated probabilities."""
        if self.calibration is None:
            return []
        result = self.result
        probabilities = self.calibration.probabilities
        return accepted_shares(probabilities, result.targets, result.fold_of(result.seeds[0]))


def write_run(
    folder: Path, measured: Measured, started: float, tested: Evaluation | None = None
) -> None:
    """Write all of a run but the classifier: `report.json`, `predictions.csv`, and the page.

    Args:
        folder: is there, and empty.
        started: when the run began, by `time.monotonic`.
        tested: the classifier on a test of its own.
    """
    added = measured.added
    alone = {} if added is None else {"encoder": added.encoder, "linear": added.linear}
    write_predictions(folder / "predictions.csv", measured.examples, measured.result, alone)
    report = report_of(measured) | {"seconds": round(time.monotonic() - started, 3)}
    if tested is not None and measured.examples.own_test is not None:
        report["test"] = {
            "path": str(tested.examples.path),
            "origin": measured.examples.own_test.origin,
            "texts": len(tested.examples.texts),
            "pooled": tested.scores,
            "intervals_95": tested.intervals,
        }
    write_report(folder / "report.json", report)
    page, card = folder / "report.html", None if tested is None else tested.card
    if measured.calibration is not None:
        content = _page_of(measured, measured.calibration, card)
        write_at_once(page, report_page(content))
    elif has_values(measured.examples.task):
        notes = remarks_on_alike(measured.split)
        facts = {"settings": measured.plan.shown(), "environment": _environment(measured)}
        html = value_page(measured.examples, measured.result, facts, notes=notes, own_test=card)
        write_at_once(page, html)


def complete_model(model: Path, measured: Measured, before: np.ndarray | None = None) -> None:
    """Keep beside the weights what `Classifier.load` looks for: temperature, and texts learnt.

    Args:
        model: the folder of the classifier.
        before: keys of the texts that it had learnt before, see `learnt_texts`.
    """
    examples = measured.examples
    if measured.calibration is not None:
        found = {
            "temperature": measured.calibration.temperature,
            "accept": [one.describe() for one in measured.accepted],
        }
        write_at_once(model / CALIBRATION, json.dumps(found))
    write_learnt(model, text_keys(examples.texts, examples.pairs), before)


def report_of(measured: Measured) -> dict[str, Any]:
    """What `report.json` says, but for the versions and the time it took."""
    examples, result = measured.examples, measured.result
    own_test = examples.own_test
    score = "spearman" if has_values(examples.task) else "f1"
    data = data_facts(examples)
    data["left_out"]["learnt"] = measured.learnt
    if own_test is not None:
        data["left_out"]["in_test"] = own_test.in_both
    report: dict[str, Any] = {
        "version": VERSION,
        "plan": measured.plan.as_json(),
        "data": data
        | {
            "in_one_fold": measured.split.rule,
            "same_letters": measured.split.same_letters,
            "near_duplicates": measured.split.near_duplicates,
            "cut_to_max_length": measured.cut,
            "reading": measured.reading,
        },
        f"mean_{score}": result.mean_score,
        f"sd_{score}": result.sd_score,
        "interval_95": [result.summary.low, result.summary.high],
        "folds": [
            {
                "seed": fold.seed,
                "fold": fold.fold,
                "texts": len(fold.places),
                "epochs": fold.epochs,
                "best_epoch": fold.best_epoch,
                "seconds": round(fold.seconds, 3),
                **fold.scores,
            }
            for fold in result.results
        ],
        "pooled": pooled_scores(result),
        "final_training": measured.final_training,
    }
    if measured.added is not None:
        report["parts"] = measured.added.describe()
    if measured.summaries:
        report["baselines"] = measured.summaries
    if measured.curve:
        report["learning_curve"] = [
            {"fraction": point.fraction, "texts": point.texts, "scores": [point.score]}
            for point in measured.curve
        ]
    if measured.calibration is not None:
        report["calibration"] = measured.calibration.describe()
        report["accept"] = [one.describe() for one in measured.accepted]
    return report


def _page_of(
    measured: Measured, calibration: Calibration, own_test: tuple[str, str] | None
) -> ReportContent:
    result, plan = measured.result, measured.plan
    return ReportContent(
        examples=measured.examples,
        calibration=calibration,
        own_test=own_test,
        accepted=measured.accepted,
        fold_f1={
            seed: [fold.scores["macro_f1"] for fold in result.of_seed(seed)]
            for seed in result.seeds
        },
        baselines=_page_rows(measured),
        learning_curve=measured.curve,
        weighted=plan.weighted,
        notes=remarks_on_alike(measured.split),
        settings=plan.shown(),
        environment=_environment(measured),
    )


def _environment(measured: Measured) -> dict[str, object]:
    return package_versions() | asdict(measured.plan.execution)


def _page_rows(measured: Measured) -> list[ComparedRow]:
    """The table of the page, the best first."""
    added, own = measured.added, KOREAN[MODEL]
    names = KOREAN if added is None else KOREAN | {ENCODER: _ENCODER_ALONE}
    rows = []
    for row in measured.baselines:
        # What one text takes, in time and money, and of how many it is known.
        notes = [] if row.latency_ms is None else [f"한 글에 {row.latency_ms:,.1f} ms"]
        if row.won_per_text:
            notes.append(f"{row.won_per_text:,.2f}원")
        if row.texts < len(row.predictions):
            notes.append(f"글 {len(row.predictions):,}개 가운데 {row.texts:,}개로 잰 값")
        name = names.get(row.name, row.name)
        rows.append(
            ComparedRow(
                name=name,
                mean_f1=row.mean_f1,
                sd_f1=row.sd_f1,
                note=", ".join(notes),
                own=name == own,
            )
        )
    if added is not None:
        # The comparison has the first two already, with their price.
        parts = {own: added.both, _ENCODER_ALONE: added.encoder, _LINEAR_ALONE: added.linear}
        known = {row.name for row in rows}
        rows += [
            ComparedRow(name=name, mean_f1=one.mean_score, sd_f1=one.sd_score, own=name == own)
            for name, one in parts.items()
            if name not in known
        ]
    return sorted(rows, key=lambda row: -row.mean_f1)
