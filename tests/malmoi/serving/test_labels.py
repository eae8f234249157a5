"""`malmoi serve --labels`: projects, texts, labels, decisions and exports, for programs."""

import csv
import io
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from malmoi.labels.filled_export import imported_columns
from malmoi.labels.projects import ProjectStore
from malmoi.labels.review import texts_with_votes
from malmoi.labels.tables import AnnotationRow, TextSourceRow
from tests.malmoi.serving.conftest import (
    ADMIN,
    ENGINE,
    ROOT,
    TOKEN,
    Answer,
    Labels,
    Server,
    free_port,
    run_labels,
    serving,
)
from tests.malmoi.serving.test_openapi import COMMAND

CLIENTS, SECONDS = 50, float(os.environ.get("MALMOI_LABEL_SECONDS", "6"))


@pytest.fixture
def served(labels: Labels, home: Path) -> Iterator[Server]:
    with serving("--labels", labels.database, home=home) as server:
        yield server


BOTH = pytest.mark.parametrize("labels", ["sqlite", "postgresql"], indirect=True)


@BOTH
def test_programs_label_as_people_do(served: Server, labels: Labels, home: Path) -> None:
    def ask(person: str, path: str, body: Any = None, status: int = 200) -> Any:
        given = f"Bearer {labels.tokens[person]}"
        found = served.ask(f"/v1/projects{path}", body, Authorization=given)
        assert found.status == status, found.body
        return found if path.startswith("/1/export") and status == 200 else found.json

    def label(text_id: int, name: str) -> dict[str, Any]:
        return {"text_id": text_id, "labels": [name], "request_id": f"{name}-{text_id}"}

    (project,) = ask("민지", "")["projects"]
    assert (project["name"], project["role"]) == ("reviews", "annotator")
    assert [one["name"] for one in ask("하윤", "/1")["labels"]] == ["긍정", "부정"]
    words = ["배송이 빨라요", "색이 달라요", "배송이  빨라요", "가격만큼 합니다"]
    first, second, again, third = ask("민지", "/1/texts", {"texts": words})["text_ids"]
    assert first == again and len({first, second, third}) == 3
    query = urllib.parse.urlencode({"words": "배송", "state": "open"})
    (found,) = ask("민지", f"/1/texts?{query}")["texts"]
    assert (found["text_id"], found["votes"]) == (first, [])
    page = ask("민지", "/1/texts?limit=2")
    rest = ask("민지", f"/1/texts?limit=2&after={page['next']}")
    assert [one["text_id"] for one in (*page["texts"], *rest["texts"])] == [first, second, third]
    assert rest["next"] is None

    act = {**label(first, "긍정"), "shown": found["sha256"], "seconds": 1.5}
    ((_, new),) = [one.values() for one in ask("민지", "/1/labels", {"acts": [act]})["saved"]]
    ((_, twice),) = [one.values() for one in ask("민지", "/1/labels", {"acts": [act]})["saved"]]
    assert (new, twice) == (True, False)
    ask("서준", "/1/labels", {"acts": [label(first, "부정"), label(second, "부정")]})
    # What others said is for reviewers; nothing of two acts is saved where one does not fit.
    (vote,) = ask("민지", f"/1/texts/{first}")["votes"]
    assert (vote["annotator"], vote["labels"]) == ("민지", ["긍정"])
    assert len(ask("하윤", f"/1/texts/{first}")["votes"]) == 2
    acts = [label(third, "긍정"), label(second, "중립")]
    refused = ask("민지", "/1/labels", {"acts": acts}, 422)
    assert refused["facts"]["name"] == "중립" and len(refused["code"]) == 8, refused
    assert ask("민지", f"/1/texts/{third}")["votes"] == []
    other = {**label(third, "긍정"), "shown": found["sha256"]}
    assert "on screen" in ask("민지", "/1/labels", {"acts": [other]}, 422)["error"]

    decision = {"text_id": first, "labels": ["긍정"], "request_id": "d1", "note": "빠르다"}
    refused = ask("민지", "/1/decisions", decision, 403)
    assert refused["facts"]["role"] == "annotator"
    assert ask("하윤", "/1/decisions", decision)["new"] is True
    assert ask("하윤", f"/1/texts/{first}")["decided"] == ["긍정"]
    assert ask("민지", f"/1/texts/{first}")["decided"] is None

    for person, words in (("민지", "새 상품인가요?"), ("하윤", "네"), ("서준", "?")):
        note = {"text_id": first, "kind": "note", "note": words, "request_id": f"n-{person}"}
        ask(person, "/1/labels", {"acts": [note]})
    threads = [ask(person, f"/1/texts/{first}")["comments"] for person in ("민지", "하윤")]
    said = [[one["text"] for one in thread] for thread in threads]
    assert said == [["새 상품인가요?", "네"], ["새 상품인가요?", "네", "?"]]

    exported = ask("하윤", "/1/export?all_texts=true")
    rows = list(csv.DictReader(io.StringIO(exported.body.decode("utf-8-sig"))))
    assert [row["label"] for row in rows] == ["긍정", "부정", ""]
    assert 'filename="export.csv"' in exported.headers["content-disposition"]
    lines = ask("하윤", "/1/export?format=doccano").body.decode().splitlines()
    assert len(lines) == 3 and json.loads(lines[0])["label"] == ["긍정"]
    ask("민지", "/1/export", status=403)
    assert "to learn from" in ask("하윤", "/1/export?fill=live", status=422)["error"]
    assert ask("하윤", "/1/export?fill=/etc", status=422)["facts"]["names"] == "live"
    assert ask("민지", "/2", status=403)["facts"]["project"] == 2
    assert "path.project" in ask("민지", "/x", status=422)["error"]

    for given in ("", "Bearer nobody", f"Bearer {labels.tokens['민지']}x", TOKEN):
        answer = served.ask("/v1/projects", **({"Authorization": given} if given else {}))
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    withdrawn = ("token", f"--database={labels.database}", "--person=서준", "--withdraw")
    run_labels(home, *withdrawn)
    bearer = {"Authorization": f"Bearer {labels.tokens['서준']}"}
    assert served.ask("/v1/projects", **bearer).status == 401
    assert len(ask("하윤", f"/1/texts/{first}")["votes"]) == 2
    assert served.ask("/health").json["status"] == "UP"
    page = served.ask("/docs").body.decode()
    assert "/v1/projects/{project}/labels" in page and "<script" not in page


