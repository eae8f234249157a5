"""What a run leaves in its folder: `report.json`, `report.html`, `predictions.csv`, the classifier.

docs/reference/report-json.md describes `report.json`.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from malmoi.files import write_at_once
from malmoi.finetune.baselines.baseline import Baseline
from malmoi.finetune.baselines.registry import ENCODER, KOREAN, MODEL
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.evaluation.calibration import Calibration, calibrate_out_of_fold
from malmoi.finetune.evaluation.learning_curve import CurvePoint
from malmoi.finetune.plan import KfoldPlan, QuickPlan
from malmoi.finetune.report.files import package_versions, pooled_scores
from malmoi.finetune.report.page import ComparedRow, ReportContent, write_report_page
from malmoi.finetune.training.cross_validation import CrossValidation, FoldResult
from malmoi.finetune.training.linear_folds import Added
from malmoi.inference.classifier import CALIBRATION

# Version of report.json: raised by a change that a reader of it would notice.
VERSION = 1
_ENCODER_ALONE, _LINEAR_ALONE = "인코더만", "선형 모델만"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a run measured beside its folds.

    Attributes:
        baselines: rows of the table of baselines.
        summaries: what report.json says of each.
        curve: the learning curve.
        calibration: of the first seed; None where it is not defined.
        added: encoder and linear model, each by itself; None where one of them is all.
    """

    baselines: list[Baseline] = field(default_factory=list)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    curve: list[CurvePoint] = field(default_factory=list)
    calibration: Calibration | None = None
    added: Added | None = None


def report_of(
    plan: KfoldPlan | QuickPlan,
    examples: Examples,
    result: CrossValidation,
    measured: Measured,
    *,
    learnt: int,
    cut: int,
    reading: Any,
    final_training: dict[str, Any],
) -> dict[str, Any]:
    """What `report.json` says, but for the versions and the time it took.

    Args:
        plan: of the run.
        examples: the texts.
        result: of k-fold.
        measured: beside it.
        learnt: texts left out because the classifier that was gone on from has learnt them.
        cut: texts of which the encoder learnt only the beginning.
        reading: how the files were read, as JSON.
        final_training: what the training on all texts decided.
    """
    score = "spearman" if examples.task == "pair-regression" else "f1"
    report: dict[str, Any] = {
        "version": VERSION,
        "plan": plan.as_json(),
        "data": {
            **_data_of(examples, learnt),
            "cut_to_max_length": cut,
            "reading": reading,
        },
        f"mean_{score}": result.mean_score,
        f"sd_{score}": result.sd_score,
        "interval_95": [result.summary.low, result.summary.high],
        "folds": [_fold_of(fold) for fold in result.results],
        "pooled": pooled_scores(result),
        "final_training": final_training,
    }
    if measured.added is not None:
        report["parts"] = measured.added.describe()
    if measured.summaries:
        report["baselines"] = measured.summaries
    if measured.curve:
        report["learning_curve"] = [asdict(point) for point in measured.curve]
    if measured.calibration is not None:
        report["calibration"] = measured.calibration.describe()
    return report


def _data_of(examples: Examples, learnt: int) -> dict[str, Any]:
    return {
        "path": str(examples.path),
        "sha256": examples.sha256,
        "texts": len(examples.texts),
        "per_label": examples.counts,
        "left_out": {
            "unlabelled": examples.unlabelled,
            "repeated": examples.repeats,
            "contradicting": examples.contradictions,
            "empty": examples.empty,
            "learnt": learnt,
        },
        "contradicting": [
            {name: value for name, value in asdict(one).items() if name != "text"}
            for one in examples.contradicting
        ],
    }


def _fold_of(fold: FoldResult) -> dict[str, Any]:
    return {
        "seed": fold.seed,
        "fold": fold.fold,
        "texts": len(fold.places),
        "epochs": fold.epochs,
        "best_epoch": fold.best_epoch,
        "seconds": round(fold.seconds, 3),
        **fold.scores,
    }


def calibrate(result: CrossValidation) -> Calibration:
    """Temperature scaling of the first seed's out-of-fold probabilities."""
    seed = result.seeds[0]
    return calibrate_out_of_fold(result.probabilities(seed), result.targets, result.fold_of(seed))


def save_temperature(model: Path, temperature: float) -> None:
    """Keep the temperature beside the weights, where `Classifier.load` finds it."""
    write_at_once(model / CALIBRATION, json.dumps({"temperature": temperature}))


def write_page(
    path: Path,
    plan: KfoldPlan | QuickPlan,
    examples: Examples,
    result: CrossValidation,
    measured: Measured,
) -> None:
    """Write `report.html`."""
    seed = result.seeds[0]
    write_report_page(
        path,
        ReportContent(
            title=examples.path.name,
            labels=examples.labels,
            texts=examples.texts,
            ids=examples.ids,
            label_ids=result.targets,
            probabilities=result.probabilities(seed),
            fold_of=result.fold_of(seed),
            fold_f1={
                one: [fold.scores["macro_f1"] for fold in result.of_seed(one)]
                for one in result.seeds
            },
            baselines=_page_rows(measured),
            learning_curve=measured.curve,
            contradicting=examples.contradicting,
            contradictions=examples.contradictions,
            weighted=plan.weighted,
            settings=plan.shown(),
            environment=package_versions() | asdict(plan.execution),
        ),
    )


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
