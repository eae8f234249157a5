"""Texts that are longer than a model reads, as windows that overlap.

The windows of a text are all as long as the model reads, lie evenly over the text from its first
token to its last, and share at least a quarter of their tokens with the next one. Each counts the
same: the logits of a text are the mean of its windows' logits.

Legend: N texts, R rows (windows; a text that is short enough is one), L most tokens of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Bounds the time and memory that one text takes; with 128 tokens a window, the beginning of about
# 6,000 tokens is read.
MOST_WINDOWS = 64
# One token in so many of a window, at least, stands in the next one too.
_SHARED = 4


@dataclass(frozen=True)
class Frame:
    """How a tokenizer makes a row of the tokens of a text.

    Attributes:
        before: special tokens in front of the text, such as [CLS].
        behind: special tokens behind it, such as [SEP].
        from_end: the tokenizer cuts texts at their beginning, so the window at the end is first.
    """

    before: int
    behind: int
    from_end: bool = False

    @classmethod
    def found(cls, whole: Sequence[int], text: Sequence[int], *, from_end: bool) -> Frame:
        """The frame of a tokenizer by what it gives for one text, with special tokens and without.

        Args:
            whole: ids with special tokens.
            text: ids without.
            from_end: see `Frame`.
        """
        before = next(
            (
                place
                for place in range(len(whole) - len(text) + 1)
                if list(whole[place : place + len(text)]) == list(text)
            ),
            0,
        )
        return cls(before, max(0, len(whole) - len(text) - before), from_end)


def window_starts(tokens: int, room: int) -> list[int]:
    """Where the windows of a text begin, in tokens; `MOST_WINDOWS` at most.

    Args:
        tokens: of the text, without special tokens.
        room: tokens of a text that fit into a window.

    Returns:
        Rising places from 0 on; the last window ends with the text, unless that has more windows.
    """
    if tokens <= room:
        return [0]
    step = room - room // _SHARED
    last = -(-(tokens - room) // step)
    return [number * (tokens - room) // last for number in range(min(last + 1, MOST_WINDOWS))]


@dataclass(frozen=True)
class WindowRows:
    """N texts as R rows.

    Attributes:
        flat: int32, the ids of all rows one after the other.
        counts: int64 [R], tokens of each.
        windows: int64 [N], rows of each text; None where each is one.
        was_cut: bool [N], texts that have more windows than are kept.
    """

    flat: np.ndarray
    counts: np.ndarray
    windows: np.ndarray | None
    was_cut: np.ndarray


def in_windows(flat: np.ndarray, counts: np.ndarray, max_length: int, frame: Frame) -> WindowRows:
    """Cut what is longer than a model reads into windows, each with its special tokens.

    Args:
        flat: int32, the ids of N whole texts one after the other, special tokens included.
        counts: int64 [N], tokens of each.
        max_length: L.
        frame: of the tokenizer.
    """
    was_cut = np.zeros(len(counts), dtype=bool)
    long = np.flatnonzero(counts > max_length)
    if not len(long):
        return WindowRows(flat, counts, None, was_cut)
    windows = np.ones(len(counts), dtype=np.int64)
    room = max(1, max_length - frame.before - frame.behind)
    ends = np.cumsum(counts)
    parts: list[np.ndarray] = []
    done = 0
    for place in long:
        end, count = int(ends[place]), int(counts[place])
        text = flat[end - count + frame.before : end - frame.behind]
        head = flat[end - count : end - count + frame.before]
        tail = flat[end - frame.behind : end]
        starts = window_starts(len(text), room)
        if frame.from_end:
            starts = [len(text) - room - start for start in starts]
        parts.append(flat[done : end - count])
        for start in starts:
            parts += [head, text[start : start + room], tail]
        windows[place] = len(starts)
        reached = min(starts) if frame.from_end else len(text) - room - max(starts)
        was_cut[place] = reached > 0
        done = end
    parts.append(flat[done:])
    kept = counts.copy()
    kept[long] = room + frame.before + frame.behind
    return WindowRows(np.concatenate(parts), np.repeat(kept, windows), windows, was_cut)
