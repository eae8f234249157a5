"""Words of a text on a ground that shows a number of each, by a component that never reads HTML."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import streamlit as st

_JAVASCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
_CSS = """
.words { line-height: 2.1; white-space: pre-wrap; overflow-wrap: anywhere;
  color: var(--st-text-color); font-family: var(--st-font); max-height: 40vh; overflow-y: auto; }
.words span { border-radius: 3px; padding: 1px 2px; }
"""
_component = st.components.v2.component("malmoi_word_map", css=_CSS, js=_JAVASCRIPT)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A part of a text.

    Attributes:
        start, end: its place, in characters.
        strength: -1 to 1; below 0 is drawn in the other colour, with a dotted line.
        title: what a pointer or a screen reader finds.
    """

    start: int
    end: int
    strength: float
    title: str


def draw_word_map(text: str, marks: Sequence[Mark], *, key: str) -> None:
    """Draw a text with its marks, which do not overlap and come in order."""
    pieces: list[dict[str, object]] = []
    done = 0
    for mark in marks:
        pieces.append({"text": text[done : mark.start]})
        pieces.append({"text": text[mark.start : mark.end], **asdict(mark)})
        done = mark.end
    pieces.append({"text": text[done:]})
    _component(data={"pieces": pieces}, key=key)
