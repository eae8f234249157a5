"""What a server takes, and how long it waits."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds that keep one client from taking the memory or the time of the others.

    Attributes:
        body_bytes: most bytes of a request's body.
        texts: most texts of a request.
        characters: most characters of a text; a model reads far fewer and says `cut`.
        waiting: most requests that are computed or wait for it; more are answered 503.
        connections: most that are open at a time; more are answered 503.
        body_seconds: until a request's head, and then its body, must have come.
        answer_seconds: until a request must be answered.
    """

    body_bytes: int = 4 * 2**20
    texts: int = 1000
    characters: int = 20_000
    waiting: int = 128
    connections: int = 512
    body_seconds: float = 10.0
    answer_seconds: float = 60.0
