"""Texts as rows of a table, each with what its annotators and a reviewer say of it."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from malmoi.app.language import say
from malmoi.app.plain_text import shortened
from malmoi.app.reviewing.one_text import joined
from malmoi.app.row_choice import choose_row
from malmoi.labels.review import ReviewedText

# Texts that are shown of those behind a number.
SHOWN = 50


def choose_text(texts: Sequence[ReviewedText], key: str) -> ReviewedText | None:
    """Draw the table; the text whose row is chosen."""
    frame = pd.DataFrame(
        {
            "text": [shortened(one.text, 300) for one in texts],
            "votes": [
                " · ".join(
                    f"{vote.annotator}: {joined(vote.labels, vote.skipped)}" for vote in one.votes
                )
                for one in texts
            ],
            "decided": [
                "" if one.adjudicated is None else f"{joined(one.adjudicated)} ({one.reviewer})"
                for one in texts
            ],
            "comments": [len(one.comments) or None for one in texts],
            "notes": [" / ".join(one.notes) for one in texts],
        }
    )
    chosen = choose_row(
        frame,
        height=320,
        # Changes with the texts: what is chosen is known by its row, in which another may stand.
        key=f"{key}_{hash(tuple(one.text_id for one in texts))}",
        columns={
            "text": st.column_config.TextColumn(say("Text"), width="large"),
            "votes": st.column_config.TextColumn(say("Votes"), width="medium"),
            "decided": st.column_config.TextColumn(say("Decision")),
            "comments": st.column_config.NumberColumn(say("Number of notes"), width=60),
            "notes": st.column_config.TextColumn(say("Notes")),
        },
    )
    return None if chosen is None else texts[chosen]


def draw_votes(title: str, texts: Sequence[ReviewedText], number: int, key: str) -> None:
    """Draw the texts behind a number, and the one that is chosen as a whole.

    Args:
        title: which number they are behind, as plain text.
        texts: the first `SHOWN`.
        number: how many there are.
    """
    st.text(title)
    if number > len(texts):
        st.caption(say("The first {shown:,} of {number:,}.", shown=len(texts), number=number))
    if (text := choose_text(texts, key)) is not None:
        with st.container(border=True):
            st.text(text.text)
