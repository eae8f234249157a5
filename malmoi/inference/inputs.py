"""Texts as callers have them: lists, columns, arrays, streams; checked, and cleaned in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from malmoi.errors import InputError
from malmoi.text.cleaning.cleaner import clean_batch, clean_text
from malmoi.text.reading.columns import cell_text, whole_characters

Item = TypeVar("Item")
# Texts tokenised in one go, while those before are computed; bounds the memory of a stream.
TEXTS_IN_CHUNK = 4096
# Those of a stream at first, so that its first results come soon.
_FIRST_CHUNK = 64
# From here on cleaning all at once is faster than one by one.
_BATCH_TO_CLEAN = 64

Input = str | tuple[str, str]


def listed(texts: Iterable[str]) -> Sequence[str]:
    """The texts of a list, a column, an array or a stream, in their order.

    Raises:
        InputError: something that has no texts in an order of its own, or an item is no text.
    """
    if isinstance(texts, str | bytes):
        raise InputError("expected several texts, found one; for one text write predict([text])[0]")
    found: Any = texts
    if hasattr(found, "to_pylist") and not hasattr(found, "columns"):
        found = found.to_pylist()  # of Arrow, whose own items are no strings
    if not isinstance(found, list | tuple):
        # A table's elements are the names of its columns, a dictionary's its keys.
        in_order = hasattr(found, "__getitem__") or isinstance(found, Iterator)
        if isinstance(found, Mapping) or hasattr(found, "columns") or not in_order:
            raise InputError(
                "expected a list of texts, found {kind}; give list(...) of them, a stream to "
                "predict_iter, a table to predict_frame",
                kind=type(found).__name__,
            )
        found = list(found)
    check_texts(found)
    return found


def check_texts(texts: Sequence[str], first: int = 0) -> None:
    """Refuse what is no text; `first`: the place of the first one in what the user gave.

    Raises:
        InputError: an item is no text.
    """
    for place, text in enumerate(texts, first):
        if not isinstance(text, str):
            raise InputError(
                "expected a text (str) at place {where}, counted from 0, found {kind}; leave it "
                "out or write it as text",
                where=place,
                kind=type(text).__name__,
            )


def text_of_cell(value: Any) -> Any:
    """A cell of a table as a text: one that is missing (None, NaN, NA) is empty.

    A number among texts is what a workbook makes of one that has digits alone.
    """
    if value is None or type(value).__name__ == "NAType" or value != value:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return cell_text(value, "table") if is_number else value


def all_clean(texts: Sequence[str]) -> list[str]:
    """Texts as the model was trained on them, in the memory of some thousand."""
    clean: list[str] = []
    for chunk in chunks_of(texts):
        whole = list(map(whole_characters, chunk))
        at_once = len(whole) >= _BATCH_TO_CLEAN
        clean += clean_batch(whole).texts if at_once else map(clean_text, whole)
    return clean


def chunks_of(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Items by some thousand."""
    return [items[first : first + TEXTS_IN_CHUNK] for first in range(0, len(items), TEXTS_IN_CHUNK)]


def stream_chunks(stream: Iterable[Input]) -> Iterator[tuple[int, list[Input]]]:
    """Inputs of a stream, few and then by the thousand, with the place of the first."""
    chunk: list[Input] = []
    first, size = 0, min(_FIRST_CHUNK, TEXTS_IN_CHUNK)
    try:
        for item in stream:
            chunk.append(item)
            if len(chunk) == size:
                yield first, chunk
                first, chunk, size = first + size, [], min(2 * size, TEXTS_IN_CHUNK)
    except Exception:  # whatever the stream raises: what it gave before is predicted
        if chunk:
            yield first, chunk
        raise
    if chunk:
        yield first, chunk
