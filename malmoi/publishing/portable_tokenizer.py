"""A tokenizer.json that cleans by itself and that JavaScript reads like Rust does.

transformers.js takes every character table (`Precompiled`) for NFKC, which makes other letters of
the lone jamo of comments (ㅋㅋ, ㅠㅠ). Ours is written out as patterns here: what disappears, what
is a space, and rare syllables that fall apart into jamo.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tokenizers import Regex, Tokenizer, normalizers

from malmoi.inference.cleaning_normalizer import cleaning_rules

# A table with more of other kinds is sentencepiece's own NFKC, for which JavaScript's will do.
_MOST_OTHERS = 50
_SURROGATES = range(0xD800, 0xE000)


def portable_tokenizer(serialized: str) -> str:
    """A tokenizer.json with the rules of cleaning before its own, and no table of ours.

    Args:
        serialized: the JSON text of one that expects clean texts.
    """
    own = json.loads(serialized)["normalizer"]
    rules = [] if own is None else _flat(own)
    tokenizer = Tokenizer.from_str(serialized)
    portable: list[normalizers.Normalizer] = []
    for rule in rules:
        found = _of_json(rule)
        portable += (_written_out(found) or [found]) if rule["type"] == "Precompiled" else [found]
    tokenizer.normalizer = normalizers.Sequence([*cleaning_rules(), *portable])
    return str(tokenizer.to_str())


def _flat(rule: dict[str, Any]) -> list[dict[str, Any]]:
    if rule["type"] != "Sequence":
        return [rule]
    return [each for inner in rule["normalizers"] for each in _flat(inner)]


def _of_json(rule: dict[str, Any]) -> normalizers.Normalizer:
    """A rule by itself: a tokenizer with no other is the one thing that reads its JSON."""
    empty = {"type": "WordLevel", "vocab": {"": 0}, "unk_token": ""}
    found = Tokenizer.from_str(
        json.dumps({"version": "1.0", "added_tokens": [], "normalizer": rule, "model": empty})
    ).normalizer
    assert found is not None
    return found


def _written_out(table: normalizers.Normalizer) -> list[normalizers.Normalizer]:
    """The same as patterns; empty where it does too many other things."""
    changes = {}
    for code in range(1, sys.maxunicode + 1):
        character = chr(code)
        if code not in _SURROGATES and (became := table.normalize_str(character)) != character:
            changes[character] = became
    syllables = {
        c: became
        for c, became in changes.items()
        if "가" <= c <= "힣" and became == unicodedata.normalize("NFD", c)
    }
    others = {c: became for c, became in changes.items() if c not in syllables}
    single = {c: became for c, became in others.items() if became not in ("", " ")}
    if len(single) > _MOST_OTHERS:
        return []
    groups = {text: [c for c in others if others[c] == text] for text in ("", " ")}
    rules = [(Regex(_one_of(group)), text) for text, group in groups.items() if group]
    replaced = [normalizers.Replace(pattern, text) for pattern, text in rules]
    replaced += [normalizers.Replace(c, became) for c, became in single.items()]
    return replaced + _apart(syllables)


def _apart(syllables: dict[str, str]) -> list[normalizers.Normalizer]:
    """Syllables to two or three jamo each, one place after the other.

    The first jamo are put before the syllables, which stay to tell the others; the last ones, or
    nothing, take their place.
    """
    places: list[dict[str, list[str]]] = [defaultdict(list) for _ in range(3)]
    for syllable, jamo in syllables.items():
        for place, part in zip(places, (jamo[0], jamo[1], jamo[2:]), strict=True):
            place[part].append(syllable)
    first, middle, last = places
    before = [
        (f"(?={_one_of(group)})", jamo) for part in (first, middle) for jamo, group in part.items()
    ]
    instead = [(_one_of(group), jamo) for jamo, group in last.items()]
    return [normalizers.Replace(Regex(pattern), jamo) for pattern, jamo in before + instead]


def _one_of(characters: Iterable[str]) -> str:
    """A pattern of one of these characters."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in ranges) + "]"
