"""Labels as a table that can be edited: colour, name, key and meaning in a row each."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from malmoi.app.language import say
from malmoi.labels.label_names import normal_label
from malmoi.labels.project import KEYS, PALETTE, ProjectLabel

_WIDTHS = (1.5, 3.4, 2.6, 1.7, 4)


def typed_labels(text: str) -> list[str]:
    """The names of a field, one a line or with commas between; each once, in their order.

    A name that holds a comma stands in quotation marks, as in CSV.
    """
    parts = (part for line in text.splitlines() for part in _parts(line))
    names = (normal_label(part) for part in parts)
    return list(dict.fromkeys(name for name in names if name))


def _parts(line: str) -> list[str]:
    """A line on its own, where a lone quotation mark is one of a name."""
    if line.count('"') % 2:
        return line.split(",")
    try:
        return next(csv.reader([line], skipinitialspace=True), [])
    except csv.Error:  # longer than a cell may be, which no name is
        return line.split(",")


def as_typed(names: Sequence[str]) -> str:
    """Names as `typed_labels` reads them, one a line."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([name] for name in names)
    return lines.getvalue().rstrip("\n")


def with_defaults(names: Sequence[str]) -> list[ProjectLabel]:
    """A label for each name, with the next colour and key."""
    return [
        ProjectLabel(
            name=name,
            color=PALETTE[place % len(PALETTE)],
            key=KEYS[place] if place < len(KEYS) else None,
        )
        for place, name in enumerate(names)
    ]


def draw_heads(*, with_names: bool) -> None:
    """The names of the columns; on a phone each field has its own instead."""
    heads = [
        say("Colour"),
        say("Name"),
        say("Shown as"),
        say("Key"),
        say("Meaning"),
    ]
    with st.container(key="label_heads"):
        places = st.columns([*_WIDTHS, 1.6] if with_names else _WIDTHS)
    for place, head in zip(places, heads, strict=False):
        place.caption(head)
    if with_names:
        places[-1].caption(say("Retire"))


def edit_label(
    label: ProjectLabel, *, key: str, with_names: bool, disabled: bool = False
) -> ProjectLabel:
    """A row for a label; what stands in it now.

    Args:
        label: as it is.
        key: begins the keys of the widgets.
        with_names: the name can be changed, and the label retired.
        disabled: it is only shown.
    """
    with st.container(key=f"label_row-{key}"):
        places = st.columns([*_WIDTHS, 1.6] if with_names else _WIDTHS, vertical_alignment="center")
    color = places[0].color_picker(
        say("Colour"), label.color or PALETTE[0], key=f"{key}-color", disabled=disabled
    )
    if with_names:
        name = places[1].text_input(
            say("Name"), label.name, max_chars=200, key=f"{key}-name", disabled=disabled
        )
    else:
        places[1].text(label.name)
        name = label.name
    title = places[2].text_input(
        say("Shown as"),
        "" if label.title == label.name else label.title,
        placeholder=label.name,
        key=f"{key}-title",
        disabled=disabled,
    )
    letter = places[3].text_input(
        say("Key"), label.key or "", max_chars=1, key=f"{key}-key", disabled=disabled
    )
    meaning = places[4].text_input(
        say("Meaning"), label.meaning, key=f"{key}-meaning", disabled=disabled
    )
    retired = label.retired
    if with_names:
        retired = places[5].checkbox(
            say("Retire"), label.retired, key=f"{key}-retired", disabled=disabled
        )
    return replace(
        label,
        name=name or "",
        title=title or "",
        color=color,
        key=(letter or "").strip().lower() or None,
        meaning=meaning or "",
        retired=retired,
    )
