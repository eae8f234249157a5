"""The charts of the report: the shapes of an SVG, which `templates/parts.html` writes.

Colours come from the page's variables, light and dark. One unit is one pixel at full width.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from malmoi.finetune.evaluation.calibration import ReliabilityBin
from malmoi.finetune.evaluation.learning_curve import CurvePoint

_WIDTH, _HEIGHT = 360, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 24, 12, 40


@dataclass(frozen=True, kw_only=True)
class ChartShape:
    """An element of a chart: `words` are those of a text, else what is shown when pointed at."""

    tag: str
    attributes: Mapping[str, str]
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing of this size, its shapes from below to above."""

    width: int
    height: int
    description: str
    shapes: Sequence[ChartShape]


class _Frame:
    """A square-cornered plot area: data to pixels, axes, and the shapes collected so far."""

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], height: int = _HEIGHT
    ) -> None:
        self.x_range, self.y_range, self.height = x, y, height
        self.shapes: list[ChartShape] = []

    def x(self, value: float) -> float:
        low, high = self.x_range
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return self.height - _BOTTOM - (value - low) / (high - low) * (self.height - _TOP - _BOTTOM)

    def line(self, name: str, x1: float, y1: float, x2: float, y2: float) -> None:
        ends = {"x1": self.x(x1), "y1": self.y(y1), "x2": self.x(x2), "y2": self.y(y2)}
        self._add("line", ends, {"class": name})

    def bar(self, name: str, x1: float, x2: float, height: float, note: str) -> None:
        left, right = self.x(x1) + 1, self.x(x2) - 1
        top, foot = self.y(height), self.y(self.y_range[0])
        place = {"x": left, "y": top, "width": right - left, "height": max(foot - top, 0)}
        self._add("rect", place, {"class": name}, note)

    def dot(self, name: str, x: float, y: float, note: str, radius: float = 4) -> None:
        place = {"cx": self.x(x), "cy": self.y(y)}
        self._add("circle", place, {"class": name, "r": f"{radius:g}"}, note)

    def text(self, x: float, y: float, content: str, anchor: str = "middle") -> None:
        """At pixels, not data."""
        self._add("text", {"x": x, "y": y}, {"text-anchor": anchor}, content)

    def _add(
        self, tag: str, place: Mapping[str, float], others: Mapping[str, str], words: str = ""
    ) -> None:
        attributes = {name: f"{value:.1f}" for name, value in place.items()} | dict(others)
        self.shapes.append(ChartShape(tag=tag, attributes=attributes, words=words))

    def y_axis(self, ticks: Sequence[float], form: str = "{:.1f}") -> None:
        for tick in ticks:
            self.line("grid", self.x_range[0], tick, self.x_range[1], tick)
            self.text(_LEFT - 6, self.y(tick) + 4, form.format(tick), "end")

    def x_axis(self, ticks: Mapping[float, str], title: str) -> None:
        self.line("axis", self.x_range[0], self.y_range[0], self.x_range[1], self.y_range[0])
        for tick, name in ticks.items():
            self.text(self.x(tick), self.height - _BOTTOM + 16, name)
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        self.text(middle, self.height - 6, title)

    def chart(self, description: str) -> Chart:
        return Chart(width=_WIDTH, height=self.height, description=description, shapes=self.shapes)


def fold_chart(fold_f1: Mapping[int, Sequence[float]]) -> Chart:
    """Macro F1 of every fold, a dot a seed, and their mean as a line.

    Args:
        fold_f1: seed to the F1 of folds 1, 2 and so on.
    """
    values = [value for scores in fold_f1.values() for value in scores]
    folds = max(len(scores) for scores in fold_f1.values())
    low, high = _around(values)
    frame = _Frame((0.5, folds + 0.5), (low, high))
    frame.y_axis(_ticks(low, high))
    step = math.ceil(folds / 10)
    frame.x_axis({fold: str(fold) for fold in range(1, folds + 1, step)}, "폴드")
    mean = sum(values) / len(values)
    frame.line("mean", 0.5, mean, folds + 0.5, mean)
    for number, (seed, scores) in enumerate(fold_f1.items()):
        # Dots of several seeds beside one another, within a third of a fold's width.
        shift = (number - (len(fold_f1) - 1) / 2) * 0.33 / max(len(fold_f1), 2)
        for fold, value in enumerate(scores, 1):
            frame.dot("point", fold + shift, value, f"시드 {seed}, 폴드 {fold}: F1 {value:.4f}")
    return frame.chart(f"폴드별 매크로 F1, 평균 {mean:.4f}")


