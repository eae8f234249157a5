"""JSON as rows: an object a line, or an array of objects, streamed."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, TextIO

from malmoi.errors import InputError
from malmoi.messages import Phrase
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.columns import (
    SAMPLE_ROWS,
    has_text_column,
    shown_columns,
)
from malmoi.text.reading.decoding import LONGEST_LINE_BYTES, TextFile
from malmoi.text.reading.nested import through_lists, with_inner_keys
from malmoi.text.reading.notes import BLANK_LINES, SourceNotes
from malmoi.text.reading.sources import Source
from malmoi.text.reading.table import JsonRow, Table

_CHUNK_CHARACTERS = 1 << 20
_BLANK = " \t\r\n\ufeff"


def json_table(
    text: TextFile, source: Source, notes: SourceNotes, bad: BadRows, path: str | None
) -> Table:
    """Objects as rows; nested keys are joined by dots.

    Args:
        text: the file, open.
        notes: gets its form.
        bad: gets what is no object.
        path: keys to the text, joined by dots; a row is made of each item of a list on the way.

    Raises:
        InputError: there is none, or, here or while reading, it is no JSON from here on.
    """
    notes.form = "json"
    rows = _objects(text.lines(), source, notes, bad, path)
    first = list(islice(rows, SAMPLE_ROWS))
    if not first and not bad.count:
        raise EmptySourceError("expected JSON objects, found none; add texts", place=source.shown)
    keys = list(dict.fromkeys(key for _, row in first for key in row))
    sample = [[row.get(key) for key in keys] for _, row in first]
    return Table(columns=keys, sample=sample, objects=chain(first, rows))


def _objects(
    text: TextIO, source: Source, notes: SourceNotes, bad: BadRows, path: str | None
) -> Iterator[JsonRow]:
    head = ""
    while not head.strip(_BLANK):
        chunk = text.read(_CHUNK_CHARACTERS)
        if not chunk:
            raise EmptySourceError(
                "expected texts, found only blank lines; add texts", place=source.shown
            )
        head += chunk
    if head.lstrip(_BLANK).startswith("["):
        rows: Iterator[tuple[int, Any]] = _array(head, text, source)
    elif source.format == ".json" and not _is_lines(head):
        rows = _one_object(head, text, source, notes, path)
    else:
        rows = _lines(head, text, source, notes, bad)
    for number, row in rows:
        if isinstance(row, dict):
            for inner in (row,) if path is None else through_lists(row, path):
                yield number, with_inner_keys(inner)
        else:
            bad.add(
                InputError(
                    "expected a JSON object, found {kind}; write one JSON object a line, or an "
                    "array of them",
                    place=f"{source.shown}:{number}",
                    kind=type(row).__name__,
                )
            )


def refuse_unaccepted(row: Mapping[str, Any], where: str = "") -> None:
    """Refuse a row of Prodigy, which writes the label that it asked about whatever was answered.

    Raises:
        InputError: it was not accepted.
    """
    if row.get("answer") in ("reject", "ignore") and "_task_hash" in row:
        raise InputError(
            "expected a label that was accepted, found Prodigy's answer {answer!r}; take such rows "
            "out",
            place=where,
            answer=row["answer"],
        )


def _is_lines(head: str) -> bool:
    """Whether the first line is an object by itself, and not the whole file."""
    first, _, rest = head.lstrip(_BLANK).partition("\n")
    if not rest.strip(_BLANK):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _lines(
    head: str, text: TextIO, source: Source, notes: SourceNotes, bad: BadRows
) -> Iterator[tuple[int, Any]]:
    number, rest = 0, head
    while True:
        *whole, rest = rest.split("\n")
        for line in whole:
            number += 1
            if line.strip(_BLANK):
                yield from _line(line, number, source, bad)
            else:
                notes.counts[BLANK_LINES] += 1
        chunk = text.read(_CHUNK_CHARACTERS)
        if not chunk:
            break
        rest += chunk
    if rest.strip(_BLANK):
        yield from _line(rest, number + 1, source, bad)


def _line(line: str, number: int, source: Source, bad: BadRows) -> Iterator[tuple[int, Any]]:
    try:
        yield number, json.loads(line.strip(_BLANK))
    except (ValueError, RecursionError) as error:
        bad.add(
            InputError(
                "expected a JSON object, found broken JSON ({error}); write one JSON object a line",
                place=f"{source.shown}:{number}",
                error=error,
            )
        )


def _array(head: str, text: TextIO, source: Source) -> Iterator[tuple[int, Any]]:
    """The items of an array, decoded one by one as the file is read."""
    decode = json.JSONDecoder().raw_decode
    place, number = head.index("[") + 1, head.count("\n", 0, head.index("[")) + 1
    buffer, ended = head, False
    while True:
        start = place
        while place < len(buffer) and buffer[place] in _BLANK + ",":
            place += 1
        number += buffer.count("\n", start, place)
        if place < len(buffer) and buffer[place] == "]":
            rest = buffer[place + 1 :]
            while not rest.strip(_BLANK) and (chunk := text.read(_CHUNK_CHARACTERS)):
                rest += chunk
            number += rest.count("\n", 0, len(rest) - len(rest.lstrip(_BLANK)))
            rest = rest.lstrip(_BLANK)
            if not rest:
                return
            if not rest.startswith("["):
                raise InputError(
                    "expected the end of the file behind the array, found {found!r}; write all "
                    "objects into one array",
                    place=f"{source.shown}:{number}",
                    found=rest[:20],
                )
            buffer, place = rest, 1
            continue
        try:
            if place >= len(buffer):
                raise ValueError("the array does not end")
            item, end = decode(buffer, place)
            # A number may go on in the next chunk; what else is whole is whole.
            whole = isinstance(item, dict | list | str) or end < len(buffer)
        except (ValueError, RecursionError) as error:
            if ended or isinstance(error, RecursionError):
                raise InputError(
                    "expected an array of JSON objects, found broken JSON ({error}); repair it "
                    "from that line on",
                    place=f"{source.shown}:{number}",
                    error=error,
                ) from error
            whole = False
        if whole:
            yield number, item
            number += buffer.count("\n", place, end)
            place = end
            continue
        if len(buffer) - place > LONGEST_LINE_BYTES:
            raise InputError(
                "expected JSON objects of at most {most} MiB, found a longer one; is it an array "
                "of objects?",
                place=f"{source.shown}:{number}",
                most=LONGEST_LINE_BYTES >> 20,
            )
        # At least as much again: a long object is not decoded from its start for every chunk.
        chunk = text.read(max(_CHUNK_CHARACTERS, len(buffer) - place))
        ended = not chunk
        buffer, place = buffer[place:] + chunk, 0


def _refuse_columns(found: dict[str, Any], source: Source) -> None:
    """Refuse a table that is written by columns, or by the numbers of its rows."""

    def is_column(value: object) -> bool:
        if isinstance(value, dict):
            return bool(value) and all(key.isdigit() for key in value)
        return isinstance(value, list) and bool(value) and isinstance(value[0], str)

    by_number = is_column(found) and all(isinstance(value, dict) for value in found.values())
    if by_number or any(has_text_column([k], None) and is_column(v) for k, v in found.items()):
        raise InputError(
            "expected an array of JSON objects, found one object of {shape} ({columns}); write an "
            "object for each row (in pandas: to_json(orient='records'))",
            place=source.shown,
            shape=Phrase("rows by their numbers") if by_number else Phrase("whole columns"),
            columns=shown_columns(list(found)),
        )


def _one_object(
    head: str, text: TextIO, source: Source, notes: SourceNotes, path: str | None
) -> Iterator[tuple[int, Any]]:
    """The items of the one array that an object holds, or the object if it has a text itself, or
    the path to it begins there."""
    whole = head + text.read(LONGEST_LINE_BYTES)
    if len(whole) > LONGEST_LINE_BYTES:
        raise InputError(
            "expected an array of JSON objects, found one object of more than {most} MiB; write "
            "its items as an array or one a line",
            place=source.shown,
            most=LONGEST_LINE_BYTES >> 20,
        )
    try:
        found = json.loads(whole.strip(_BLANK))
    except (ValueError, RecursionError) as error:
        raise InputError(
            "expected an array of JSON objects or one object a line, found broken JSON ({error}); "
            "repair it",
            place=source.shown,
            error=error,
        ) from error
    if isinstance(found, dict):
        _refuse_columns(found, source)
    lists = {
        key: value
        for key, value in (found.items() if isinstance(found, dict) else ())
        if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    is_whole = isinstance(found, dict) and any(
        key == (path or "").partition(".")[0]
        or (isinstance(value, str) and has_text_column([key], None))
        for key, value in found.items()
    )
    # A document with something about it; or a path has to say which of several lists is meant.
    if is_whole or len(lists) > 1:
        lists = {}
    if lists:
        notes.part = next(iter(lists))
    # Lines are not known inside; items are counted.
    yield from enumerate(next(iter(lists.values()), [found]), 1)
