"""Rows and files that were left out: where each stands, and why it cannot be read."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from malmoi.app.downloads import table_file
from malmoi.app.explanation import explain, for_visitors
from malmoi.app.language import say
from malmoi.app.plain_text import escaped
from malmoi.errors import InputError

_TALLEST = 240


def draw_left_out(errors: Sequence[InputError], count: int) -> None:
    """Say how many there are, and show those that were kept.

    Args:
        errors: what is wrong with each.
        count: of all that were left out, which may be more.
    """
    st.warning(
        say("Rows, labels or files left out: {count:,}.", count=count),
        icon=":material/report:",
    )
    table = left_out_table(errors)
    st.dataframe(
        table,
        hide_index=True,
        height=min(_TALLEST, 36 * (len(table) + 1) + 2),
        column_config={
            table.columns[0]: st.column_config.TextColumn(width="medium"),
            table.columns[1]: st.column_config.TextColumn(width="large"),
        },
    )
    if count > len(errors):
        st.caption(say("Only the first {shown:,} are shown.", shown=len(errors)))


def explain_file(sentence: str, error: InputError) -> None:
    """Say that a file cannot be used, where in it, and why."""
    why = for_visitors(error.reason)
    if error.place and escaped(error.place) not in sentence:
        why = f"{error.place}: {why}"
    explain(f"{sentence}\n\n{escaped(why)}", error)


def offer_left_out(errors: Sequence[InputError]) -> None:
    """The same, to be downloaded as CSV."""
    st.download_button(
        say("Download the list (CSV)"),
        lambda: table_file(left_out_table(errors), ".csv"),
        "left_out.csv",
        "text/csv",
        on_click="ignore",
        icon=":material/download:",
        key="bad_rows_file",
    )


def left_out_table(errors: Sequence[InputError]) -> pd.DataFrame:
    """A row an error: its place, and why that was left out."""
    rows = [(error.place, for_visitors(error.reason)) for error in errors]
    return pd.DataFrame(rows, columns=[say("Place"), say("Reason")])
