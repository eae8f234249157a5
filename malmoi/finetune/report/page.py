"""`report.html`: what k-fold found out, as a page for those who label.

One file without scripts and without anything from the network; in Korean, for labelling teams
read it. Texts come from anywhere, so everything is escaped, and the page's own policy
forbids scripts and requests. One label a text; several are not supported.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from malmoi.errors import InputError
from malmoi.files import write_at_once
from malmoi.finetune.data.examples import Contradiction
from malmoi.finetune.evaluation.calibration import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    Calibration,
    IntArray,
    calibrate_out_of_fold,
    check_predictions,
)
from malmoi.finetune.evaluation.label_errors import LikelyError, find_likely_errors
from malmoi.finetune.evaluation.learning_curve import CurvePoint
from malmoi.finetune.evaluation.scores import score
from malmoi.finetune.report.charts import (
    confidence_histogram,
    curve_chart,
    fold_chart,
    reliability_diagram,
)
from malmoi.finetune.report.html_parts import (
    bar,
    beside,
    escape,
    facts,
    figure,
    name_tag,
    section,
    shortened,
    table,
    wide,
)
from malmoi.finetune.report.remarks import remarks
from malmoi.finetune.report.style import STYLE
from malmoi.text.label_keywords import LabelKeywords, label_keywords

_MISTAKES = 20
_LIKELY_ERRORS = 50
_CONTRADICTING = 50
_CONFUSED_PAIRS = 10
# A matrix of more labels is neither readable nor small; report.json has it.
_MATRIX_LABELS = 60
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
        title: such as the name of the data.
        labels: K names; a label's place is its id.
        texts: N.
        ids: N, of the records.
        label_ids: [N], given labels.
        probabilities: [N, K], each text's by the model that did not train on it; with several
            seeds, those of the first seed of `fold_f1`.
        fold_of: [N], the fold that predicted each text.
        fold_f1: seed to the macro F1 of its folds, in order.
        baselines: rows to compare, this model's among them, in the order to show.
        learning_curve: see `malmoi.finetune.evaluation.learning_curve`; left out if empty.
        contradicting: rows left out because their text has another label, the first ones.
        contradictions: how many of them there are.
        weighted: whether rare labels counted more in training.
        settings: names and values to show.
        environment: versions, device and so on, to show.
    """

    title: str
    labels: Sequence[str]
    texts: Sequence[str]
    ids: Sequence[str]
    label_ids: ArrayLike
    probabilities: ArrayLike
    fold_of: ArrayLike
    fold_f1: Mapping[int, Sequence[float]]
    baselines: Sequence[ComparedRow] = ()
    learning_curve: Sequence[CurvePoint] = ()
    contradicting: Sequence[Contradiction] = ()
    contradictions: int = 0
    weighted: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)


def write_report_page(path: Path, content: ReportContent, *, keywords: bool = True) -> None:
    """Write the page as a whole or not at all.

    Raises:
        InputError: see `report_page`.
    """
    write_at_once(path, report_page(content, keywords=keywords))


def report_page(content: ReportContent, *, keywords: bool = True) -> str:
    """The page as HTML.

    Args:
        content: what was measured.
        keywords: list each label's words by Kiwi, which takes up to 10 s of a core and 0.5 GiB.

    Raises:
        InputError: the parts of `content` do not fit each other.
    """
    _, label_ids, _ = _check(content)
    calibration = calibrate_out_of_fold(content.probabilities, label_ids, content.fold_of)
    predicted = calibration.probabilities.argmax(axis=1)
    scores = score(label_ids.tolist(), predicted.tolist(), list(content.labels))
    errors = find_likely_errors(calibration.probabilities, label_ids)
    words = label_keywords(content.texts, label_ids, len(content.labels)) if keywords else []
    sections = {
        "folds": ("폴드별 F1", _folds(content)),
        "baselines": ("다른 모델과 비교", _baselines(content)),
        "labels": ("라벨별 F1", _labels(content, scores)),
        "confusion": ("혼동 행렬", _confusion(content.labels, scores["confusion"])),
        "calibration": ("확신도와 신뢰도", _calibration(calibration)),
        "curve": ("학습 곡선", _curve(content.learning_curve)),
        "mistakes": ("가장 확신한 오답", _mistakes(content, label_ids, calibration)),
        "likely-errors": ("라벨이 의심되는 텍스트", _likely_errors(content, label_ids, errors)),
        "contradicting": ("같은 글, 다른 라벨", _contradicting(content)),
        "keywords": ("라벨별 키워드", _keywords(content.labels, words)),
        "settings": ("설정과 환경", _settings(content)),
    }
    shown = {name: (title, body) for name, (title, body) in sections.items() if body}
    index = "".join(f'<a href="#{name}">{title}</a>' for name, (title, _) in shown.items())
    body = "".join(section(name, title, body) for name, (title, body) in shown.items())
    title = f"{content.title} 교차 검증 보고서"
    return f"""<!DOCTYPE html>
<html lang="ko">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1>{escape(title)}</h1>
{_summary(content, scores, calibration, errors)}
<nav>{index}</nav></header>
<main>{body}</main>
<footer>말모이(Malmoi)가 {time.strftime("%Y-%m-%d %H:%M")}에 만들었습니다. \
모든 예측은 그 텍스트를 학습하지 않은 모델의 것입니다.</footer>
</body>
</html>
"""


