"""What is masked of the written lines, and what is left alone."""

import csv
import re
from pathlib import Path

import pytest

from corpora.personal_data import KINDS, MASKS, find_personal_data, mask_personal_data

Spans = set[tuple[int, int, str]]


def lines_of(name: str) -> list[tuple[str, Spans]]:
    """Texts and the spans that should be masked."""
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(row["text"], _expected(row["text"], row["masked"])) for row in rows]


def _expected(text: str, masked: str) -> Spans:
    spans: Spans = set()
    for item in filter(None, masked.split(" | ")):
        kind, _, value = item.partition(":")
        start = text.index(value)
        spans.add((start, start + len(value), kind))
    return spans


def scores(name: str) -> dict[str, tuple[int, int, int]]:
    """Of each kind and of all: spans found rightly, found, expected."""
    counts = {kind: [0, 0, 0] for kind in (*KINDS, "all")}
    for text, expected in lines_of(name):
        found: Spans = set(find_personal_data(text))
        for place, spans in enumerate((found & expected, found, expected)):
            for _, _, kind in spans:
                counts[kind][place] += 1
                counts["all"][place] += 1
    return {kind: (right, found, wanted) for kind, (right, found, wanted) in counts.items()}


if __name__ == "__main__":
    for name in ("personal_data.tsv", "personal_data_held_out.tsv"):
        print(name, len(lines_of(name)))
        for kind, (right, found, wanted) in scores(name).items():
            print(f"  {kind:9} precision {right}/{found}  recall {right}/{wanted}")
        if name == "personal_data.tsv":
            for text, expected in lines_of(name):
                found = set(find_personal_data(text))
                if found != expected:
                    print("   ", text, found - expected, expected - found)
