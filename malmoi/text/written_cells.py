"""Cells of the tables that we write for people: CSV and XLSX that no program misreads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from malmoi.text.reading.columns import whole_characters
from malmoi.text.reading.spreadsheet_cells import guarded

# Limits of the XLSX format itself.
EXCEL_ROWS = 1_048_576
EXCEL_CELL = 32_767


@dataclass
class CutCells:
    """How many cells of a workbook hold less than was to be written."""

    count: int = 0

    @property
    def line(self) -> str:
        """What was cut, and what to do."""
        cells = "1 cell" if self.count == 1 else f"{self.count:,} cells"
        return (
            f"{cells} cut at {EXCEL_CELL:,} characters, which is all that Excel holds; write .csv "
            "or .jsonl to keep all"
        )


def csv_cell(value: Any) -> Any:
    """A cell of a CSV file: whole characters, and no formula (`spreadsheet_cells`)."""
    return guarded(whole_characters(value)) if isinstance(value, str) else value


def cell_of_text(value: Any) -> Any:
    """A list, an object or a date as text; texts, numbers and nothing as they are."""
    if isinstance(value, str):
        return whole_characters(value)
    if value is None or value != value:
        return None
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
