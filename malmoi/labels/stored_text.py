"""Texts as both databases can hold them."""

from malmoi.errors import InputError

_LONGEST_REQUEST = 128
_LONGEST_NOTE = 10_000


def checked(text: str, what: str) -> str:
    """The same text.

    Args:
        text: what somebody gave.
        what: it is, for the message.

    Raises:
        InputError: it has a NUL or half a character (a lone surrogate), which PostgreSQL or UTF-8
            cannot hold.
    """
    if "\x00" in text:
        raise InputError(
            f"expected {what} without the character NUL, found one at position "
            f"{text.index(chr(0)) + 1:,}; take it out"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"expected {what} of whole characters, found half of one (a lone surrogate) at "
            f"position {error.start + 1:,}; take it out"
        ) from error
    return text


def checked_note(note: str) -> str:
    """The note of an annotator or a reviewer.

    Raises:
        InputError: it is too long or cannot be stored.
    """
    if len(checked(note, "a note")) > _LONGEST_NOTE:
        raise InputError(
            f"expected a note of at most {_LONGEST_NOTE:,} characters, found {len(note):,}; "
            "shorten it"
        )
    return note


def checked_request(request_id: str) -> str:
    """The id of a request.

    Raises:
        InputError: it is empty, too long or cannot be stored.
    """
    checked(request_id, "the id of a request")
    if not 0 < len(request_id) <= _LONGEST_REQUEST:
        raise InputError(
            f"expected the id of a request of 1 to {_LONGEST_REQUEST} characters, found "
            f"{len(request_id)}"
        )
    return request_id
