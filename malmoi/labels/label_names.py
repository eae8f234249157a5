"""The names of labels, as people type them and as they are compared."""

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from decimal import Decimal

from malmoi.errors import InputError
from malmoi.text.characters import visible_in_nfc

# What a table program makes of the whole number 1 in a column that has gaps.
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)\.0+")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_DECIMAL = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?")
# What pandas, R, SQL and its exports, JSON and spreadsheets write where there is nothing. In this
# case only: "none" is a label of people.
_NOTHING = frozenset(
    ("nan", "NaN", "NAN", "None", "NULL", "Null", "null", "NA", "<NA>", "N/A", "n/a", "#N/A")
    + ("#NA", "\\N", "(null)", "NaT", "nil")
)
# What may stand between the labels of a cell; doccano writes "#".
SEPARATORS = (",", "#", ";", "|", "/", "+", "·", "、", "，")
# Of these, what the name of a label rather holds: 교환/환불, 맛·양.
_IN_NAMES = ("/", "+", "·")
_BETWEEN = re.compile(f"([{re.escape(''.join(SEPARATORS))}])")
# So many names and separators between them may be one label's name (assumption).
_LONGEST_NAME = 9
# The dashes and the minus sign; a sign that picks between two pictures of one character.
_LOOKS_LIKE = {ord(dash): "-" for dash in "‐‑‒–—−"} | {0xFE0F: None}
# How like a known label a misspelt one must be to be suggested, by their letters (jamo).
_ALIKE = 0.6
# Comparing takes the square of the length; a longer name is no label (assumption).
_LONGEST_COMPARED = 200


def parse_labels(text: str) -> list[str]:
    """Label names from "a, b,c", as `normal_label` spells them.

    Raises:
        InputError: fewer than two names, an empty one, or one twice.
    """
    labels = [normal_label(name) for name in text.split(",")]
    if "" in labels:
        raise InputError("expected names between the commas of --labels, found {text!r}", text=text)
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise InputError("--labels has {twice} more than once", twice=", ".join(twice))
    if len(labels) < 2:
        raise InputError("expected at least two names in --labels, found {text!r}", text=text)
    return labels


def normal_label(name: str) -> str:
    """The one spelling of names that look the same.

    In NFC, without space around it and without characters that show nothing; `1.0` is `1`.
    """
    name = visible_in_nfc(name).strip()
    whole = _WHOLE_NUMBER.fullmatch(name)
    return whole[1] if whole else name


def says_nothing(cell: str) -> bool:
    """Whether a cell is what programs write for a missing value, and hardly a label's name."""
    return normal_label(cell) in _NOTHING


def in_order(labels: Iterable[str]) -> list[str]:
    """Sorted; numbers by their value, before all others."""

    def key(label: str) -> tuple[bool, Decimal, str]:
        number = _DECIMAL.fullmatch(label) is not None
        return not number, Decimal(label) if number else Decimal(0), label

    return sorted(labels, key=key)


def nearly_equal(labels: Iterable[str]) -> list[list[str]]:
    """Groups of labels that differ in case, width, dashes, inner space or leading zeros only."""
    alike: dict[str, list[str]] = {}
    for label in labels:
        plain = "".join(unicodedata.normalize("NFKC", label).casefold().split())
        plain = plain.translate(_LOOKS_LIKE)
        if _INTEGER.fullmatch(plain):
            plain = str(int(plain))
        alike.setdefault(plain, []).append(label)
    return [names for names in alike.values() if len(names) > 1]


def labels_between(cell: str, names: Collection[str]) -> list[str] | None:
    """The labels that stand in a cell with separators of any kind between them.

    Args:
        cell: of a text that may have several.
        names: of the labels, which may hold separators themselves.

    Returns:
        Some of these names; None where anything else stands in the cell.
    """
    rest, found = _BETWEEN.split(cell), []
    while rest:
        ends = range(min(len(rest), _LONGEST_NAME), 0, -2)
        parts = {end: normal_label("".join(rest[:end])) for end in ends}
        end = next((end for end, part in parts.items() if part in names), None)
        if end is None:
            return None
        found.append(parts[end])
        rest = rest[end + 1 :]
    return found


def separator_between(names: Set[str], known: Set[str]) -> str | None:
    """What stands between labels in some of these names, as nothing else can be meant.

    Every part of them is a label by itself.

    Args:
        names: that may be several labels.
        known: labels.
    """
    for mark in SEPARATORS:
        cut = [[normal_label(part) for part in name.split(mark)] for name in names]
        parts = {part for some in cut if len(some) > 1 for part in some}
        if mark not in _IN_NAMES and parts and parts <= known:
            return mark
    return None


def joined_by(cells: Sequence[str], separators: Iterable[str], *, alone: bool) -> str | None:
    """The separator that seems to stand between labels in these cells; None where none does.

    It does where every part of a cell that it cuts is met in another cell too.

    Args:
        cells: different ones.
        separators: tried in this order.
        alone: every part has to be a cell of its own.
    """
    whole = {cell.strip() for cell in cells}
    for separator in separators:
        parts = [[part.strip() for part in cell.split(separator)] for cell in cells]
        met = Counter(part for some in parts for part in set(some))
        cut = [part for some in parts if len(some) > 1 for part in some]
        if cut and all(part and (part in whole if alone else met[part] > 1) for part in cut):
            return separator
    return None


def nearest_label(name: str, labels: Sequence[str]) -> str | None:
    """The label that a misspelt one was meant to be, if one is near; compared by letters.

    Hangul is compared by its jamo: 일긔 and 일기 differ in one of four letters, not of two. One
    that goes on like a label, or stops short of it, is that: 기타문의 is 기타 rather than 교환문의.
    A number is nobody's misspelling.
    """
    if name.replace(".", "", 1).isdecimal():
        return None
    if same := [one for one in labels if one and (name.startswith(one) or one.startswith(name))]:
        return max(same, key=len)

    def jamo(label: str) -> str:
        return unicodedata.normalize("NFD", label[:_LONGEST_COMPARED].casefold())

    letters = {jamo(label): label for label in labels}
    near = difflib.get_close_matches(jamo(name), list(letters), n=1, cutoff=_ALIKE)
    return letters[near[0]] if near else None