def test_a_program_of_whoever_runs_the_server_makes_a_project_and_fills_it(
    served: Server, labels: Labels, home: Path
) -> None:
    def ask(path: str, body: Any = None, status: int = 200, token: str = "") -> Any:
        given = f"Bearer {token or owner}"
        found = served.ask(f"/v1/projects{path}", body, Authorization=given)
        assert found.status == status, found.body
        return found.json

    former, owner = (run_labels(home, "token", f"--database={labels.database}") for _ in "12")
    new = {"name": "장갑", "labels": [{"name": "좋음", "meaning": "살 만하다"}, {"name": "나쁨"}]}
    ask("", new, 401, token=former)  # the newest alone is good
    assert ask("", new, 403, token=labels.tokens["하윤"])["facts"]["person"] == "하윤"
    project = ask("", {**new, "guideline": "# 지침", "annotators_per_text": 2})
    assert (project["role"], project["guideline"]) == ("admin", "# 지침")
    assert project["labels"][0] == {"name": "좋음", "title": "좋음", "meaning": "살 만하다"}
    assert ask("", new, 422)["facts"]["project"] == "장갑"
    assert ask("", {"name": "x", "labels": []}, 422)["error"]
    assert [one["name"] for one in ask("")["projects"]] == ["reviews", "장갑"]

    path = f"/{project['id']}/texts"
    told = {"text": "손에 꼭 맞아요", "columns": {"별점": 5, "상품": "가죽", "새것": True}}
    body = {"texts": [told, "얇아요"], "source": "shop"}
    first, second = ask(path, body)["text_ids"]
    # Where no answer came the same is sent again; what is new of a text that is there is kept.
    assert ask(path, body)["text_ids"] == [first, second]
    more = {
        "texts": [{"text": "얇아요", "columns": {"상품": "털실", "메모": None}}],
        "source": "shop",
    }
    ask(path, more)
    found = ask(f"{path}/{first}")
    assert (found["source"], found["columns"]) == ("shop", told["columns"])
    assert [one["columns"] for one in ask(path)["texts"]] == [told["columns"], {}]
    wrong = {"texts": [{"text": "글", "columns": {"text": "x"}}]}
    assert "beside text" in ask(path, wrong, 422)["error"]
    wrong = {"texts": [{"text": "글", "columns": {"a": [1]}}]}
    assert "at texts[0].columns.a," in ask(path, wrong, 422)["error"]
    assert len(ask(path)["texts"]) == 2
    access = ProjectStore(labels.database).access(ADMIN, "장갑")
    assert imported_columns(access) == ["별점", "상품", "새것", "메모"]
    with access.reading() as connection:
        rows = connection.execute(select(TextSourceRow.text_id, TextSourceRow.cells)).all()
    assert [(one, json.loads(cells).get("상품")) for one, cells in rows] == [
        *((first, "가죽"), (second, None), (second, "털실")),
    ]