def _check(content: ReportContent) -> tuple[Any, IntArray, IntArray]:
    checked = check_predictions(content.probabilities, content.label_ids, content.fold_of)
    texts, labels = checked[0].shape
    for name, found, expected in (
        ("texts", len(content.texts), texts),
        ("ids", len(content.ids), texts),
        ("label names", len(content.labels), labels),
    ):
        if found != expected:
            raise InputError(
                "expected {expected:,} {name} as in the probabilities, found {found:,}; give all "
                "of the same run",
                expected=expected,
                name=name,
                found=found,
            )
    if not content.fold_f1 or not all(content.fold_f1.values()):
        raise InputError("expected the F1 of each seed's folds, found none; give one list a seed")
    return checked


def _all_f1(content: ReportContent) -> list[float]:
    return [value for scores in content.fold_f1.values() for value in scores]


def _sd(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _summary(
    content: ReportContent,
    scores: dict[str, Any],
    calibration: Calibration,
    errors: list[LikelyError],
) -> str:
    values = _all_f1(content)
    cards = [
        (f"{np.mean(values):.4f}", f"평균 매크로 F1 (표준편차 {_sd(values):.4f})"),
        (f"{scores['accuracy']:.1%}", "정확도"),
        (
            f"{calibration.ece_before:.3f} → {calibration.ece_after:.3f}",
            "보정 오차 ECE, 온도 보정 전 → 후",
        ),
        (f"{len(content.texts):,}", f"텍스트, 라벨 {len(content.labels)}개"),
        (f"{len(errors):,}", "라벨이 의심되는 텍스트"),
    ]
    inner = "".join(f'<div class="card"><b>{n}</b><span>{name}</span></div>' for n, name in cards)
    return f'<div class="cards">{inner}</div>'


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _folds(content: ReportContent) -> str:
    longest = max(len(scores) for scores in content.fold_f1.values())
    rows = [
        [
            f"시드 {seed}",
            f"<b>{np.mean(scores):.4f}</b>",
            f"{_sd(scores):.4f}",
            *(f"{value:.4f}" for value in scores),
            *([""] * (longest - len(scores))),
        ]
        for seed, scores in content.fold_f1.items()
    ]
    head = ["", "평균", "표준편차", *(f"폴드 {fold}" for fold in range(1, longest + 1))]
    note = ""
    if len(rows) > 1:
        note = _note(
            "평균 매크로 F1 밖의 수치와 그림은 모두 "
            f"시드 {next(iter(content.fold_f1))}의 예측으로 계산했습니다."
        )
    caption = (
        "폴드마다 매크로 F1(라벨별 F1의 평균), 점 하나가 시드 하나. "
        "점선은 전체 평균이며, 세로축은 0에서 시작하지 않을 수 있습니다."
    )
    return beside(figure(fold_chart(content.fold_f1), caption), table(head, rows)) + note


def _baselines(content: ReportContent) -> str:
    if not content.baselines:
        return ""
    rows = [
        [
            f"<b>{escape(row.name)}</b>" if row.own else escape(row.name),
            bar(row.mean_f1),
            "" if row.sd_f1 is None else f"{row.sd_f1:.3f}",
            f'<span class="note">{escape(row.note)}</span>',
        ]
        for row in content.baselines
    ]
    return table(["모델", "평균 매크로 F1", "표준편차", "비고"], rows, "bars")


def _labels(content: ReportContent, scores: dict[str, Any]) -> str:
    rows = [
        [
            escape(name),
            bar(found["f1"]),
            f"{found['precision']:.3f}",
            f"{found['recall']:.3f}",
            f"{found['support']:,}",
        ]
        for name, found in sorted(scores["labels"].items(), key=lambda item: item[1]["f1"])
    ]
    note = _note(
        "F1이 낮은 라벨부터 나옵니다. 정밀도는 그 라벨로 예측한 것 가운데 맞은 비율, "
        "재현율은 그 라벨인 것 가운데 찾아낸 비율입니다."
    )
    note += "".join(_note(one.korean) for one in remarks(scores, weighted=content.weighted))
    return note + table(["라벨", "F1", "정밀도", "재현율", "텍스트"], rows, "bars")


def _confusion(labels: Sequence[str], counts: list[list[int]]) -> str:
    if len(labels) > _MATRIX_LABELS:
        note, parts = _note(f"라벨이 {len(labels)}개라 행렬은 그리지 않았습니다."), []
    else:
        note = _note(
            "행은 사람이 붙인 라벨, 열은 모델의 예측이고 수는 텍스트 수입니다. "
            "색은 행 안의 비율이며 파란색은 맞은 것, 주황색은 틀린 것입니다."
        )
        parts = [_matrix(labels, counts)]
    pairs = [
        (count, expected, predicted)
        for expected, row in enumerate(counts)
        for predicted, count in enumerate(row)
        if count and expected != predicted
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    if pairs:
        rows = [
            [
                f"{name_tag(labels[expected])} → {name_tag(labels[predicted])}",
                f"{count:,}",
                f"{count / sum(counts[expected]):.1%}",
            ]
            for count, expected, predicted in pairs[:_CONFUSED_PAIRS]
        ]
        parts.append(table(["많이 헷갈린 라벨 → 예측", "텍스트", "라벨 안의 비율"], rows))
    return note + beside(*parts)


def _matrix(labels: Sequence[str], counts: list[list[int]]) -> str:
    head = "".join(f'<th scope="col">{escape(label)}</th>' for label in labels)
    rows = []
    for place, (label, row) in enumerate(zip(labels, counts, strict=True)):
        total = max(sum(row), 1)
        cells = []
        for column, count in enumerate(row):
            if count == 0:
                cells.append('<td class="none">·</td>')
                continue
            kind = "right" if column == place else "wrong"
            note = f"{label} → {labels[column]}: {count / total:.1%}"
            cells.append(
                f'<td class="{kind}" style="--v:{count / total:.2f}" title="{escape(note)}">'
                f"{count:,}</td>"
            )
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{"".join(cells)}</tr>')
    name = "matrix many" if len(labels) >= _MANY_LABELS else "matrix"
    return wide(
        f'<table class="{name}"><thead><tr><th>라벨 ＼ 예측</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _calibration(found: Calibration) -> str:
    if found.temperature in (LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE):
        verdict = (
            "온도가 한계값에 닿았습니다. 거의 모든 예측이 틀렸거나 확신이 거의 없어 보정을 믿기 "
            "어렵습니다."
        )
    elif found.temperature > 1:
        verdict = "1보다 크므로 모델이 실제보다 더 확신하는 편입니다."
    else:
        verdict = "1보다 작으므로 모델이 실제보다 덜 확신하는 편입니다."
    note = _note(
        "막대의 높이는 정확도입니다. "
        "확신도 80%인 예측이 실제로 80% 맞으면 점이 점선 위에 놓입니다. "
        "ECE는 점과 점선의 거리를 텍스트 수로 가중한 평균이며, 확신도를 같은 너비의 "
        f"{len(found.bins_before)}구간으로 나누어 계산했습니다. "
        "온도는 폴드마다 나머지 폴드의 예측으로 맞춘 뒤 적용했고, 예측 자체는 바뀌지 않습니다. "
        f"모든 텍스트로 맞춘 온도는 {found.temperature:.3f}입니다. {verdict}"
    )
    sides = []
    for title, bins, ece, nll in (
        ("보정 전", found.bins_before, found.ece_before, found.nll_before),
        ("보정 후", found.bins_after, found.ece_after, found.nll_after),
    ):
        text = f"ECE {ece:.4f}, 음의 로그 가능도 {nll:.4f}"
        drawing = reliability_diagram(bins, f"신뢰도 다이어그램, {title}: {text}")
        counts = confidence_histogram(bins, f"확신도 분포, {title}")
        sides.append(figure(drawing + counts, text, title))
    return f'{note}<div class="figures">{"".join(sides)}</div>'


def _curve(points: Sequence[CurvePoint]) -> str:
    if not points:
        return ""
    points = sorted(points, key=lambda point: point.texts)
    rows = [
        [
            f"{point.texts:,.0f}",
            bar(point.mean),
            f"{point.sd:.3f}" if len(point.scores) > 1 else "",
            f"{point.fraction:.1%}",
        ]
        for point in points
    ]
    note = ""
    if len(points) > 1:
        one, two = points[-2:]
        note = _note(
            f"학습 텍스트가 {one.texts:,.0f}개에서 {two.texts:,.0f}개로 늘 때 "
            f"F1이 {two.mean - one.mean:+.3f} 바뀌었습니다. "
            "끝에서도 오르고 있으면 텍스트를 더 라벨링할 만합니다."
        )
    caption = f"검증 폴드 {len(points[-1].scores)}개의 평균, 세로선은 표준편차 하나."
    head = ["학습 텍스트", "매크로 F1", "표준편차", "비율"]
    return note + beside(figure(curve_chart(points), caption), table(head, rows, "bars"))


def _mistakes(content: ReportContent, label_ids: IntArray, calibration: Calibration) -> str:
    predicted = calibration.probabilities.argmax(axis=1)
    confidence = calibration.probabilities.max(axis=1)
    wrong = np.flatnonzero(predicted != label_ids)
    if not len(wrong):
        return _note("틀린 예측이 없습니다.")
    ranked = wrong[np.argsort(-confidence[wrong], kind="stable")]
    items = [
        f"<li>{name_tag(content.labels[label_ids[place]])} → "
        f"{name_tag(content.labels[predicted[place]])} <b>{confidence[place]:.1%}</b>"
        f"<small>{escape(str(content.ids[place]))}</small>{shortened(content.texts[place])}</li>"
        for place in ranked[:_MISTAKES].tolist()
    ]
    note = _note(
        f"틀린 예측 {len(wrong):,}개 가운데 확신도(보정 후)가 높은 {len(items)}개입니다. "
        "붙은 라벨 → 모델의 예측과 그 확신도."
    )
    return f'{note}<ol class="texts">{"".join(items)}</ol>'


def _likely_errors(content: ReportContent, label_ids: IntArray, errors: list[LikelyError]) -> str:
    if not errors:
        return _note("의심되는 텍스트가 없습니다.")
    items = [
        f"<li>{name_tag(content.labels[label_ids[error.place]])} {error.self_confidence:.1%} → "
        f"{name_tag(content.labels[error.suggested])} <b>{error.confidence:.1%}</b>"
        f"<small>{escape(str(content.ids[error.place]))}</small>"
        f"{shortened(content.texts[error.place])}</li>"
        for error in errors[:_LIKELY_ERRORS]
    ]
    note = _note(
        f"라벨이 틀렸을 수 있는 {len(errors):,}개 가운데 붙은 라벨의 확신도가 가장 낮은 "
        f"{len(items)}개입니다(Northcutt 외, 2021). 다른 라벨의 확신도가 그 라벨을 가진 텍스트의 "
        "평균 이상일 때 여기에 나옵니다. 모델이 틀린 것일 수도 있으니 사람이 다시 보고 정하세요."
    )
    return f'{note}<ol class="texts">{"".join(items)}</ol>'


def _contradicting(content: ReportContent) -> str:
    shown = content.contradicting[:_CONTRADICTING]
    if not shown:
        return ""
    items = [
        f"<li>{name_tag(one.kept_label)} <small>{escape(one.kept_id)}</small> ≠ "
        f"{name_tag(one.label)}<small>{escape(one.id)}</small>{shortened(one.text)}</li>"
        for one in shown
    ]
    note = _note(
        f"앞에 나온 글과 같은 글인데 라벨이 다른 행 {content.contradictions:,}개를 뺐습니다. "
        f"여기에는 {len(items):,}개를 보입니다. 왼쪽이 먼저 나와 학습한 라벨, 오른쪽이 뺀 "
        "라벨입니다. 어느 쪽이 맞는지는 알 수 없으니 사람이 보고 정하세요."
    )
    return f'{note}<ol class="texts">{"".join(items)}</ol>'


def _keywords(labels: Sequence[str], found: list[LabelKeywords]) -> str:
    if not found:
        return ""
    parts = []
    for label, words in zip(labels, found, strict=True):
        items = "".join(
            f"<li>{escape(word.word)}<small>{word.texts:,}</small></li>" for word in words.keywords
        )
        inner = f'<ul class="words">{items}</ul>' if items else _note("두드러진 단어가 없습니다.")
        parts.append(f"<h3>{escape(label)} <small>텍스트 {words.texts:,}개</small></h3>{inner}")
    note = _note(
        "다른 라벨보다 그 라벨의 텍스트에 뚜렷이 많이 나오는 명사, 동사, 형용사를 "
        "로그 가능도비 순으로 보입니다. 수는 그 단어가 나온 텍스트 수이며, "
        "형태소는 Kiwi로 분석했습니다."
    )
    return note + "".join(parts)


def _settings(content: ReportContent) -> str:
    parts = ""
    if content.settings:
        parts += f"<h3>설정</h3>{facts(content.settings)}"
    if content.environment:
        parts += f"<h3>환경</h3>{facts(content.environment)}"
    return parts
