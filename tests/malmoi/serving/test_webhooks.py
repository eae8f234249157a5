"""Webhooks: what is saved is told, signed, until it is taken, whichever servers run meanwhile."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.erasing import Wanted, erase, find
from malmoi.labels.found_texts import add_texts
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore
from malmoi.labels.relabelling import relabel
from malmoi.labels.scores import ModelQuality, TextScore, write_scores
from malmoi.labels.stored_text import text_hash
from malmoi.labels.tables import WebhookDeliveryRow, WebhookRow
from malmoi.labels.webhook_delivery import GIVEN_UP_AFTER, deliver_due, signature
from malmoi.labels.webhooks import (
    PRIVATE_VARIABLE,
    is_public,
    list_webhooks,
    make_webhook,
    send_again,
)
from tests.malmoi.serving.conftest import ADMIN, Labels, run_labels, serving


class Receiver(ThreadingHTTPServer):
    """Takes what it is sent, but first answers the statuses that it is told to."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.got: list[tuple[dict[str, str], bytes, int]] = []
        self.at_work: set[str] = set()
        self.clashes: list[str] = []
        super().__init__(("127.0.0.1", 0), _Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?of=malmoi"

    @property
    def taken(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body, status in self.got if status == 204]

    def wait(self, count: int) -> list[dict[str, Any]]:
        end = time.monotonic() + 60
        while len(self.taken) < count and time.monotonic() < end:
            time.sleep(0.05)
        assert len(self.taken) == count, self.got
        return self.taken


class _Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        assert self.path == "/hook?of=malmoi"
        body = self.rfile.read(int(self.headers["content-length"]))
        name = self.headers["webhook-id"]
        if name in self.server.at_work:
            self.server.clashes.append(name)
        self.server.at_work.add(name)
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        headers = {key.lower(): value for key, value in self.headers.items()}
        self.server.got.append((headers, body, status))
        self.server.at_work.discard(name)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def access(any_url: str) -> ProjectAccess:
    named = [ProjectLabel(name=name) for name in ("긍정", "부정")]
    return ProjectStore(any_url).create(ADMIN, NewProject(name="reviews", labels=named))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        yield server
        server.shutdown()


def act(text_id: int, request: str, label: str = "긍정") -> Act:
    return Act(text_id=text_id, kind="label", labels=(label,), request_id=request)


def test_what_is_saved_is_told_though_servers_are_killed(
    labels: Labels, receiver: Receiver, home: Path, tmp_path: Path
) -> None:
    store = ProjectStore(labels.database)
    access = store.access(ADMIN, "reviews")
    common = ("webhook", f"--database={labels.database}", "--url", receiver.url)
    secret = run_labels(home, *common)
    bearer = {"Authorization": f"Bearer {labels.tokens['하윤']}"}
    # The rows of files are no acts of today.
    table = tmp_path / "old.csv"
    table.write_text("text,label\n예전 글,긍정\n", encoding="utf-8")
    run_labels(home, "import", table, common[1], "--label-column=label")

    receiver.statuses = [500, 503]
    with serving("--labels", labels.database, home=home) as server:
        words = ["배송이 빨라요", *(f"글 {number}" for number in range(30))]
        new = {"texts": [{"text": words[0], "columns": {"번호": 7}}, *words[1:]]}
        first, *others = server.ask("/v1/projects/1/texts", new, **bearer).json["text_ids"]
        said = {"text_id": first, "labels": ["긍정"], "request_id": "one"}
        assert server.ask("/v1/projects/1/labels", {"acts": [said]}, **bearer).status == 200
        while receiver.statuses:
            time.sleep(0.02)
        time.sleep(1)  # else nobody else delivers for half a minute
        server.process.kill()
    # Nobody delivers now, as where only the app was at work and has ended.
    save_acts(access, [act(text_id, f"more-{text_id}", "부정") for text_id in others])
    decision = {"text_id": first, "labels": ["부정"], "request_id": "d", "note": "느려요"}
    with ExitStack() as servers:
        one, _ = (
            servers.enter_context(serving("--labels", labels.database, home=home)) for _ in "12"
        )
        assert one.ask("/v1/projects/1/decisions", decision, **bearer).status == 200
        told = receiver.wait(32)
    assert receiver.clashes == []

    first_tries = [headers for headers, body, _ in receiver.got if json.loads(body) == told[0]]
    assert len(first_tries) == 3 and len({one["webhook-id"] for one in first_tries}) == 1
    assert len({headers["webhook-id"] for headers, _, _ in receiver.got}) == 32
    for headers, body, _ in receiver.got:
        assert headers["webhook-signature"] == signature(
            secret.removeprefix("whsec_"),
            headers["webhook-id"],
            int(headers["webhook-timestamp"]),
            body,
        )
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 120
    assert {one["data"]["text"] for one in told} == set(words)
    assert told[0]["type"] == "text.labelled" and told[0]["data"] == {
        "project": {"id": 1, "name": "reviews"},
        "text_id": first,
        "text": "배송이 빨라요",
        "kind": "label",
        "labels": ["긍정"],
        "person": "하윤",
        "note": None,
        "request_id": "one",
        "columns": {"번호": 7},
    }
    (decided,) = [one["data"] for one in told if one["type"] == "text.decided"]
    assert (decided["labels"], decided["person"], decided["note"]) == (["부정"], "하윤", "느려요")
    (webhook,) = list_webhooks(access)
    assert (webhook.waiting, webhook.given_up, webhook.error) == (0, 0, None)
    assert webhook.delivered_at is not None
    assert f"{receiver.url}: text.labelled" in run_labels(home, *common[:2])
    run_labels(home, *common, "--withdraw")
    assert list_webhooks(access) == []


def test_what_is_never_taken_is_given_up_and_what_is_erased_is_not_told(
    access: ProjectAccess, receiver: Receiver
) -> None:
    ids = add_texts(access, ["가나다", "라마바", "사아자"], "here")
    events = ["text.decided", "model.learnt"]
    make_webhook(access, receiver.url, events, may_be_private=True)
    (made,) = list_webhooks(access)

    def state() -> tuple[int, int, str | None]:
        deliver_due(access.engine, threading.Event())
        (now,) = list_webhooks(access)
        return now.waiting, now.given_up, now.error

    save_acts(access, [act(ids[0], "of another kind")])
    relabel(access, ids, ["긍정"], request_id="all", expected=3)
    receiver.statuses = [400]  # one that is refused holds up no other
    assert state() == (1, 0, None)
    assert [one["data"]["text_id"] for one in receiver.taken] == ids[1:]
    wanted = Wanted(texts=frozenset({text_hash("가나다")}))
    erase(find([access], wanted), wanted)
    assert state() == (0, 0, None)

    # Two servers at once tell each act once.
    relabel(access, ids[1:], ["부정"], request_id="again", expected=2)
    both = [
        threading.Thread(target=deliver_due, args=(access.engine, threading.Event())) for _ in "12"
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [one["data"]["labels"] for one in receiver.taken[2:]] == [["부정"]] * 2
    assert receiver.clashes == []
    receiver.got.clear()

    for model in ("quick-20", "quick-40"):
        scores = [TextScore(text_id=ids[1], priority=1.0)]
        write_scores(access, model, scores, ModelQuality(labels=20, cross_validated_f1=0.5))
    receiver.statuses = [500]
    assert state() == (2, 0, "HTTP 500") and receiver.statuses == []
    assert state() == (2, 0, "HTTP 500")  # it is not yet time to try again
    long_ago = {"created_at": made.created_at - 2 * GIVEN_UP_AFTER, "due_at": made.created_at}
    with access.engine.begin() as connection:
        connection.execute(update(WebhookDeliveryRow).values(**long_ago))
    receiver.statuses = [500]
    assert state() == (0, 2, "HTTP 500")
    send_again(access, made.id)
    assert state() == (0, 0, None)
    assert [one["data"].get("model") for one in receiver.taken] == ["quick-20", "quick-40"]


def test_addresses_that_are_refused(access: ProjectAccess) -> None:
    for url in (
        "ftp://example.com/",
        "https:///path",
        "https://me:secret@example.com/",
        "https://example.com:99999/",
        "https://example.com/a b",
        "http://127.0.0.1:8000/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.1.2.3/",
        "http://localhost/",
    ):
        with pytest.raises(InputError, match=r"expected a (URL|host of the public internet)"):
            make_webhook(access, url)
    with pytest.raises(InputError, match="expected events of"):
        make_webhook(access, "https://example.com/", ["text.read"])
    assert list_webhooks(access) == []


def test_an_address_that_became_private_gets_nothing(
    access: ProjectAccess, receiver: Receiver
) -> None:
    make_webhook(access, receiver.url, may_be_private=True)
    with access.engine.begin() as connection:
        connection.execute(update(WebhookRow).values(may_be_private=False))
    save_acts(access, [act(add_texts(access, ["가나다"], "here")[0], "one")])
    deliver_due(access.engine, threading.Event())
    (webhook,) = list_webhooks(access)
    assert webhook.waiting == 1 and "127.0.0.1" in str(webhook.error) and receiver.got == []
    assert not any(map(is_public, ("::ffff:10.0.0.1", "fe80::1%eth0", "224.0.0.1", "100.64.0.1")))
    assert is_public("::ffff:8.8.8.8")


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """Computed by the library `standardwebhooks` 1.1.0."""
    body = '{"글":"좋아요"}'.encode()
    secret, name = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLw==", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    found = signature(secret, name, 1614265330, body)
    assert found == "v1,gqH2rJ2zFkyR4VLN/pXJJuQppHrLGWOl24Gr6HCsuNM="


def test_programs_of_admins_make_and_take_out_webhooks(
    labels: Labels, receiver: Receiver, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRIVATE_VARIABLE, "on")
    owner = run_labels(home, "token", f"--database={labels.database}")
    path = "/v1/projects/1/webhooks"
    with serving("--labels", labels.database, home=home) as server:

        def ask(path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
            given = f"Bearer {labels.tokens.get(more.pop('by', ''), owner)}"
            found = server.ask(path, body, Authorization=given, **more)
            assert found.status == status, found.body
            return found.json if found.body else None

        ask(path, status=403, by="하윤")
        ask(path, {"url": receiver.url}, 403, by="하윤")
        assert "expected a URL" in ask(path, {"url": "ftp://x"}, 422)["error"]
        ask(path, {"url": receiver.url, "events": ["text.read"]}, 422)
        made = ask(path, {"url": receiver.url, "events": ["text.labelled"]})
        (text,) = ask("/v1/projects/1/texts", {"texts": ["배송이 빨라요"]})["text_ids"]
        said = {"text_id": text, "labels": ["긍정"], "request_id": "one"}
        ask("/v1/projects/1/labels", {"acts": [said]})
        receiver.wait(1)
        ((headers, body, _),) = receiver.got
        signed = (headers["webhook-id"], int(headers["webhook-timestamp"]), body)
        secret = made["secret"].removeprefix("whsec_")
        assert headers["webhook-signature"] == signature(secret, *signed)
        (listed,) = ask(path)["webhooks"]
        assert (listed["id"], listed["url"]) == (made["id"], receiver.url)
        assert listed["events"] == ["text.labelled"] and secret not in str(listed)

        ask(f"{path}/{made['id']}", status=403, by="하윤", method="DELETE")
        ask(f"{path}/{made['id']}", status=204, method="DELETE")
        assert ask(path)["webhooks"] == []
        ask(f"{path}/{made['id']}", status=422, method="DELETE")
