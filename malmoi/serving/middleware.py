"""What stands before the application: token, size and time of a request, time of its answer.

An ASGI middleware (https://asgi.readthedocs.io/en/latest/specs/www.html). The application gets
whole bodies of a bounded size, so that no part of it waits for a slow client.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import time
import zlib
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from malmoi.serving.answers import as_json
from malmoi.serving.limits import Limits

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Mapping[bytes, bytes]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
# path, status, seconds
OnRequest = Callable[[str, int, float], None]

# How long and how much of a refused body is still read, so that the client reads the answer before
# it finds the connection closed.
_DRAIN_SECONDS, _DRAIN_BYTES = 2.0, 64 * 2**20
# As zlib calls the format: a window of any size, with the head and the checksum of gzip.
_GZIP = 31
# Seconds after which a client may try again.
RETRY_AFTER = {"Retry-After": "1"}


class RefusedError(Exception):
    """A request is not given to the application; it is answered by a status and a line."""

    def __init__(self, status: int, line: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(line)
        self.status, self.line, self.headers = status, line, headers or {}


class ClientDisconnected(Exception):
    """The client has closed the connection."""


class RequestLimits:
    """The application, which gets only requests with the token, of a bounded size, in time."""

    def __init__(
        self,
        application: Application,
        limits: Limits,
        *,
        token: str | None,
        open_paths: Collection[str],
        open_below: str,
        on_request: OnRequest,
    ) -> None:
        """Wrap an application.

        Args:
            token: that a client must give, as a bearer token or as the password of basic
                authentication, which is what Label Studio has; None: all may.
            open_paths: that need no token.
            open_below: nor does what begins so; it asks for the token of a person.
            on_request: called when a request has its answer.
        """
        self._application, self._limits, self._on_request = application, limits, on_request
        self._most_bytes = int(limits.max_body_mebibytes * 2**20)
        self._token = None if token is None else token.encode("utf-8")
        self._open_paths, self._open_below = frozenset(open_paths), open_below

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        # A slash at the end changes nothing. A redirect would name this server, which who asks a
        # proxy cannot reach.
        scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        began = time.perf_counter()
        status = 0

        async def watched_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        headers = dict(scope["headers"])
        try:
            _check_framing(headers)
            self._check_token(scope["path"], headers)
            body = self._unpacked(await self._body(headers, receive), headers)
            async with asyncio.timeout(self._limits.answer_seconds):
                await self._application(scope, _whole(body, receive), watched_send)
        except RefusedError as refused:
            await _refuse(refused, receive, watched_send)
        except ClientDisconnected:
            return
        except TimeoutError:
            if not status:  # else the connection is closed by the server, the answer being half out
                line = f"no answer within {self._limits.answer_seconds:g} seconds; try again later"
                await _refuse(RefusedError(503, line, RETRY_AFTER), receive, watched_send)
        finally:
            if status:
                self._on_request(scope["path"], status, time.perf_counter() - began)

    def _check_token(self, path: str, headers: Headers) -> None:
        is_open = path in self._open_paths or path.startswith(self._open_below)
        if self._token is None or is_open:
            return
        given = headers.get(b"authorization", b"")
        if not hmac.compare_digest(secret_in(given), self._token):
            line = "expected the token of this server, as in Authorization: Bearer TOKEN"
            raise RefusedError(401, line, {"WWW-Authenticate": "Bearer"})

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._most_bytes:
            raise _too_large(self._most_bytes)
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > self._most_bytes:
                        raise _too_large(self._most_bytes)
        except TimeoutError as error:
            raise RefusedError(
                408,
                f"expected the whole body within {self._limits.body_seconds:g} seconds, found "
                f"{len(body):,} bytes; send it at once",
            ) from error
        return bytes(body)

    def _unpacked(self, body: bytes, headers: Headers) -> bytes:
        encoding = headers.get(b"content-encoding", b"").decode("latin-1").strip().lower()
        if not body or encoding in ("", "identity"):
            return body
        if encoding not in ("gzip", "x-gzip"):
            line = f"expected Content-Encoding: gzip or none, found {encoding[:40]}; leave it out"
            raise RefusedError(415, line, {"Accept-Encoding": "gzip"})
        packed = zlib.decompressobj(_GZIP)
        try:
            found = packed.decompress(body, self._most_bytes + 1)
        except zlib.error:
            found = b""
        if len(found) > self._most_bytes:
            raise _too_large(self._most_bytes)
        if not packed.eof or packed.unused_data:
            line = "expected a body packed by gzip, found another or a part of one; send it whole"
            raise RefusedError(400, line)
        return found


def _too_large(limit: int) -> RefusedError:
    line = f"expected a body of at most {limit:,} bytes, found a longer one; send fewer texts"
    return RefusedError(413, line)


def _check_framing(headers: Headers) -> None:
    """Refuse what a proxy in front may take for two requests, one of them hidden (smuggling)."""
    if b"content-length" in headers and b"transfer-encoding" in headers:
        line = "expected Content-Length or Transfer-Encoding, found both; send one of them"
        raise RefusedError(400, line)


def secret_in(authorization: bytes) -> bytes:
    """The token in a header, or the password of `Basic`; empty where there is none."""
    kind, _, value = authorization.partition(b" ")
    if kind.lower() == b"bearer":
        return value.strip()
    if kind.lower() == b"basic":
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
    return b""


def _whole(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body first."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _refuse(refused: RefusedError, receive: Receive, send: Send) -> None:
    """Answer, then read on for a while, then close."""
    body = as_json({"error": refused.line})
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **refused.headers,
    }
    await send(
        {
            "type": "http.response.start",
            "status": refused.status,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            rest = 0
            while rest < _DRAIN_BYTES:
                message = await receive()
                rest += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    break
    await send({"type": "http.response.body", "body": b""})
