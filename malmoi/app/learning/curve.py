"""The learning curve on a page: how good the model is by number of labels, and what to expect."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from malmoi.app import learning
from malmoi.app.explanation import explain, for_visitors
from malmoi.app.found_models import short_name
from malmoi.app.intervals import share_interval
from malmoi.app.jobs import Job
from malmoi.app.language import say
from malmoi.app.learning.forecast import (
    FEWEST_POINTS,
    Forecast,
    comparable_points,
    forecast,
)
from malmoi.app.learning.last_score import tell_model
from malmoi.app.plain_text import escaped, two_decimals
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.inference.labelling.labels_needed import (
    FEWEST_OF_LABEL,
    FEWEST_OF_SAMPLE,
    LABELS_A_ROUND,
)
from malmoi.labels.access import ProjectAccess
from malmoi.labels.scores import ScoreVersion, score_versions

# Okabe and Ito's blue, vermilion and green; lines and marks differ, too.
_COLORS = ("#0072B2", "#D55E00", "#009E73")
_DASHES = ([1, 0], [5, 3], [8, 2, 2, 2])
_MARKS = ("circle", "square", "triangle-up")
_MOST_POINTS, _MOST_ROWS = 150, 8
# Somebody else's label may begin a round while nobody looks (assumptions: who waits for a round
# looks at the page, who does not will see it later).
_SECONDS_WHILE_BUSY, _SECONDS_WHILE_IDLE = 2.0, 20.0


def draw_curve(open_project: OpenProject) -> None:
    """Draw what learning does now, its curve, the table of it and the forecast.

    Raises:
        InputError: the database cannot be used.
    """
    access = open_project.access
    if not learning.is_on():
        st.info(say("Learning is off on this server."), icon=":material/info:")
    else:
        busy = learning.state(access).is_on
        every = _SECONDS_WHILE_BUSY if busy else _SECONDS_WHILE_IDLE
        st.fragment(_draw_now, run_every=every)(access)
    versions = score_versions(access)
    tell_model(open_project, versions[-1] if versions else None)
    _draw_points(versions)


def _draw_now(access: ProjectAccess) -> None:
    """What is being done; looks again by itself, and at the end draws the page anew."""
    state = learning.state(access)
    text, button = st.columns([2, 1], vertical_alignment="center")
    text.caption(_told(state))
    if button.button(
        say("Learn now"),
        icon=":material/school:",
        disabled=state.is_on,
        width="stretch",
        key="learn_now",
    ):
        try:
            learning.learn_now(access)
        except InputError as error:
            explain(say("It cannot learn."), error)
        st.rerun()
    _tell_what_is_wrong(state.result or {})
    if state.error is not None:
        st.error(say("The last round failed."))
        st.code(for_visitors(state.error), language=None, wrap_lines=True)
    busy = state.is_on
    before, st.session_state["learning_was_busy"] = (
        st.session_state.get("learning_was_busy", busy),
        busy,
    )
    if before != busy:
        st.rerun()


def _told(state: Job) -> str:
    if state.is_on:
        is_learning = state.phase == learning.LEARNING
        return say("It is learning…") if is_learning else say("It is waiting its turn…")
    result = state.result
    if result is not None and result["status"] == "few":
        return _what_is_missing(result)
    if result is not None and result["status"] == "learnt":
        return say(
            "It learnt from {labels:,} labels in {seconds:.0f} s.",
            labels=result["labels"],
            seconds=result["seconds"],
        )
    return say("It learns by itself after every {labels} new labels.", labels=LABELS_A_ROUND)


def _what_is_missing(result: dict[str, Any]) -> str:
    if result["missing"]:
        return say(
            "Labels that it still needs: {missing} ({labels} so far).",
            missing=result["missing"],
            labels=result["labels"],
        )
    if result["left_out"]:
        return say(
            "No label can be learnt yet. It takes {fewest} texts that have it, and {fewest} that "
            "do not.",
            fewest=FEWEST_OF_LABEL,
        )
    return say("All labels so far are the same. It needs at least one other.")


def _tell_what_is_wrong(result: dict[str, Any]) -> None:
    """Labels that are not learnt, and a chosen model that cannot be asked."""
    if result.get("status") == "learnt" and result["left_out"]:
        st.text(
            say("Not learnt yet, for want of texts ({fewest} are enough): ", fewest=FEWEST_OF_LABEL)
            + ", ".join(result["left_out"])
        )
    problem = result.get("problem")
    if problem is None:
        return
    name = escaped(short_name(problem["model"]))
    without = say("Learning goes on without it.")
    why = {
        "gone": say("The chosen model {name} is gone.", name=name),
        "broken": say("The chosen model {name} cannot be read.", name=name),
        "labels": say(
            "The chosen model {name} has fewer than two labels of this project.", name=name
        ),
    }[problem["kind"]]
    st.warning(f"{why} {without}", icon=":material/warning:")
    if problem["detail"]:
        error = InputError.of_json(problem["detail"])
        st.code(for_visitors(error), language=None, wrap_lines=True)


def _draw_points(versions: list[ScoreVersion]) -> None:
    if not versions:
        st.info(
            say(
                "Nothing was learnt yet. The score will be here once {labels} labels were learnt "
                "from.",
                labels=LABELS_A_ROUND,
            ),
            icon=":material/show_chart:",
        )
        return
    step = -(-len(versions) // _MOST_POINTS)
    shown = versions[::-step][::-1]  # with the last
    # By the folds: of the random sample there are fewer texts, and its curve is the rougher.
    expected = forecast(comparable_points(versions))
    names = (
        say("Cross-validated"),
        say("Random sample"),
        say("Chosen model"),
    )
    st.altair_chart(
        _chart(shown, expected, names),
        width="stretch",
        alt=say("F1 by number of labels"),
    )
    _draw_table(versions, expected)
    if len({one.quality.kinds for one in versions}) > 1:
        st.caption(
            say(
                "The line begins anew where the number of labels changed: the score before was "
                "that of other labels."
            )
        )
    _draw_words(versions[-1], expected)


def _chart(
    versions: list[ScoreVersion], expected: Forecast | None, names: tuple[str, str, str]
) -> alt.LayerChart | alt.FacetChart:
    rows = _rows(versions, names)
    met = {row["kind"] for row in rows}
    # A model that nobody has chosen has no place in the legend.
    shown = len(names) if names[-1] in met else len(names) - 1
    kinds = list(names[:shown])
    x = alt.X(
        "labels:Q",
        title=say("Number of labels"),
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format=",d", tickMinStep=1),
    )
    values = [row["f1"] for row in rows]
    domain = [max(0.0, min(values, default=0) - 0.15), min(1.0, max(values, default=1) + 0.15)]
    y = alt.Y("f1:Q", title="F1", scale=alt.Scale(domain=domain, nice=True))
    color = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=list(_COLORS[:shown])),
        legend=alt.Legend(title=None, orient="top"),
    )
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=x,
        y=y,
        color=color,
        detail="kinds:N",
        tooltip=[
            alt.Tooltip("kind:N", title=" "),
            alt.Tooltip("labels:Q", title=say("Number of labels"), format=","),
            alt.Tooltip("f1:Q", title="F1", format=".3f"),
        ],
    )
    dash = alt.StrokeDash("kind:N", scale=alt.Scale(domain=kinds, range=list(_DASHES[:shown])))
    shape = alt.Shape(
        "kind:N", scale=alt.Scale(domain=kinds, range=list(_MARKS[:shown])), legend=None
    )
    layers: list[Any] = [
        base.mark_line(strokeWidth=2).encode(strokeDash=dash),
        base.mark_point(size=45, filled=True).encode(shape=shape),
    ]
    layers += _error_bars(versions, names[1], x, color)
    if expected is not None:
        layers += _expected_layers(expected, x)
    return alt.layer(*layers, height=280)


def _rows(versions: list[ScoreVersion], names: tuple[str, str, str]) -> list[dict[str, Any]]:
    """A row for each score of each round: `labels`, `f1` and its `kind`, one of the names.

    With as many labels as were known (`kinds`), since only scores of the same labels make a line.
    """
    measured = [
        (one.quality.labels, f1, kind, one.quality.kinds or 0)
        for one in versions
        for f1, kind in zip(
            (one.quality.cross_validated_f1, one.quality.sample_f1, one.quality.chosen_f1),
            names,
            strict=True,
        )
    ]
    return [
        {"labels": labels, "f1": f1, "kind": kind, "kinds": kinds}
        for labels, f1, kind, kinds in measured
        if f1 is not None
    ]


def _error_bars(versions: list[ScoreVersion], kind: str, x: alt.X, color: alt.Color) -> list[Any]:
    """The intervals of 95% of the scores on the random sample."""
    bars = []
    for one in versions:
        f1 = one.quality.sample_f1
        if f1 is not None:
            low, high = share_interval(f1, one.quality.sample_texts)
            bars.append({"labels": one.quality.labels, "low": low, "high": high, "kind": kind})
    if not bars:
        return []
    rule = alt.Chart(pd.DataFrame(bars)).mark_rule(opacity=0.5, clip=True)
    return [rule.encode(x=x, y=alt.Y("low:Q", title="F1"), y2="high:Q", color=color)]


def _expected_layers(expected: Forecast, x: alt.X) -> list[Any]:
    frame = pd.DataFrame(
        {
            "labels": expected.labels,
            "f1": expected.f1,
            "low": expected.low,
            "high": expected.high,
        }
    )
    base = alt.Chart(frame).encode(x=x)
    return [
        base.mark_area(opacity=0.15, clip=True, color="#777777").encode(y="low:Q", y2="high:Q"),
        base.mark_line(strokeDash=[2, 3], clip=True, color="#777777").encode(y="f1:Q"),
    ]


def _draw_table(versions: list[ScoreVersion], expected: Forecast | None) -> None:
    labels, f1, sample, kind = (
        say("Number of labels"),
        say("Cross-validated F1"),
        say("Sample"),
        say("Expected"),
    )
    step = -(-len(versions) // _MOST_ROWS)
    rows = [
        {
            labels: one.quality.labels,
            f1: two_decimals(one.quality.cross_validated_f1),
            sample: _with_interval(one),
            kind: "",
        }
        for one in versions[::-step][::-1]
    ]
    if expected is not None:
        rows += [
            {labels: number, f1: "", sample: "", kind: f"{value:.2f} ({low:.2f}–{high:.2f})"}
            for number, value, low, high in zip(
                expected.labels[1:],
                expected.f1[1:],
                expected.low[1:],
                expected.high[1:],
                strict=True,
            )
        ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        width="stretch",
        column_config={labels: st.column_config.NumberColumn(format="localized", width=70)},
    )


def _with_interval(version: ScoreVersion) -> str:
    f1 = version.quality.sample_f1
    if f1 is None:
        return two_decimals(None)
    low, high = share_interval(f1, version.quality.sample_texts)
    return f"{f1:.2f} ({low:.2f}–{high:.2f})"


def _draw_words(last: ScoreVersion, expected: Forecast | None) -> None:
    lines = [
        say(
            "Cross-validation counts the hard texts that the model chose, so it tends to be low. "
            "The random sample is the honest score."
        )
    ]
    if last.quality.sample_f1 is None:
        lines.append(
            say(
                "The random sample has {texts:,} texts so far, and is measured from {fewest} on.",
                texts=last.quality.sample_texts,
                fewest=FEWEST_OF_SAMPLE,
            )
        )
    if expected is None:
        lines.append(say("A forecast needs at least {points} points.", points=FEWEST_POINTS))
    elif expected.flat:
        lines.append(
            say(
                "The curve is nearly flat: twice the labels would bring less than 0.01. Train "
                "ELECTRA or sharpen the guideline instead."
            )
        )
    else:
        lines.append(
            say(
                "The forecast continues the cross-validated scores by a power law. In brackets, "
                "its interval of 90%, and of the sample that of 95%."
            )
        )
    st.caption(" ".join(lines))
