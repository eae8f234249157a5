"""Rows of standard input, which are JSON lines, as they come."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Iterator
from typing import Any

from malmoi.errors import InputError
from malmoi.text.reading.columns import ColumnRequest, whole_characters
from malmoi.text.reading.nested import with_inner_keys
from malmoi.text.reading.records import text_of_object
from malmoi.text.record import Record

STANDARD_INPUT = "standard input"
# What a pipe holds, as a rule.
_BLOCK_BYTES = 1 << 16
_MOST_BYTES = 1 << 20
_LONGEST_LINE_BYTES = 1 << 26


def rows_as_they_come(
    descriptor: int,
    text_column: str | None,
    pair_column: str | None,
    *,
    skip_bad_rows: bool,
    say: Callable[[str], None],
) -> Iterator[list[Record]]:
    """JSON objects of a pipe: all that are there, at once, so that nobody waits for an answer.

    Args:
        descriptor: of the pipe or file.
        text_column: key of the text; found by its name without one.
        pair_column: key of the second text.
        skip_bad_rows: leave out what is no object with a text.
        say: called at the end with a line about what was left out.

    Raises:
        InputError: a line is none, with its number.
    """
    number = left_out = 0
    for lines in _lines_as_they_come(descriptor):
        rows = []
        for line in lines:
            number += 1
            if not line.strip():
                continue
            try:
                rows.append(_row(line, f"{STANDARD_INPUT}:{number}", text_column, pair_column))
            except InputError:
                if not skip_bad_rows:
                    # What came before it has been asked for, too.
                    if rows:
                        yield rows
                    raise
                left_out += 1
        if rows:
            yield rows
    if left_out:
        say(f"{left_out:,} rows that could not be read, left out")


def _row(line: bytes, where: str, text_column: str | None, pair_column: str | None) -> Record:
    try:
        found: Any = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            "expected a JSON object in UTF-8, found something else ({error}); write one JSON "
            "object a line",
            place=where,
            error=error,
        ) from error
    if not isinstance(found, dict):
        raise InputError(
            'expected a JSON object, found {kind}; write one a line, as {{"text": "…"}}',
            place=where,
            kind=type(found).__name__,
        )
    row = with_inner_keys(found)

    keys = list(row)
    places = ColumnRequest(text=text_column, pair=pair_column).locate(keys, where)
    return Record(
        id=where,
        text=text_of_object(row, keys[places.text], where),
        pair=None if places.pair is None else text_of_object(row, keys[places.pair], where),
        cells={whole_characters(key): cell for key, cell in found.items()},
    )


def _lines_as_they_come(descriptor: int) -> Iterator[list[bytes]]:
    rest = b""
    while block := os.read(descriptor, _BLOCK_BYTES):
        while len(block) < _MOST_BYTES and select.select([descriptor], [], [], 0)[0]:
            more = os.read(descriptor, _BLOCK_BYTES)
            if not more:
                break
            block += more
        *lines, rest = (rest + block).split(b"\n")
        if lines:
            yield lines
        if len(rest) > _LONGEST_LINE_BYTES:
            raise InputError(
                "expected lines of at most {most} MiB, found a longer one; write one JSON object "
                "a line",
                place=STANDARD_INPUT,
                most=_LONGEST_LINE_BYTES >> 20,
            )
    if rest:
        yield [rest]
