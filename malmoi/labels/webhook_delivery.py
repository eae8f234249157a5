"""Deliveries to webhooks, signed as https://www.standardwebhooks.com says, until they are taken.

Every server of a database may run `deliver_until`: who delivers to an address has it alone. What
was sent when a server was killed may be sent again, with the same `webhook-id`.
"""

import base64
import hmac
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import timedelta
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, Engine, delete, select, update

from malmoi.errors import InputError
from malmoi.labels.access import (
    ProjectAccess,
    begin_writing,
    database_errors,
    database_time,
    reading_of_one_moment,
)
from malmoi.labels.exporting import first_sources
from malmoi.labels.label_book import LabelBook
from malmoi.labels.people import Person
from malmoi.labels.tables import (
    AdjudicationRow,
    AnnotationRow,
    ProjectRow,
    ScoreVersionRow,
    TextRow,
    WebhookDeliveryRow,
    WebhookRow,
)
from malmoi.labels.webhooks import is_public, port_of, refuse_private
from malmoi.version import version

logger = logging.getLogger(__name__)

GIVEN_UP_AFTER = timedelta(days=3)
# A delivery waits as long as it is old, so that the waits double.
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=2), timedelta(hours=1)
_POLL_SECONDS = 1.0
# That an address has to answer; that it has its turn; after which another server may go on.
_ANSWER_SECONDS, _TURN_SECONDS, _ALONE = 10, 20, timedelta(seconds=30)
# Of a text without a row of a file.
_NONE: tuple[str, str, dict[str, Any]] = ("", "", {})
_SERVER = Person(name="webhook", is_local=True)


def deliver_until(ended: threading.Event, engine: Callable[[], Engine | None]) -> None:
    """Deliver whatever is due, until `ended`.

    Args:
        ended: set by another thread.
        engine: of the database, asked for each time; None: there is none yet.
    """
    while not ended.wait(_POLL_SECONDS):
        try:
            if (found := engine()) is not None:
                deliver_due(found, ended)
        except InputError:
            # It is tried again; whoever labels hears what is wrong with the database.
            logger.debug("nothing delivered", exc_info=True)


