"""The film reviews that nobody may learn from, as a list of hashes that shows none of them."""

import hashlib
from pathlib import Path

# Of the test files and of a further sample that is kept back: 64-bit numbers, big-endian, sorted.
LIST = Path(__file__).with_name("held_out.u64")
_NUMBER_BYTES = 8
# A shorter text ("재밌다") is written by many people and says nothing of who wrote it.
_MIN_CHARACTERS = 10


class HeldOutReviews:
    """Knows the reviews of the list by their id and by their text.

    A number of the list is the first 8 bytes of SHA-256 of `id:` and the id, or of `text:` and the
    text, its white space collapsed, where that has 10 characters or more.
    """

    def __init__(self, path: Path = LIST) -> None:
        """Read the list.

        Args:
            path: numbers of 8 bytes each, nothing between them.
        """
        numbers = path.read_bytes()
        places = range(0, len(numbers), _NUMBER_BYTES)
        self._numbers = frozenset(numbers[place : place + _NUMBER_BYTES] for place in places)

    def holds(self, review_id: str, text: str) -> bool:
        """Whether the list has this id, or this text of whatever id."""
        text = " ".join(text.split())
        if _number(f"id:{review_id}") in self._numbers:
            return True
        return len(text) >= _MIN_CHARACTERS and _number(f"text:{text}") in self._numbers


def _number(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:_NUMBER_BYTES]
