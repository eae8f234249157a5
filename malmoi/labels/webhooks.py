"""Addresses that are told what happens in a project: made, listed, taken back; what they are told.

An act is put down for them in the transaction that saves it, so that none is lost; a server sends
it (`malmoi.labels.webhook_delivery`). Imports are not told of, one by one.
"""

import base64
import ipaddress
import json
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from sqlalchemy import Connection, delete, func, insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.connection import in_parts
from malmoi.labels.tables import WebhookDeliveryRow, WebhookRow

Event = Literal["text.labelled", "text.decided", "model.learnt"]
EVENTS: tuple[Event, ...] = ("text.labelled", "text.decided", "model.learnt")
# Whoever runs the app or the server sets it `on`, and admins may name addresses of its network.
PRIVATE_VARIABLE = "MALMOI_PRIVATE_WEBHOOKS"
SECRET_PREFIX = "whsec_"
_SECRET_BYTES, _LONGEST_URL = 32, 2_000
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """An address as its project's admins see it, without its secret.

    Attributes:
        waiting: how many deliveries are to come.
        given_up: how many were tried for days, in vain.
        error: why the last try failed; None: it did not.
    """

    id: int
    url: str
    events: tuple[Event, ...]
    created_by: str
    created_at: datetime
    delivered_at: datetime | None
    error: str | None
    waiting: int
    given_up: int


class MadeWebhook(NamedTuple):
    """A new one, and the secret by which its deliveries are signed, as `whsec_` and Base64."""

    id: int
    secret: str


def make_webhook(
    access: ProjectAccess, url: str, events: Sequence[str] = EVENTS, *, may_be_private: bool = False
) -> MadeWebhook:
    """Tell an address of what happens from now on.

    Args:
        access: of an admin.
        url: http or https.
        events: of `EVENTS`.
        may_be_private: whether it may be an address that only this network reaches, whatever the
            environment says of that.

    Returns:
        The webhook; its secret is not shown again.

    Raises:
        InputError: the person is no admin, or the address or an event cannot be.
    """
    parts = _checked_url(url)
    if not events or set(events) - set(EVENTS):
        raise InputError(
            "expected events of {known}, found {events}",
            known=", ".join(EVENTS),
            events=", ".join(events),
        )
    with access.reading("admin"):  # who is none learns nothing about addresses
        pass
    may_be_private = may_be_private or os.environ.get(PRIVATE_VARIABLE, "").lower() == "on"
    if not may_be_private:
        refuse_private(parts)
    secret = base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
    with access.writing("admin") as connection:
        made = connection.execute(
            insert(WebhookRow)
            .values(
                project_id=access.project_id,
                url=url,
                events=json.dumps([one for one in EVENTS if one in events]),
                secret=secret,
                may_be_private=may_be_private,
                created_by=access.person.name,
                created_at=database_time(connection),
            )
            .returning(WebhookRow.id)
        ).scalar_one()
        access.note(connection, "make webhook", {"host": parts.hostname})
    return MadeWebhook(made, SECRET_PREFIX + secret)


def _checked_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port_of(parts)
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if (
        parts.scheme not in _PORTS
        or not parts.hostname
        or parts.username is not None
        or not (url.isascii() and url.isprintable() and " " not in url)
        or len(url) > _LONGEST_URL
    ):
        raise InputError(
            "expected a URL as https://example.com/labels, without a password in it and of at most "
            "{longest:,} characters, found {url!r}",
            longest=_LONGEST_URL,
            url=url[:200],
        )
    return parts


def port_of(parts: SplitResult) -> int:
    """The port of a URL, or that of its scheme."""
    return parts.port or _PORTS.get(parts.scheme, 0)


