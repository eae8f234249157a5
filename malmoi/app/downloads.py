"""The two buttons under a table: first the workbook, whose texts every program leaves alone."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from malmoi.app.batch import to_csv, to_xlsx
from malmoi.app.language import say
from malmoi.text.written_cells import EXCEL_CELL

XLSX_MIME = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def offer_table(table: Callable[[], pd.DataFrame], stem: str) -> None:
    """Draw the buttons.

    Args:
        table: makes the table when a button is clicked; clicking does not rerun the page.
        stem: of the files' names.
    """
    limit = say(
        "A cell of Excel holds {characters:,} characters; longer texts are cut.",
        characters=EXCEL_CELL,
    )
    kinds: list[tuple[str, str, Callable[[pd.DataFrame], bytes], str, str | None]] = [
        ("XLSX", ".xlsx", to_xlsx, XLSX_MIME, limit),
        ("CSV", ".csv", to_csv, "text/csv", None),
    ]
    row = st.container(horizontal=True)
    for name, suffix, write, mime, note in kinds:
        row.download_button(
            say("Download {name}", name=name),
            partial(_file, write, table),
            f"{stem}{suffix}",
            mime,
            key=f"{stem}{suffix}",
            on_click="ignore",
            help=note,
            icon=":material/download:",
        )


def _file(write: Callable[[pd.DataFrame], bytes], table: Callable[[], pd.DataFrame]) -> bytes:
    return write(table())
