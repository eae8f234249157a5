"""One file over HTTP: resumed, retried, and never under its own name before it is whole."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import httpx2

from malmoi.errors import InputError

# What a server says of itself and not of the file: worth another try (RFC 9110, 15.5.9, 15.6;
# RFC 6585, 4).
_PASSING_STATUS = (408, 429, 500, 502, 503, 504)
_HTML_STARTS = (b"<!doctype html", b"<html")
_HTML = "an HTML page, as of an error or a login"


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """How long to wait for a server (assumptions).

    Attributes:
        tries: tries in a row that bring no new byte before giving up.
        first_wait_seconds: before the second try; doubled before each further one.
        connect_seconds: for a connection.
        read_seconds: for the next bytes.
        longest_wait_seconds: the most that a `Retry-After` of the server is granted.
    """

    tries: int = 5
    first_wait_seconds: float = 0.5
    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    longest_wait_seconds: float = 60.0


class _Cut(Exception):
    """The connection failed in a way that may pass.

    Attributes:
        wait_seconds: what the server asks to wait, None where it does not say.
    """

    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


class Download:
    """Fetches one URL into a part file.

    A part file that is already there is continued by a Range request; a server that ignores it
    (status 200) sends the file from the start again, and the part file starts again with it.
    """

    def __init__(
        self,
        url: str,
        part: Path,
        *,
        size: int | None,
        resume: bool,
        patience: Retries,
        advance: Callable[[int, int | None], None],
    ) -> None:
        """Prepare; nothing is read or written yet.

        Args:
            url: http or https.
            part: where the bytes go.
            size: of the whole file in bytes, None where it is not known.
            resume: whether to go on with bytes that are already there. Without a known hash
                nothing could tell a file spliced from two versions, so then it must be False.
            patience: how long to wait for the server.
            advance: called with the bytes that are there and the size of the whole file, if known.
        """
        self._url = url
        self._part = part
        self._size = size
        self._resume = resume
        self._patience = patience
        self._advance = advance

    def run(self, client: httpx2.Client) -> bool:
        """Fetch all of it.

        Returns:
            Whether a part of it is from before this call.

        Raises:
            InputError: the server has no such file, sends something else or does not answer; the
                part file stays where going on later makes sense.
        """
        if not self._resume or (self._size is not None and self._there() > self._size):
            self._part.unlink(missing_ok=True)
        before = furthest = self._there()
        failures = 0
        while self._size is None or self._there() < self._size:
            offset = self._there() if self._resume else 0
            try:
                resumed = self._request(client, offset)
                before = before if resumed else 0
                break
            except (_Cut, httpx2.RequestError) as error:
                failures = 1 if self._resume and self._there() > furthest else failures + 1
                furthest = max(furthest, self._there())
                reason = " ".join(str(error).split()) or type(error).__name__
                if failures >= self._patience.tries:
                    self._give_up(reason)
                asked = error.wait_seconds if isinstance(error, _Cut) else None
                wait = self._patience.first_wait_seconds * 2.0 ** (failures - 1)
                longest = self._patience.longest_wait_seconds
                time.sleep(min(wait if asked is None else asked, longest))
        return before > 0

    def _there(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _request(self, client: httpx2.Client, offset: int) -> bool:
        """One request to its end; whether the server went on at `offset`."""
        # Plain bytes: a range of a compressed answer would be a range of something else.
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        with client.stream("GET", self._url, headers=headers) as response:
            status = response.status_code
            if status in _PASSING_STATUS:
                raise _Cut(f"status {status}", _seconds(response.headers.get("Retry-After")))
            if status == 416 and offset:
                # Killed after the last byte of a file whose size nobody had announced.
                if response.headers.get("Content-Range") == f"bytes */{offset}":
                    return True
                self._part.unlink()
                raise InputError(
                    f"{self._url}: expected bytes from {offset:,} on, found a server that has no "
                    "more than that (status 416); the part file is deleted, run the command again"
                )
            if status not in (200, 206) or (status == 206 and not offset):
                self._refuse("the file", f"status {status} {response.reason_phrase}".rstrip())
            if response.headers.get("Content-Encoding", "identity") != "identity":
                self._refuse("plain bytes", f"{response.headers['Content-Encoding']} encoding")
            resumed = status == 206
            total = self._total(response, offset if resumed else 0)
            self._receive(response, append=resumed, total=total)
            if total is not None and self._there() < total:
                raise _Cut(f"the answer ended after {self._there():,} of {total:,} bytes")
        return resumed

    def _total(self, response: httpx2.Response, offset: int) -> int | None:
        """Bytes of the whole file as the server announces it, checked against what is expected."""
        if response.status_code == 206:
            found = response.headers.get("Content-Range", "")
            unit, _, rest = found.partition(" ")
            span, _, whole = rest.partition("/")
            if unit != "bytes" or not span.startswith(f"{offset}-") or not span[-1:].isdigit():
                self._refuse(f"Content-Range: bytes {offset}-…", repr(found), delete=True)
            announced = int(whole) if whole.isdigit() else None
        else:
            length = response.headers.get("Content-Length", "")
            announced = int(length) if length.isdigit() else None
        if response.headers.get("Content-Type", "").startswith("text/html"):
            self._refuse("the file", _HTML)
        if announced is not None and self._size is not None and announced != self._size:
            self._refuse(f"a file of {self._size:,} bytes", f"one of {announced:,}", delete=True)
        return self._size if self._size is not None else announced

    def _receive(self, response: httpx2.Response, *, append: bool, total: int | None) -> None:
        with self._part.open("ab" if append else "wb") as file:
            there = file.tell() if append else 0
            # As they come: chunks of a set size would lose the last one when the connection is cut.
            for chunk in response.iter_raw():
                if not there and chunk.lstrip()[:20].lower().startswith(_HTML_STARTS):
                    self._refuse("the file", _HTML, delete=True)
                file.write(chunk)
                file.flush()
                there += len(chunk)
                self._advance(there, total)
                if total is not None and there > total:
                    self._refuse(
                        f"a file of {total:,} bytes", f"more ({there:,} so far)", delete=True
                    )

    def _refuse(self, expected: str, found: str, *, delete: bool = False) -> NoReturn:
        if delete:
            self._part.unlink(missing_ok=True)
        raise InputError(
            f"{self._url}: expected {expected}, found {found}; try again later or take "
            "the file from a mirror with --from FOLDER"
        )

    def _give_up(self, reason: str) -> NoReturn:
        there = self._there()
        kept = there and self._resume
        raise InputError(
            f"{self._url}: expected an answer, found none after {self._patience.tries} tries "
            f"({reason}); check the network and run the command again"
            f"{f', it goes on at byte {there:,}' if kept else ''}, or use --from FOLDER"
        )


def _seconds(retry_after: str | None) -> float | None:
    # The other form, a date, is treated as no answer.
    return float(retry_after) if retry_after and retry_after.isdigit() else None