def test_beside_a_model_whose_token_opens_no_project(
    labels: Labels, classifier_directory: Path, home: Path
) -> None:
    flags = (classifier_directory, f"--engine={ENGINE}", f"--labels={labels.database}")
    with serving(*flags, home=home, token=TOKEN) as server:

        def ask(path: str, token: str, body: Any = None) -> Answer:
            return server.ask(path, body, Authorization=f"Bearer {token}")

        person = labels.tokens["하윤"]
        assert ask("/v1/predict", TOKEN, {"text": "꿈"}).status == 200
        assert ask("/v1/predict", person, {"text": "꿈"}).status == 401
        assert ask("/v1/projects", TOKEN).status == 401
        ask("/v1/projects/1/texts", person, {"texts": ["꿈을 꿨다", "일기를 쓴다"]})
        filled = ask("/v1/projects/1/export?format=jsonl&fill=default", person)
        rows = [json.loads(line) for line in filled.body.decode().splitlines()]
        assert [row["누구"] for row in rows] == ["모델", "모델"]


def test_schemathesis_finds_nothing(
    served: Server, labels: Labels, home: Path, tmp_path: Path
) -> None:
    # What ids and names there are, no schema can say.
    file = tmp_path / "schemathesis.toml"
    file.write_text("[checks]\npositive_data_acceptance.enabled = false\n")
    token = run_labels(home, "token", f"--database={labels.database}")
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, f"--config-file={file}", "run"]
        + [f"{served.url}/openapi.json", "-H", f"Authorization: Bearer {token}", "--seed=1"]
        + ["--max-examples=20", "--no-color", "--request-timeout=60"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Tested: 14" in done.stdout and "ignored_auth" not in done.stdout


@BOTH
def test_no_acknowledged_label_is_lost_when_the_server_is_killed(
    labels: Labels, home: Path
) -> None:
    store = ProjectStore(labels.database)
    acknowledged: list[tuple[int, str]] = []
    ended = threading.Event()
    port = free_port()
    bearer = {"Authorization": f"Bearer {labels.tokens['민지']}"}

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "malmoi", "serve", f"--labels={labels.database}"]
        return subprocess.Popen(
            [*command, f"--port={port}"],
            cwd=home,
            env=os.environ | {"MALMOI_HOME": str(home), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )

    process = start()
    server = Server(process, f"http://127.0.0.1:{port}", "")

    def client(number: int) -> None:
        count = 0
        while not ended.is_set():
            name = ("긍정", "부정")[count % 2]
            request = f"{number}-{count}"
            act = {"text_id": texts[number], "labels": [name], "request_id": request}
            while not ended.is_set():  # until there is an answer
                try:
                    found = server.ask("/v1/projects/1/labels", {"acts": [act]}, **bearer)
                except (OSError, urllib.error.URLError):
                    time.sleep(0.05)
                    continue
                if found.status == 200:
                    acknowledged.append((number, request))
                    break
                assert found.status == 503, found.body
            count += 1

    assert process.stdout is not None and process.stdout.readline()
    body = {"texts": [f"글 {number}번" for number in range(CLIENTS)]}
    texts = server.ask("/v1/projects/1/texts", body, **bearer).json["text_ids"]
    threads = [threading.Thread(target=client, args=(one,)) for one in range(CLIENTS)]
    for thread in threads:
        thread.start()
    kills = 0
    until = time.monotonic() + SECONDS
    # On a slow machine as long as two kills and a label of each client take.
    while time.monotonic() < until or kills < 2 or len(acknowledged) <= CLIENTS:
        time.sleep(min(2.0, SECONDS / 3))
        process.kill()
        process.wait()
        kills += 1
        process = start()
        assert process.stdout is not None and process.stdout.readline()
    time.sleep(1)
    ended.set()
    for thread in threads:
        thread.join(60)
    process.terminate()
    process.wait(60)

    access = store.access(ADMIN, "reviews")
    with access.reading() as connection:
        rows = connection.execute(select(AnnotationRow.text_id, AnnotationRow.request_id))
        kept = [(text_id, request) for text_id, request in rows]
    wanted = {(texts[number], request) for number, request in acknowledged}
    print(f"{len(wanted)} acknowledged, {len(kept)} kept, {kills} kills")
    assert len(acknowledged) == len(wanted) > CLIENTS and kills >= 2
    assert len(kept) == len(set(kept)) and wanted <= set(kept)
    last: dict[int, int] = {}
    for number, request in acknowledged:
        last[number] = max(last.get(number, 0), int(request.partition("-")[2]))
    for number, text in enumerate(texts_with_votes(access, texts)):
        # One more may have been saved, whose answer nobody got.
        assert text.votes[0].labels[0] in {
            ("긍정", "부정")[(last[number] + more) % 2] for more in range(2)
        }
