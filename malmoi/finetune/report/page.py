"""`report.html`: what k-fold found out, as a page for those who label.

One file without scripts and without anything from the network; in Korean, for labelling teams
read it. Texts come from anywhere, so the templates escape everything, and the page's own policy
forbids scripts and requests. One label a text; several are not supported.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.analysis import templates
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.evaluation.calibration import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    Calibration,
)
from malmoi.finetune.evaluation.label_errors import find_likely_errors
from malmoi.finetune.evaluation.learning_curve import CurvePoint
from malmoi.finetune.evaluation.scores import score
from malmoi.finetune.evaluation.selective import Accepted, answered_curve
from malmoi.finetune.report.charts import (
    answered_chart,
    confidence_histogram,
    curve_chart,
    fold_chart,
    reliability_diagram,
)
from malmoi.finetune.report.remarks import ScoreRemark, remarks
from malmoi.text.label_keywords import label_keywords

_MISTAKES = 20
_LIKELY_ERRORS = 50
_CONTRADICTING = 50
_CONFUSED_PAIRS = 10
# A matrix of more labels is neither readable nor small; report.json has it.
_MATRIX_LABELS = 60
# Wished accuracies in the table, in hundredths.
_SHOWN_WISHES = (80, 85, 90, 95, 98, 99)
# From here on the names of the columns stand upright.
_MANY_LABELS = 9


@dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """A model measured on the same folds.

    Attributes:
        name: of the model.
        mean_f1: mean of the folds' macro F1.
        sd_f1: standard deviation over folds, if known.
        note: such as where the number is from.
        own: whether it is the model that the page is about.
    """

    name: str
    mean_f1: float
    sd_f1: float | None = None
    note: str = ""
    own: bool = False


@dataclass(frozen=True, kw_only=True)
class ReportContent:
    """What the page is made of: N texts, K labels.

    Attributes:
        examples: the texts, of one label each.
        calibration: of each text's probabilities by the model that did not train on it; with
            several seeds, those of the first seed of `fold_f1`.
        fold_f1: seed to the macro F1 of its folds, in order; empty of a test.
        baselines: rows to compare, this model's among them, in the order to show.
        learning_curve: from the fewest texts to the most; left out if empty.
        weighted: whether rare labels counted more in training.
        notes: other remarks, such as on texts that are nearly the same.
        intervals: of the scores of a test, low and high, by name.
        own_test: card on a test of its own, number and words.
        accepted: what answering sure texts alone brings.
        settings: names and values to show.
        environment: versions, device and so on, to show.
    """

    examples: Examples
    calibration: Calibration
    fold_f1: Mapping[int, Sequence[float]] = field(default_factory=dict)
    baselines: Sequence[ComparedRow] = ()
    learning_curve: Sequence[CurvePoint] = ()
    weighted: bool = False
    notes: Sequence[ScoreRemark] = ()
    intervals: Mapping[str, Sequence[float]] = field(default_factory=dict)
    own_test: tuple[str, str] | None = None
    accepted: Sequence[Accepted] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)


def report_page(content: ReportContent, *, keywords: bool = True) -> str:
    """The page as HTML.

    Args:
        keywords: list each label's words which takes a second or two.
    """
    examples, calibration = content.examples, content.calibration
    label_ids = examples.targets
    predicted = calibration.probabilities.argmax(axis=1)
    confidence = calibration.probabilities.max(axis=1)
    wrong = np.flatnonzero(predicted != label_ids)
    ranked = wrong[np.argsort(-confidence[wrong], kind="stable")][:_MISTAKES].tolist()
    folds = max(map(len, content.fold_f1.values()), default=0)
    points = content.learning_curve
    answered = answered_curve(calibration.probabilities, label_ids)
    scores = score(label_ids.tolist(), predicted.tolist(), examples.labels)
    words = label_keywords(examples.texts, label_ids, len(examples.labels)) if keywords else []
    errors = find_likely_errors(calibration.probabilities, label_ids)
    return rendered(
        "report.html",
        examples,
        is_test=not folds,
        content=content,
        cards=_cards(content, scores, calibration, len(errors)),
        fold_chart=fold_chart(content.fold_f1) if folds else None,
        fold_names=[f"폴드 {fold}" for fold in range(1, folds + 1)],
        seeds=[
            {"seed": seed, "mean": np.mean(found), "sd": _sd(found), "scores": found}
            for seed, found in content.fold_f1.items()
        ],
        scored_labels=sorted(scores["labels"].items(), key=lambda item: item[1]["f1"]),
        remarks=[
            one.korean for one in (*remarks(scores, weighted=content.weighted), *content.notes)
        ],
        **_confusion(examples.labels, scores["confusion"]),
        **_calibration(calibration),
        accepted=[one for one in content.accepted if round(one.accuracy * 100) in _SHOWN_WISHES],
        answered_chart=answered_chart(answered) if len(answered) > 1 else None,
        points=points,
        curve_chart=curve_chart(points) if points else None,
        mistake_count=len(wrong),
        mistakes=[
            _shown(examples, place, label_ids[place], predicted[place])
            | {"confidence": confidence[place]}
            for place in ranked
        ],
        likely_error_count=len(errors),
        likely_errors=[
            _shown(examples, error.place, label_ids[error.place], error.suggested)
            | {"self_confidence": error.self_confidence, "confidence": error.confidence}
            for error in errors[:_LIKELY_ERRORS]
        ],
        contradictions=examples.contradicting[:_CONTRADICTING],
        keywords=list(zip(examples.labels, words, strict=True)) if words else [],
    )


def rendered(template: str, examples: Examples, *, is_test: bool, **context: Any) -> str:
    """A page by one of the templates; what stands around its sections is of k-fold or a test."""
    return templates.rendered(
        template,
        Path(__file__).with_name("templates"),
        created=time.strftime("%Y-%m-%d %H:%M"),
        is_test=is_test,
        examples=examples,
        **context,
    )


def between(interval: Sequence[float] | None) -> str:
    """An interval behind the name of a score; nothing where there is none."""
    return "" if interval is None else f" (95% 구간 {interval[0]:.3f}~{interval[1]:.3f})"


def _sd(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _cards(
    content: ReportContent, scores: dict[str, Any], calibration: Calibration, errors: int
) -> list[tuple[str, str]]:
    values = [value for of_seed in content.fold_f1.values() for value in of_seed]
    f1 = f"매크로 F1{between(content.intervals.get('macro_f1'))}"
    if values:
        f1 = f"평균 매크로 F1 (표준편차 {_sd(values):.4f})"
    accuracy = f"정확도{between(content.intervals.get('accuracy'))}"
    return [
        (f"{np.mean(values) if values else scores['macro_f1']:.4f}", f1),
        *([] if content.own_test is None else [content.own_test]),
        (f"{scores['accuracy']:.1%}", accuracy),
        (
            f"{calibration.ece_before:.3f} → {calibration.ece_after:.3f}",
            "보정 오차 ECE, 온도 보정 전 → 후",
        ),
        (f"{len(content.examples.texts):,}", f"텍스트, 라벨 {len(content.examples.labels)}개"),
        (f"{errors:,}", "라벨이 의심되는 텍스트"),
    ]


def _confusion(labels: Sequence[str], counts: list[list[int]]) -> dict[str, Any]:
    pairs = [
        (count, given, predicted)
        for given, row in enumerate(counts)
        for predicted, count in enumerate(row)
        if count and given != predicted
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    return {
        "matrix": list(zip(labels, counts, strict=True)) if len(labels) <= _MATRIX_LABELS else [],
        "many_labels": len(labels) >= _MANY_LABELS,
        "confused": [
            {"given": labels[given], "predicted": labels[predicted], "texts": count}
            | {"share": count / sum(counts[given])}
            for count, given, predicted in pairs[:_CONFUSED_PAIRS]
        ],
    }


def _calibration(found: Calibration) -> dict[str, Any]:
    sides = []
    for title, bins, ece, nll in (
        ("보정 전", found.bins_before, found.ece_before, found.nll_before),
        ("보정 후", found.bins_after, found.ece_after, found.nll_after),
    ):
        caption = f"ECE {ece:.4f}, 음의 로그 가능도 {nll:.4f}"
        side = {
            "title": title,
            "caption": caption,
            "reliability": reliability_diagram(bins, f"신뢰도 다이어그램, {title}: {caption}"),
            "histogram": confidence_histogram(bins, f"확신도 분포, {title}"),
        }
        sides.append(side)
    failed = found.temperature in (LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE)
    return {"calibration": found, "calibration_failed": failed, "sides": sides}


def _shown(examples: Examples, place: int, given: int, predicted: int) -> dict[str, Any]:
    """A text with the label that it has and another."""
    return {
        "id": examples.ids[place],
        "text": examples.texts[place],
        "given": examples.labels[given],
        "predicted": examples.labels[predicted],
    }
