"""People's words where a widget would read them as Markdown."""

import re

# Whatever means something in Streamlit's Markdown, directives and formulas included.
_SIGNS = re.compile(r"([\\`*_{}\[\]()#+\-.!|~:$<>&^=@])")
_SPACE = re.compile(r"\s+")


def escaped(words: str) -> str:
    """The words for a label of a widget, shown as they are, in one line."""
    return _SIGNS.sub(r"\\\1", _SPACE.sub(" ", words))


def shortened(words: str, most: int = 40) -> str:
    """The beginning of a text in one line."""
    line = _SPACE.sub(" ", words).strip()
    return line if len(line) <= most else f"{line[: most - 1]}…"
