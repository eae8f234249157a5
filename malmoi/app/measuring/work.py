"""Progress, pace, balance and seconds per label, on the page 현황."""

from collections.abc import Sequence
from datetime import timedelta

import pandas as pd
import streamlit as st

from malmoi.analysis.project_labels import label_colors
from malmoi.app.cached_results import cached_result
from malmoi.app.charts import bars, over_time
from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.visit import OpenProject
from malmoi.labels.project import PALETTE
from malmoi.labels.project_numbers import HourOfWork, ProjectNumbers, project_numbers
from malmoi.labels.review import own_counts

_HOURS_SHOWN = 48
# So many days or hours at least, so that the bar of a first day is no wall.
_FEWEST_BARS = 8


def draw_work(open_project: OpenProject) -> None:
    numbers = cached_result(open_project, "numbers", lambda: project_numbers(open_project.access))
    _draw_progress(open_project, numbers)
    if not numbers.annotators:
        st.info(say("There are no labels yet. Begin on the page Labelling."))
        return
    pace, balance = st.columns(2)
    with pace, st.container(border=True):
        _draw_pace(numbers)
    with balance, st.container(border=True):
        _draw_balance(open_project, numbers)
    _draw_people(open_project, numbers)


def _draw_progress(open_project: OpenProject, numbers: ProjectNumbers) -> None:
    done = numbers.progress
    share = done.finished / done.texts if done.texts else 0.0
    st.progress(
        share,
        text=say(
            "Finished: {finished:,} of {texts:text} ({share:.0%}).",
            finished=done.finished,
            texts=done.texts,
            share=share,
        ),
    )
    # Not of what is kept: those who may review share that.
    own = own_counts(open_project.access)
    metrics = [
        (say("My labels"), own.labelled),
        (say("Skipped by me"), own.skipped),
    ]
    if open_project.allows("reviewer"):
        metrics += [
            (say("Disagreement"), done.disagreeing),
            (say("To review"), done.to_review),
            (say("Decided in review"), numbers.decided or 0),
        ]
    with st.container(horizontal=True, gap="large"):
        for name, number in metrics:
            st.metric(name, f"{number:,}", width="content")


def _draw_pace(numbers: ProjectNumbers) -> None:
    by = st.segmented_control(
        say("Pace"),
        ("day", "hour"),
        format_func={
            "day": say("By day"),
            "hour": say("By hour"),
        }.__getitem__,
        key="status_pace",
        default="day",
        required=True,
    )
    hours = list(numbers.hours)
    if by == "hour" and hours:
        last = max(hour.begins for hour in hours)
        hours = [one for one in hours if last - one.begins < timedelta(hours=_HOURS_SHOWN)]
    frame = _by_time(hours, by)
    if frame.empty:
        st.caption(say("No labels within 60 days."))
        return
    title = say("Labels")
    st.altair_chart(over_time(frame, title), width="stretch", alt=say("Labels over time"))
    with st.expander(say("As a table")):
        frame = frame[frame["number"] > 0]
        table = frame.pivot_table(index="time", columns="name", values="number", fill_value=0)
        names = list(table.columns)
        table.columns = pd.Index([str(place) for place in range(len(names))])
        st.dataframe(
            table.reset_index().iloc[::-1],
            hide_index=True,
            column_config={
                "time": st.column_config.TextColumn(say("When")),
                **{
                    str(place): st.column_config.NumberColumn(name, format="localized")
                    for place, name in enumerate(names)
                },
            },
        )


def _by_time(hours: Sequence[HourOfWork], by: str) -> pd.DataFrame:
    """Labels by the visitor's day or hour, and by annotator; 0 where nobody worked."""
    written = "%m-%d" if by == "day" else "%m-%d %H"
    step = timedelta(days=1) if by == "day" else timedelta(hours=1)
    counts: dict[tuple[str, str], int] = {}
    if hours:
        first, last = (local_time(pick(hour.begins for hour in hours)) for pick in (min, max))
        time = min(first, last - (_FEWEST_BARS - 1) * step)
        while time.strftime(written) != last.strftime(written):
            counts[time.strftime(written), hours[0].name] = 0
            time += step
    for hour in hours:
        key = local_time(hour.begins).strftime(written), hour.name
        counts[key] = counts.get(key, 0) + hour.labels
    rows = [(time, name, number) for (time, name), number in counts.items()]
    return pd.DataFrame(rows, columns=["time", "name", "number"])


def _draw_balance(open_project: OpenProject, numbers: ProjectNumbers) -> None:
    titles, labels = open_project.project.titles, numbers.labels
    colors = label_colors(open_project.project)
    total = sum(labels.values())
    st.text(say("Balance of labels ({total:,})", total=total))
    frame = pd.DataFrame(
        {
            "name": [titles.get(name, name) for name in labels],
            "number": list(labels.values()),
            "color": [colors.get(name, PALETTE[0]) for name in labels],
            "share": [number / total * 100 if total else 0.0 for number in labels.values()],
        }
    )
    st.altair_chart(
        bars(frame, say("Labels")),
        width="stretch",
        alt=say("Balance of labels as bars"),
    )
    with st.expander(say("As a table")):
        st.dataframe(
            frame,
            hide_index=True,
            column_config={
                "name": st.column_config.TextColumn(say("Label")),
                "number": st.column_config.NumberColumn(say("Number"), format="localized"),
                "share": st.column_config.NumberColumn(say("Share"), format="%.1f%%"),
                "color": None,
            },
        )


def _draw_people(open_project: OpenProject, numbers: ProjectNumbers) -> None:
    people = numbers.annotators
    st.text(say("By annotator") if open_project.allows("reviewer") else say("What I did"))
    frame = pd.DataFrame(
        {
            "name": [one.name for one in people],
            "labelled": [one.labelled for one in people],
            "skipped": [one.skipped for one in people],
            "lower": [one.seconds.lower if one.seconds else None for one in people],
            "median": [one.seconds.median if one.seconds else None for one in people],
            "upper": [one.seconds.upper if one.seconds else None for one in people],
            **{
                f"label {place}": [one.labels.get(name, 0) for one in people]
                for place, name in enumerate(numbers.label_names)
            },
        }
    )
    column = st.column_config
    said = say("Seconds, of the newest 20,000 labels")
    st.dataframe(
        frame,
        hide_index=True,
        # Of somebody whose labels were imported no seconds are known.
        placeholder="–",
        column_config={
            "name": column.TextColumn(say("Person"), pinned=True),
            "labelled": column.NumberColumn(say("Labels"), format="localized"),
            "skipped": column.NumberColumn(say("Skipped"), format="localized"),
            "lower": column.NumberColumn(say("25%"), format="%.1f", help=said),
            "median": column.NumberColumn(say("Median"), format="%.1f", help=said),
            "upper": column.NumberColumn(say("75%"), format="%.1f", help=said),
            **{
                f"label {place}": column.NumberColumn(name, format="localized")
                for place, name in enumerate(numbers.label_names)
            },
        },
    )
