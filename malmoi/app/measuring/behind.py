"""The texts behind a number, on the page 현황."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from malmoi.app.language import say
from malmoi.app.plain_text import shortened
from malmoi.app.reviewing.one_text import joined
from malmoi.labels.review import ReviewedText

SHOWN = 50


def draw_texts(title: str, texts: Sequence[ReviewedText], number: int, key: str) -> None:
    """Draw them as rows, each with its votes.

    Args:
        title: which number they are behind, as plain text.
        texts: the first 50.
        number: how many there are.
        key: of the table.
    """
    st.text(title)
    if number > len(texts):
        st.caption(say("The first {shown:,} of {number:,}.", shown=len(texts), number=number))
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
                "" if one.adjudicated is None else joined(one.adjudicated) for one in texts
            ],
        }
    )
    st.dataframe(
        frame,
        hide_index=True,
        height=min(38 + 35 * max(1, len(texts)), 320),
        key=key,
        column_config={
            "text": st.column_config.TextColumn(say("Text"), width="large"),
            "votes": st.column_config.TextColumn(say("Votes"), width="medium"),
            "decided": st.column_config.TextColumn(say("Decision")),
        },
    )
