"""A table of which one row can be chosen."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st


def choose_row(
    frame: pd.DataFrame, *, key: str, columns: Mapping[str, Any], height: int | None = None
) -> int | None:
    """Draw the table; the place of the row that is chosen.

    Args:
        columns: how each column is shown, as `st.column_config` has it.
        height: of a long table, in pixels; None: as Streamlit chooses.
    """
    picked = st.dataframe(
        frame,
        hide_index=True,
        height=min(38 + 35 * len(frame), height) if height else "auto",
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        column_config=columns,
    )
    rows = picked["selection"]["rows"]
    # The browser may still tell of rows of a longer table.
    return rows[0] if rows and rows[0] < len(frame) else None