def refuse_private(parts: SplitResult) -> None:
    """Refuse a host that is not of the public internet: it may be one that trusts this server.

    Raises:
        InputError: one of its addresses is private, or it has none.
    """
    host = parts.hostname or ""
    try:
        found = socket.getaddrinfo(host, port_of(parts), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(
            "expected the name of a host, found {host}: {error}", host=host, error=error
        ) from error
    for *_, address in found:
        if not is_public(str(address[0])):
            raise InputError(
                "expected a host of the public internet, found {host}, which is {address}; whoever "
                "runs the server may name it by malmoi labels webhook, or set {variable}=on",
                host=host,
                address=address[0],
                variable=PRIVATE_VARIABLE,
            )


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet."""
    found = ipaddress.ip_address(address.partition("%")[0])
    plain = getattr(found, "ipv4_mapped", None) or found
    return plain.is_global and not plain.is_multicast


def list_webhooks(access: ProjectAccess) -> list[Webhook]:
    """The addresses of a project, newest first.

    Raises:
        AccessError: the person is no admin.
    """
    mine = WebhookRow.project_id == access.project_id
    row = WebhookDeliveryRow
    counts = select(row.webhook_id, func.count(row.due_at), func.count()).where(
        row.project_id == access.project_id
    )
    names = ("id", "url", "created_by", "created_at", "delivered_at", "error")
    with access.reading("admin") as connection:
        told = {
            one: (due, every - due)
            for one, due, every in connection.execute(counts.group_by(row.webhook_id))
        }
        query = select(WebhookRow.__table__).where(mine).order_by(WebhookRow.id.desc())
        return [
            Webhook(
                events=tuple(json.loads(one["events"])),
                waiting=told.get(one["id"], (0, 0))[0],
                given_up=told.get(one["id"], (0, 0))[1],
                **{name: one[name] for name in names},
            )
            for one in connection.execute(query).mappings()
        ]


def withdraw_webhook(access: ProjectAccess, webhook: int) -> None:
    """Tell an address no more; what it has not been told goes, with its secret.

    Raises:
        InputError: the person is no admin, or the project has no such webhook.
    """
    with access.writing("admin") as connection:
        url = _url_of(access, connection, webhook)
        connection.execute(
            delete(WebhookDeliveryRow).where(WebhookDeliveryRow.webhook_id == webhook)
        )
        connection.execute(delete(WebhookRow).where(WebhookRow.id == webhook))
        access.note(connection, "withdraw webhook", {"host": urlsplit(url).hostname})


def send_again(access: ProjectAccess, webhook: int) -> None:
    """Try at once all that an address has not been told, also what was given up.

    Raises:
        InputError: the person is no admin, or the project has no such webhook.
    """
    with access.writing("admin") as connection:
        _url_of(access, connection, webhook)
        now = database_time(connection)
        connection.execute(
            update(WebhookDeliveryRow)
            .where(WebhookDeliveryRow.webhook_id == webhook)
            .values(due_at=now, created_at=now)
        )


def _url_of(access: ProjectAccess, connection: Connection, webhook: int) -> str:
    mine = (WebhookRow.id == webhook, WebhookRow.project_id == access.project_id)
    url: str | None = connection.scalar(select(WebhookRow.url).where(*mine))
    if url is None:
        raise InputError("expected a webhook of this project, found {webhook}", webhook=webhook)
    return url


def announce(
    access: ProjectAccess, connection: Connection, event: Event, rows: Mapping[int, int | None]
) -> None:
    """Put down what the addresses of a project are to be told, in the transaction that saves it.

    Args:
        access: to the project.
        connection: of the transaction.
        event: what happened.
        rows: the text of each annotation or adjudication, by its id; None of a score version.
    """
    query = select(WebhookRow.id, WebhookRow.events)
    found = connection.execute(query.where(WebhookRow.project_id == access.project_id)).all()
    told = [webhook for webhook, events in found if event in json.loads(events)]
    if not told:
        return
    now = database_time(connection)
    shared = {"project_id": access.project_id, "event": event, "created_at": now, "due_at": now}
    made = [
        {"webhook_id": one, "row_id": row, "text_id": text, **shared}
        | {"message_id": f"msg_{secrets.token_hex(16)}"}
        for row, text in rows.items()
        for one in told
    ]
    for some in in_parts(made):
        connection.execute(insert(WebhookDeliveryRow), some)
