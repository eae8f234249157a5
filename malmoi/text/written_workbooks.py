"""Workbooks for people, written row by row in memory that does not grow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import IO, Any

from malmoi.text.reading.columns import whole_characters
from malmoi.text.reading.spreadsheet_cells import MARK, guarded
from malmoi.text.written_cells import CutCells, cell_of_text

# From here on Excel's numbers, of 15 digits, are no longer exact.
_INEXACT = 10**15
# What no XML 1.0 document holds; Excel calls a workbook with one of them damaged.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# Spreadsheets read _x0041_ as the character of that number, so such a text is escaped itself.
_LOOKS_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
# What XlsxWriter returns for a text that is longer than `EXCEL_CELL`.
_CUT = -2
# The first whose type it is tells how a date or time without a format of its own is shown.
_DATES = (
    (datetime, "yyyy-mm-dd h:mm:ss"),
    (date, "yyyy-mm-dd"),
    (time, "h:mm:ss"),
    (timedelta, "[hh]:mm:ss"),
)


@contextmanager
def written_book(target: Path | IO[bytes]) -> Iterator[Any]:
    """Yield a workbook of XlsxWriter; it is whole when the context ends.

    The same cells give the same bytes.
    """
    import xlsxwriter

    with xlsxwriter.Workbook(target, {"constant_memory": True, "use_zip64": True}) as book:
        book.set_properties({"created": datetime(1980, 1, 1)})
        yield book


class WrittenSheet:
    """A sheet of a workbook, row after row; a text stays one, even where it begins with "=".

    Control characters that the format forbids are left out, and a cell holds at most `EXCEL_CELL`
    characters. A whole number of more than 15 digits is written as text: Excel would round it.
    So is what Excel has no number for.
    """

    def __init__(
        self, book: Any, name: str, widths: Sequence[int] = (), *, cuts: CutCells | None = None
    ) -> None:
        """Add the sheet.

        Args:
            book: of `written_book`.
            name: on its tab.
            widths: of the first columns, in characters.
            cuts: counts the cells that are cut.
        """
        from xlsxwriter.worksheet import Worksheet

        class Sheet(Worksheet):
            # XlsxWriter's own takes "<r></r>" for markup, and the second of two numbers that share
            # a line for a character.
            @staticmethod
            def _escape_control_characters(text: object) -> str:
                escaped = _LOOKS_ESCAPED.sub("_x005F_", str(text)).replace("\r", "_x000D_")
                return f"_x003C_{escaped[1:]}" if escaped.startswith("<r>") else escaped

        self._book, self._sheet = book, book.add_worksheet(name, Sheet)
        self._cuts, self._rows = cuts or CutCells(), 0
        self._formats: dict[tuple[str | None, str | None], Any] = {}
        for place, width in enumerate(widths):
            self._sheet.set_column(place, place, width)

    def append(self, row: Sequence[Any], shown: Sequence[str | None] = ()) -> None:
        """Write a row.

        Args:
            row: its cells; empty ones are None, "" or not equal to themselves.
            shown: how numbers or dates of each column are shown; None: as they come.
        """
        for place, (value, how) in enumerate(zip_longest(row, shown)):
            self._write(place, value, how)
        self._rows += 1

    def _write(self, place: int, value: Any, shown: str | None) -> None:
        if isinstance(value, str):
            self._write_text(place, whole_characters(value))
            return
        # Excel's dates begin with 1900, and it knows no time zones.
        is_date = isinstance(value, time | timedelta) or (
            isinstance(value, date) and value.year >= 1900
        )
        is_date = is_date and getattr(value, "tzinfo", None) is None
        if is_date:
            self._sheet.write_datetime(self._rows, place, value, self._format(value, shown))
            return
        value = cell_of_text(value)
        if value is None:
            return
        if isinstance(value, bool):
            self._sheet.write_boolean(self._rows, place, value)
        elif isinstance(value, str):  # of a list, an object, or what Excel has no date for
            self._write_text(place, value)
        elif abs(value) == inf or (isinstance(value, int) and abs(value) >= _INEXACT):
            self._write_text(place, str(value))
        else:
            self._sheet.write_number(self._rows, place, value, self._format(value, shown))

    def _write_text(self, place: int, value: str) -> None:
        text = _NOT_IN_XML.sub("", value)
        if not text:
            return
        if text.startswith(MARK):
            text = guarded(text)  # readers take one mark away
        if self._sheet.write_string(self._rows, place, text) == _CUT:
            self._cuts.count += 1

    def _format(self, value: Any, shown: str | None) -> Any:
        """A date as a date and a number as a number: else it would be read back as the other."""
        plain = next((how for kind, how in _DATES if isinstance(value, kind)), None)
        if (shown, plain) not in self._formats:
            from openpyxl.styles.numbers import is_date_format

            fits = shown is not None and is_date_format(shown) == (plain is not None)
            how = shown if fits else plain
            self._formats[shown, plain] = how and self._book.add_format({"num_format": how})
        return self._formats[shown, plain]