def reliability_diagram(bins: Sequence[ReliabilityBin], description: str) -> Chart:
    """Accuracy by confidence: bars, dots at the mean confidence, and the diagonal to reach."""
    frame = _Frame((0, 1), (0, 1), height=300)
    frame.y_axis([0, 0.25, 0.5, 0.75, 1], "{:.0%}")
    frame.x_axis({tick: f"{tick:.0%}" for tick in (0, 0.25, 0.5, 0.75, 1)}, "확신도")
    for part in bins:
        if part.texts:
            note = (
                f"확신도 {part.lower:.0%}~{part.upper:.0%}: 텍스트 {part.texts:,}개, "
                f"평균 확신도 {part.confidence:.1%}, 정확도 {part.accuracy:.1%}"
            )
            frame.bar("bar", part.lower, part.upper, part.accuracy, note)
    frame.line("diagonal", 0, 0, 1, 1)
    for part in bins:
        if part.texts:
            note = f"평균 확신도 {part.confidence:.1%}, 정확도 {part.accuracy:.1%}"
            frame.dot("point", part.confidence, part.accuracy, note, 3)
    return frame.chart(description)


def confidence_histogram(bins: Sequence[ReliabilityBin], description: str) -> Chart:
    """How many texts each confidence bin holds."""
    total = sum(part.texts for part in bins)
    most = max(part.texts for part in bins) / total
    frame = _Frame((0, 1), (0, most), height=120)
    frame.y_axis([0, most], "{:.0%}")
    frame.x_axis({0: "0%", 0.5: "50%", 1: "100%"}, "확신도별 텍스트 비율")
    for part in bins:
        note = f"확신도 {part.lower:.0%}~{part.upper:.0%}: {part.texts:,}개"
        frame.bar("count", part.lower, part.upper, part.texts / total, note)
    return frame.chart(description)


def curve_chart(points: Sequence[CurvePoint]) -> Chart:
    """Macro F1 against training texts on a logarithmic axis."""
    low, high = _around([point.score for point in points])
    places = [math.log2(point.texts) for point in points]
    margin = max(0.15 * (places[-1] - places[0]), 0.25)
    frame = _Frame((places[0] - margin, places[-1] + margin), (low, high))
    frame.y_axis(_ticks(low, high))
    frame.x_axis(
        {place: f"{point.texts:,}" for place, point in zip(places, points, strict=True)},
        "학습 텍스트 수 (로그 눈금)",
    )
    spots = list(zip(places, points, strict=True))
    for (x1, one), (x2, two) in pairwise(spots):
        frame.line("curve", x1, one.score, x2, two.score)
    for place, point in spots:
        frame.dot("point", place, point.score, f"{point.texts:,}개: F1 {point.score:.4f}")
    shown = ", ".join(f"{point.texts:,}개 {point.score:.3f}" for point in points)
    return frame.chart(f"학습 곡선: {shown}")


def answered_chart(points: Sequence[tuple[float, float]]) -> Chart:
    """Accuracy of the texts that are answered against their share, the surest first."""
    low, high = _around([accuracy for _, accuracy in points])
    frame = _Frame((0, 1), (low, high))
    frame.y_axis(_ticks(low, high))
    frame.x_axis({tick: f"{tick:.0%}" for tick in (0, 0.25, 0.5, 0.75, 1)}, "답하는 글의 비율")
    for (x1, one), (x2, two) in pairwise(points):
        frame.line("curve", x1, one, x2, two)
    for share, accuracy in points[:: max(1, len(points) // 10)]:
        frame.dot("point", share, accuracy, f"{share:.0%}에 답하면 정확도 {accuracy:.1%}", 3)
    share, accuracy = points[-1]
    return frame.chart(f"확신이 큰 글부터 답할 때의 정확도: 모두 답하면 {accuracy:.1%}")


def _around(values: Sequence[float]) -> tuple[float, float]:
    """A range of whole tenths within 0 to 1 that holds the values with some air."""
    low = max(0.0, math.floor((min(values) - 0.03) * 10) / 10)
    high = min(1.0, math.ceil((max(values) + 0.03) * 10) / 10)
    return low, max(high, low + 0.1)


def _ticks(low: float, high: float) -> list[float]:
    steps = round((high - low) * 10)
    every = 1 if steps <= 5 else 2
    return [round(low + step / 10, 1) for step in range(0, steps + 1, every)]
