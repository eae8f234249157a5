"""What a server takes, and how long it waits."""

from dataclasses import dataclass
from typing import Annotated

from malmoi.settings import Range

ABOVE_0 = Range(0, open="least")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds that keep one client from taking the memory or the time of the others."""

    max_body_mebibytes: Annotated[float, ABOVE_0] = 4.0
    """Most MiB of a request."""
    max_texts: Annotated[int, ABOVE_0] = 1000
    """Most texts of a request."""
    max_characters: Annotated[int, ABOVE_0] = 20_000
    """Most characters of a text."""
    max_waiting: Annotated[int, ABOVE_0] = 128
    """Most requests that wait; further ones are answered 503."""
    body_seconds: Annotated[float, ABOVE_0] = 10.0
    """Until a request must have come."""
    answer_seconds: Annotated[float, ABOVE_0] = 60.0
    """Until it must be answered."""
