"""The names of labels, as people type them and as they are compared."""

from collections import Counter

from corpora.characters import to_nfc
from corpora.errors import InputError


def parse_labels(text: str) -> list[str]:
    """Label names from "a, b,c", in NFC, for a terminal on macOS may type them decomposed.

    Raises:
        InputError: fewer than two names, an empty one, or one twice.
    """
    labels = [normal_label(name) for name in text.split(",")]
    if "" in labels:
        raise InputError(f"expected names between the commas of --labels, found {text!r}")
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise InputError(f"--labels has {', '.join(twice)} more than once")
    if len(labels) < 2:
        raise InputError(f"expected at least two names in --labels, found {text!r}")
    return labels


def normal_label(name: str) -> str:
    return to_nfc(name).strip()
