"""Cells of the tables that we write for people: CSV and XLSX that no program misreads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, time, timedelta
from numbers import Integral
from typing import Any

from malmoi.text.reading.columns import whole_characters
from malmoi.text.reading.spreadsheet_cells import MARK, guarded

# Limits of the XLSX format itself.
EXCEL_ROWS = 1_048_576
EXCEL_CELL = 32_767
# From here on Excel's numbers, of 15 digits, are no longer exact.
_INEXACT = 10**15
# What no XML 1.0 document holds; Excel calls a workbook with one of them damaged.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# Spreadsheets read _x0041_ as the character of that number, so such a text is escaped itself.
_LOOKS_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")


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


def excel_cell(
    sheet: Any, value: Any, cuts: CutCells | None = None, shown: str | None = None
) -> Any:
    """A cell of a write-only sheet of openpyxl; a text stays one, even where it begins with "=".

    Control characters that the format forbids are left out, and a cell holds at most `EXCEL_CELL`
    characters: `cuts` counts those that are cut. A whole number of more than 15 digits is written
    as text: Excel would round it. A number is shown as `shown` says, a date or time if that is how
    dates are shown: by the other it would be read back as the other.
    """
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles.numbers import is_date_format

    if isinstance(value, Integral) and abs(int(value)) >= _INEXACT:
        value = str(int(value))
    if not isinstance(value, str):
        # A missing value of pandas is not equal to itself, or says nothing about it.
        missing = value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
        is_date = isinstance(value, date | time | timedelta)
        if missing or shown is None or is_date_format(shown) != is_date:
            return None if missing else value
        number = WriteOnlyCell(sheet, value=value)
        number.number_format = shown
        return number
    if not value:
        return None
    text = _NOT_IN_XML.sub("", whole_characters(value))
    if len(text) > EXCEL_CELL:
        text = text[:EXCEL_CELL]
        if cuts is not None:
            cuts.count += 1
    if text.startswith(MARK):
        text = guarded(text)  # readers take one mark away
    # XML would make a line feed of a carriage return.
    escaped = _LOOKS_ESCAPED.sub("_x005F_", text).replace("\r", "_x000D_")
    # openpyxl guesses a formula from "=" and an error from "#N/A"; a cell of its own costs a third.
    if not escaped.startswith(("=", "#")):
        return escaped
    cell = WriteOnlyCell(sheet, value=escaped)
    cell.data_type = "s"
    return cell