def deliver_due(engine: Engine, ended: threading.Event) -> None:
    """Give each address with something due its turn.

    Raises:
        InputError: the database cannot be used.
    """
    row = WebhookDeliveryRow
    with reading_of_one_moment(engine) as connection:
        due = row.due_at <= database_time(connection)
        query = select(row.project_id, row.webhook_id).where(due).distinct()
        found = connection.execute(query).tuples().all()
    for project, webhook in found:
        if ended.is_set():
            return
        access = ProjectAccess(engine=engine, project_id=project, person=_SERVER)
        _Address(access, webhook).deliver(ended)


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`.

    Args:
        secret: Base64, without its prefix.
        message_id: the header `webhook-id`.
        timestamp: the header `webhook-timestamp`.
        body: as it is sent.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret), signed, sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


class _Failure:
    """Why a delivery was not taken, and whether others may be all the same."""

    def __init__(self, reason: str, *, of_this_alone: bool = False) -> None:
        self.reason, self.of_this_alone = reason, of_this_alone


# An address, a delivery to it and its body.
_Claimed = tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]


class _Address:
    """One that this server alone delivers to, one delivery at a time."""

    def __init__(self, access: ProjectAccess, webhook: int) -> None:
        self.access = access
        self.mine = WebhookRow.id == webhook
        row = WebhookDeliveryRow
        self.waits = (row.webhook_id == webhook, row.due_at.is_not(None))

    def deliver(self, ended: threading.Event) -> None:
        """Deliver in order, until all is told, one fails, another server does, or its time is
        over."""
        end = time.monotonic() + _TURN_SECONDS
        while not ended.is_set() and time.monotonic() < end:
            with self._writing() as connection:
                claimed = self._claimed(connection)
            if claimed is None:
                return
            address, delivery, told = claimed
            failure = None if told is None else _send(address, delivery["message_id"], told)
            with self._writing() as connection:
                self._write_down(connection, address, delivery, failure)
            if failure is not None and not failure.of_this_alone:
                return

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        engine = self.access.engine
        with database_errors(engine), engine.begin() as connection:
            begin_writing(connection, self.access.project_id)
            yield connection

    def _claimed(self, connection: Connection) -> _Claimed | None:
        """The address, the oldest delivery that is due, and its body; None: there is none to do."""
        row, now = WebhookDeliveryRow, database_time(connection)
        free = WebhookRow.busy_until.is_(None) | (WebhookRow.busy_until < now)
        claim = update(WebhookRow).where(self.mine, free).values(busy_until=now + _ALONE)
        due = select(row.__table__).where(*self.waits, row.due_at <= now).order_by(row.id).limit(1)
        delivery = connection.execute(due).mappings().one_or_none()
        if delivery is None or not connection.execute(claim).rowcount:
            return None
        address = connection.execute(select(WebhookRow.__table__).where(self.mine)).mappings().one()
        told = _told(self.access, connection, dict(delivery))
        return dict(address), dict(delivery), told

    def _write_down(
        self,
        connection: Connection,
        address: Mapping[str, Any],
        delivery: Mapping[str, Any],
        failure: _Failure | None,
    ) -> None:
        row, now = WebhookDeliveryRow, database_time(connection)
        this = row.id == delivery["id"]
        values: dict[str, Any] = {"delivered_at": now, "error": None}
        if failure is None:
            connection.execute(delete(row).where(this))
        else:
            values = {"error": failure.reason}
            # Who does not answer this one answers none of the others.
            which = (*self.waits, this if failure.of_this_alone else row.due_at <= now)
            old = row.created_at < now - GIVEN_UP_AFTER
            connection.execute(update(row).where(*which, old).values(due_at=None))
            wait = min(max(now - delivery["created_at"], _FIRST_WAIT), _LONGEST_WAIT)
            connection.execute(update(row).where(*which).values(due_at=now + wait))
        connection.execute(update(WebhookRow).where(self.mine).values(**values))
        still = (self.mine, WebhookRow.busy_until == address["busy_until"])
        connection.execute(update(WebhookRow).where(*still).values(busy_until=None))


def _send(address: Mapping[str, Any], message_id: str, told: Mapping[str, Any]) -> _Failure | None:
    """One try; None: it was taken. A redirection is not followed: its target is not checked."""
    body = json.dumps(told, ensure_ascii=False).encode()
    timestamp = int(time.time())
    parts = urlsplit(address["url"])
    headers = {
        "Host": parts.netloc,
        "Content-Type": "application/json",
        "User-Agent": f"malmoi/{version()}",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(address["secret"], message_id, timestamp, body),
    }
    host, port = parts.hostname or "", port_of(parts)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        if not address["may_be_private"]:
            refuse_private(parts)
        taken = socket.create_connection((host, port), _ANSWER_SECONDS)
        # Its name may have got another address since it was looked up.
        if not (address["may_be_private"] or is_public(taken.getpeername()[0])):
            taken.close()
            return _Failure("private address")
        if parts.scheme == "https":
            secure = ssl.create_default_context()
            taken = secure.wrap_socket(taken, server_hostname=host, do_handshake_on_connect=False)
        # Who sends a byte now and then would not be late otherwise.
        late = threading.Timer(_ANSWER_SECONDS, taken.shutdown, [socket.SHUT_RDWR])
        with closing(taken), closing(HTTPConnection(host, port)) as connection:
            connection.sock = taken
            late.start()
            try:
                if isinstance(taken, ssl.SSLSocket):
                    taken.do_handshake()
                connection.request("POST", path, body, headers)
                status = connection.getresponse().status
            finally:
                late.cancel()
    except (OSError, HTTPException, ValueError) as error:
        return _Failure(str(error) or type(error).__name__)
    if 200 <= status < 300:
        return None
    return _Failure(f"HTTP {status}", of_this_alone=status // 100 == 4 and status not in (408, 429))


def _told(
    access: ProjectAccess, connection: Connection, delivery: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The body of a delivery; None: what it is about was erased."""
    table = _TABLES[delivery["event"]].__table__
    found = connection.execute(select(table).where(table.c.id == delivery["row_id"]))
    if (row := found.mappings().one_or_none()) is None:
        return None
    named = select(ProjectRow.id, ProjectRow.name).where(ProjectRow.id == access.project_id)
    data: dict[str, Any] = {"project": dict(connection.execute(named).mappings().one())}
    names = ["model", "labels", "cross_validated_f1", "sample_f1", "sample_texts"]
    if delivery["text_id"] is not None:
        names = ["text_id", "note", "request_id"]
        choice = row["choice"]
        data |= {
            "text": connection.scalar(select(TextRow.text).where(TextRow.id == row["text_id"])),
            "kind": row.get("kind", "decision"),
            "labels": None if choice is None else LabelBook(access, connection).labels(choice),
            "person": row.get("annotator") or row["reviewer"],
            "columns": first_sources(connection, [row["text_id"]]).get(row["text_id"], _NONE)[2],
        }
    return {
        "type": delivery["event"],
        "timestamp": row["created_at"].isoformat(),
        "data": data | {name: row[name] for name in names},
    }


_TABLES: Mapping[str, Any] = {
    "text.labelled": AnnotationRow,
    "text.decided": AdjudicationRow,
    "model.learnt": ScoreVersionRow,
}
