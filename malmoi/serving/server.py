"""The server process: its address, its signals, its end."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import math
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from malmoi.errors import InputError
from malmoi.serving.limits import Limits
from malmoi.serving.middleware import RequestLimits

_PORTS = range(0, 65_536)
# That are open at a time; more are answered 503.
_CONNECTIONS = 512
# Seconds for which a client may keep its connection without a request.
_IDLE_SECONDS = 65


def listen(host: str, port: int) -> socket.socket:
    """Take the address, so that a port in use is known before anything long is loaded.

    Who connects meanwhile waits.

    Raises:
        InputError: it cannot be had.
    """
    if port not in _PORTS:
        raise InputError(
            "expected --port from 0 (any that is free) to 65535, found {port}", port=port
        )
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise InputError(
            "expected --host to be an address of this machine, found {host}", host=host
        ) from (error)
    family, kind, protocol, _, address = found[0]
    taken = socket.socket(family, kind, protocol)
    try:
        # Else the port would stay taken for a minute after the end of an earlier server.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(socket.SOMAXCONN)
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            line = f"port {port} of {host} is in use; end what listens, or give another --port"
        elif error.errno == errno.EACCES:
            line = f"not allowed to listen on port {port}; give a --port from 1024"
        else:
            line = f"cannot listen on {host} port {port}: {error.strerror}; give another --host"
        raise InputError(line) from error
    return taken


def url_of(taken: socket.socket) -> str:
    """How to reach it: `http://127.0.0.1:8000`."""
    host, port = taken.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def only_here(taken: socket.socket) -> bool:
    """Whether no other machine can reach it."""
    return ipaddress.ip_address(taken.getsockname()[0].partition("%")[0]).is_loopback


def run_server(
    application: RequestLimits,
    taken: socket.socket,
    limits: Limits,
    *,
    ready: Callable[[], None],
    read_anew: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """Serve until SIGTERM or Ctrl-C, then answer what has come, and return.

    `ready` is called when requests are answered, `read_anew` at SIGHUP.
    """
    config = uvicorn.Config(
        application,
        http=_protocol(limits.body_seconds),
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(limits.body_seconds + limits.answer_seconds),
    )
    asyncio.run(_Server(config, ready, read_anew).serve([taken]))


class _Server(uvicorn.Server):
    """Ends without an error when it is told to end."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], None],
        read_anew: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        super().__init__(config)
        self._ready, self._read_anew = ready, read_anew
        self._reading: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if hasattr(signal, "SIGHUP"):  # not on Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)
        self._ready()

    def _hang_up(self) -> None:
        try:
            print("SIGHUP: the models are read anew", file=sys.stderr, flush=True)
        except OSError:  # its terminal was closed
            self.should_exit = True
        else:
            self._reading = asyncio.create_task(self._read_anew())

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again at the end. Who ends a server has not failed.
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _protocol(head_seconds: float) -> type[H11Protocol]:
    """uvicorn's protocol, which waits for the head of a request without an end, with one."""

    class PromptHead(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._idle():
                self._wait()
            else:
                self._stop_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(head_seconds, self._give_up)

        def _stop_waiting(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            self._timer = None
            if self._idle():
                self.transport.close()

    return PromptHead
