"""The two buttons under a table: first the workbook, whose texts every program leaves alone."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import streamlit as st

from malmoi.app.language import say
from malmoi.text.table_writing import check_writable, table_writer
from malmoi.text.written_cells import EXCEL_CELL

XLSX_MIME = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def offer_table(table: Callable[[], pd.DataFrame], stem: str) -> None:
    """Draw the buttons.

    Args:
        table: makes the table when a button is clicked; clicking does not rerun the page.
    """
    limit = say(
        "A cell of Excel holds {characters:,} characters; longer texts are cut.",
        characters=EXCEL_CELL,
    )
    kinds = [("XLSX", ".xlsx", XLSX_MIME, limit), ("CSV", ".csv", "text/csv", None)]
    row = st.container(horizontal=True)
    for name, suffix, mime, note in kinds:
        row.download_button(
            say("Download {name}", name=name),
            partial(_file, table, suffix),
            f"{stem}{suffix}",
            mime,
            key=f"{stem}{suffix}",
            on_click="ignore",
            help=note,
            icon=":material/download:",
        )


def _file(table: Callable[[], pd.DataFrame], suffix: str) -> bytes:
    return table_file(table(), suffix)


def table_file(table: pd.DataFrame, suffix: str) -> bytes:
    """A table as a file, written as the commands write one.

    Raises:
        InputError: more rows than a sheet can hold.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"table{suffix}"
        check_writable(path, len(table))
        columns = list(map(str, table.columns))
        with table_writer(path, columns, ["str"] * len(columns)) as write:
            for row in table.itertuples(index=False, name=None):
                write(row)
        return path.read_bytes()
