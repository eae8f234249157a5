"""Words that are typical of each label, on the page 살펴보기."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from malmoi.app.cached_results import cached_result
from malmoi.app.charts import bars
from malmoi.app.language import say
from malmoi.app.visit import OpenProject
from malmoi.labels.project import PALETTE
from malmoi.labels.typical_words import typical_words

if TYPE_CHECKING:
    from malmoi.text.label_keywords import LabelKeyword


def draw_words(open_project: OpenProject) -> None:
    """Draw a chart and a table for each label."""
    found = cached_result(open_project, "typical-words", lambda: typical_words(open_project.access))
    if not found.words:
        st.info(say("This takes texts with at least two different labels."))
        return
    st.caption(
        say(
            "Nouns, verbs and adjectives that stand in the texts of a label more than in others, "
            "over {texts:labelled text} drawn at random (weighted log-odds).",
            texts=found.texts,
        )
    )
    colors = {label.name: label.color for label in open_project.project.labels}
    titles = open_project.project.titles
    places = st.columns(min(3, len(found.words)))
    for place, (name, words) in enumerate(found.words.items()):
        with places[place % len(places)], st.container(border=True):
            st.text(say("{label} ({texts:,})", label=titles[name], texts=words.texts))
            if not words.keywords:
                st.caption(say("No word stands out."))
                continue
            frame = pd.DataFrame(
                {
                    "name": [one.word for one in words.keywords],
                    "number": [one.score for one in words.keywords],
                }
            )
            st.altair_chart(
                bars(frame, say("Ratio"), color=colors[name] or PALETTE[0], written=".1f"),
                width="stretch",
                alt=say("Words of the label as bars"),
            )
            with st.expander(say("As a table")):
                _draw_table(words.keywords)


def _draw_table(keywords: Sequence["LabelKeyword"]) -> None:
    st.dataframe(
        pd.DataFrame(
            {
                "word": [one.word for one in keywords],
                "texts": [one.texts for one in keywords],
                "score": [one.score for one in keywords],
            }
        ),
        hide_index=True,
        column_config={
            "word": st.column_config.TextColumn(say("Word")),
            "texts": st.column_config.NumberColumn(say("Texts")),
            "score": st.column_config.NumberColumn(say("Ratio"), format="%.1f"),
        },
    )
