"""People's words where a widget would read them as Markdown, and scores, as plain text."""

import re

# All of ASCII's punctuation can be escaped (CommonMark 0.31, 2.4); a shortcode of an emoji and a
# bare address are found behind that, so a character that shows nothing parts them.
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_FOUND_LATER = re.compile(r"(?<=[:@.])(?=\S)|(?<=www)(?=\.)", re.IGNORECASE)
WORD_JOINER = "\u2060"


def escaped(words: str) -> str:
    """The words in one line, so that Markdown shows them as they are written."""
    parted = _FOUND_LATER.sub(WORD_JOINER, " ".join(words.split()))
    return _PUNCTUATION.sub(r"\\\1", parted)


def two_decimals(value: float | None) -> str:
    """A score, or what stands for one that there is not."""
    return "–" if value is None else f"{value:.2f}"


def shortened(words: str, most: int = 40) -> str:
    """The beginning of a text in one line."""
    line = " ".join(words.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def file_stem(name: str) -> str:
    """A name for a file on the visitor's machine: no system takes these characters."""
    return "".join("_" if char in '<>:"/\\|?*' else char for char in name).strip(". ") or "labels"
