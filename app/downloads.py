"""The two buttons under a table: first the workbook, whose texts every program leaves alone."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from app.batch import to_csv, to_xlsx
from app.language import say

XLSX_MIME = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def offer_table(table: Callable[[], pd.DataFrame], stem: str) -> None:
    """Draw the buttons.

    Args:
        table: makes the table when a button is clicked; clicking does not rerun the page.
        stem: of the files' names.
    """
    kinds: list[tuple[str, str, Callable[[pd.DataFrame], bytes], str]] = [
        ("XLSX", ".xlsx", to_xlsx, XLSX_MIME),
        ("CSV", ".csv", to_csv, "text/csv"),
    ]
    row = st.container(horizontal=True)
    for name, suffix, write, mime in kinds:
        row.download_button(
            say(f"{name} 내려받기", f"Download {name}"),
            partial(_file, write, table),
            f"{stem}{suffix}",
            mime,
            key=f"{stem}{suffix}",
            on_click="ignore",
            icon=":material/download:",
        )


def _file(write: Callable[[pd.DataFrame], bytes], table: Callable[[], pd.DataFrame]) -> bytes:
    return write(table())
