"""Texts as both databases can hold them."""

import hashlib

from malmoi.errors import InputError
from malmoi.labels.label_names import normal_label
from malmoi.messages import Phrase
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.columns import whole_characters

_LONGEST_NAME, _LONGEST_REQUEST, _LONGEST_NOTE = 200, 128, 10_000


def storable(text: str) -> str:
    """The text as every database can hold it: without NUL and without half a character.

    PostgreSQL has no NUL, UTF-8 has no lone surrogate, and nobody means either of them.
    """
    return whole_characters(text.replace("\x00", ""))


def text_hash(text: str) -> str:
    """SHA-256 of the text once it is clean; as it is where nothing is left of it then."""
    text = storable(text)
    return sha256_of(clean_text(text) or text)


def sha256_of(text: str) -> str:
    """SHA-256 of a text as it is spelled; `text_hash` of one that is clean already."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def checked(text: str, what: str) -> str:
    """The same text.

    Args:
        what: it is, for the message.

    Raises:
        InputError: it has a NUL or half a character (a lone surrogate), which PostgreSQL or UTF-8
            cannot hold.
    """
    if "\x00" in text:
        raise InputError(
            "expected {what} without the character NUL, found one at position {position:,}; take "
            "it out",
            what=what,
            position=text.index(chr(0)) + 1,
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            "expected {what} of whole characters, found half of one (a lone surrogate) at position "
            "{position:,}; take it out",
            what=what,
            position=error.start + 1,
        ) from error
    return text


def checked_name(name: str, what: str, longest: int = _LONGEST_NAME) -> str:
    """The one spelling of a name.

    Args:
        what: has this name, for the message.
        longest: so many characters it may have.

    Raises:
        InputError: it is empty, too long or cannot be stored.
    """
    plain = normal_label(checked(name, Phrase("the name of {what}", what=what)))
    if not plain or len(plain) > longest:
        raise InputError(
            "expected a name of {what} of 1 to {longest} characters, found {count}",
            what=what,
            longest=longest,
            count=len(plain),
        )
    return plain


def checked_note(note: str) -> str:
    """The note of an annotator or a reviewer.

    Raises:
        InputError: it is too long or cannot be stored.
    """
    if len(checked(note, Phrase("a note"))) > _LONGEST_NOTE:
        raise InputError(
            "expected a note of at most {longest:,} characters, found {count:,}; shorten it",
            longest=_LONGEST_NOTE,
            count=len(note),
        )
    return note


def checked_request(request_id: str, longest: int = _LONGEST_REQUEST) -> str:
    """The id of a request.

    Raises:
        InputError: it is empty, too long or cannot be stored.
    """
    checked(request_id, Phrase("the id of a request"))
    if not 0 < len(request_id) <= longest:
        raise InputError(
            "expected the id of a request of 1 to {longest} characters, found {count}",
            longest=longest,
            count=len(request_id),
        )
    return request_id
