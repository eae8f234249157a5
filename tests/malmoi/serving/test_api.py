"""The paths of `malmoi serve`: what they take, what they answer, and one line for every mistake."""

import base64
import http.client
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from malmoi.inference.calibration import CALIBRATION
from malmoi.inference.classifier import Classifier
from malmoi.serving.application import make_application
from malmoi.serving.limits import Limits
from tests.malmoi.finetune.conftest import LABELS, separable
from tests.malmoi.serving.conftest import ENGINE, TOKEN, Server, alone

BEARER = {"Authorization": f"Bearer {TOKEN}"}
TEXTS = [text for text, _ in separable()]


def test_one_text_and_many_get_the_labels_of_the_classifier(
    server: Server, classifier_directory: Path
) -> None:
    expected = Classifier.load(classifier_directory, ENGINE).predict(TEXTS)
    found = server.ask("/v1/predict", {"texts": TEXTS}, **BEARER)
    assert found.status == 200
    assert found.headers["content-type"] == "application/json"
    assert found.json["model"] == "memos-1"
    predictions = found.json["predictions"]
    assert [each["label"] for each in predictions] == [each.label for each in expected]
    for each, one in zip(predictions, expected, strict=True):
        assert each["probabilities"] == pytest.approx(one.probabilities, abs=1e-5)
        assert each["confidence"] == max(each["probabilities"].values())
        assert each["cut"] is one.cut
    (alone,) = server.ask("/v1/predict", {"text": TEXTS[3]}, **BEARER).json["predictions"]
    assert alone["label"] == expected[3].label
    assert server.ask("/v1/predict", {"texts": []}, **BEARER).json["predictions"] == []


def test_any_text_gets_a_label_as_the_classifier_reads_it(
    server: Server, classifier_directory: Path
) -> None:
    # The first has several windows.
    texts = ["꿈에서 하늘을 " * 100 + "내일 병원 예약 " * 60, "꿈"]
    texts += ["", " ", "\0", "😀" * 50, "a\u2028b", "<script>", "\ud7ff"]
    expected = Classifier.load(classifier_directory, ENGINE).predict(texts)
    for text, one in zip(texts, expected, strict=True):
        (each,) = server.ask("/v1/predict", {"text": text}, **BEARER).json["predictions"]
        assert each["probabilities"] == pytest.approx(one.probabilities, abs=1e-5), text
        assert each["label"] in LABELS and each["cut"] is False, text


def test_unsure_texts_are_told_and_the_likeliest_labels_are_enough(
    classifier_directory: Path, tmp_path: Path
) -> None:
    measured = Path(shutil.copytree(classifier_directory, tmp_path / "measured"))
    accepts = [{"accuracy": 0.9, "threshold": 0.5}, {"accuracy": 0.95, "threshold": 1.0}]
    facts = json.dumps({"temperature": 1.0, "accept": accepts})
    (measured / CALIBRATION).write_text(facts, encoding="utf-8")
    with TestClient(make_application(alone(Classifier.load(measured)))) as client:

        def ask(**body: Any) -> Any:
            return client.post("/v1/predict", json=body).json()

        texts = [*TEXTS[:9], "\u0e81\u0e82"]
        for each in ask(texts=texts, accept=0.9, top_k=2)["predictions"]:
            assert each["answered"] is (each["known"] and each["confidence"] >= 0.5)
            assert len(each["probabilities"]) == 2 and each["label"] in each["probabilities"]
        *known, strange = ask(texts=texts)["predictions"]
        assert [one["known"] for one in known] == [True] * 9 and strange["known"] is False
        assert "answered" not in strange
        assert not any(one["answered"] for one in ask(texts=texts, accept=0.95)["predictions"])
        assert "equal to 0.95) at accept" in ask(text="꿈", accept=0.99)["error"]


def test_a_mistake_is_answered_in_one_line(server: Server) -> None:
    table: tuple[tuple[Any, int, str], ...] = (
        (b"{", 400, "JSON"),
        (json.dumps({"text": "꿈"}, ensure_ascii=False).encode("cp949"), 400, "send UTF-8"),
        (b"[" * 100_000, 400, "JSON"),
        # Half an emoji in no JSON.
        (b'{"text": "\\ud800"', 400, "JSON"),
        (b'"\\ud800"' + b"[" * 100_000, 400, "JSON"),
        ([], 422, "with one of text, texts, pair, pairs, found a list of 0"),
        ({}, 422, "found an object with nothing"),
        ({"text": "a", "texts": []}, 422, "with one of text, texts, pair, pairs"),
        ({"text": 3}, 422, "a text at text, found 3"),
        ({"texts": "한 글"}, 422, "a list at texts, found a text of 3 characters"),
        ({"texts": ["a", None]}, 422, "a text at texts[1], found null"),
        ({"text": "a", "more\n": 1}, 422, "found more "),
        ({"pairs": [["a"]]}, 422, "two texts at pairs[0], found a list of 1"),
        ({"pairs": [["a"] * 3]}, 422, "two texts at pairs[0], found a list of 3"),
        ({"pair": {"a": "b"}}, 422, "two texts at pair, found an object with a"),
        ({"texts": ["a"] * 101}, 422, "at most 100 items at texts, found 101"),
        ({"text": "가" * 2001}, 422, "at most 2,000 characters at text, found 2,001"),
        ({"text": "a" * 600_000}, 413, "at most 524,288 bytes"),
    )
    for body, status, fact in table:
        found = server.ask("/v1/predict", body, **BEARER)
        shown = str(body)[:40]
        keys = ["error", "code", "facts"] if status == 422 else ["error"]
        assert (found.status, list(found.json)) == (status, keys), shown
        assert fact in found.json["error"] and "\n" not in found.json["error"], shown


def test_half_an_emoji_and_a_byte_order_mark_are_no_mistake(
    server: Server, classifier_directory: Path
) -> None:
    for body, text in (
        (rb'{"text": "\ud83d \uc88b\uc544\uc694\udc4d"}', " 좋아요"),
        (b'\xef\xbb\xbf{"text": "\xea\xbf\x88"}', "꿈"),
        (rb'{"text": "\ud83d\ude00 \\ud83d"}', "😀 \\ud83d"),
    ):
        (expected,) = Classifier.load(classifier_directory, ENGINE).predict([text])
        found = server.ask("/v1/predict", body, **BEARER)
        assert found.status == 200, found.body
        (one,) = found.json["predictions"]
        assert one["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5), text


def test_another_type_path_or_method_is_answered_in_one_line(server: Server) -> None:
    form = server.ask("/v1/predict", b"text=a", Content_Type="text/plain", **BEARER)
    assert form.status == 415 and "found text/plain" in form.json["error"]
    euc_kr = {"Content_Type": 'application/json; charset="EUC-KR"', **BEARER}
    other = server.ask("/v1/predict", '{"text": "꿈"}'.encode("euc-kr"), **euc_kr)
    assert other.status == 415 and "found euc-kr; send UTF-8" in other.json["error"]
    utf_8 = {"Content_Type": "application/json;charset=UTF-8", **BEARER}
    assert server.ask("/v1/predict", '{"text": "꿈"}'.encode(), **utf_8).status == 200
    nowhere = server.ask("/v1/nowhere", **BEARER)
    assert nowhere.status == 404 and "/v1/predict" in nowhere.json["error"]
    assert "/docs" in nowhere.json["error"]
    got = server.ask("/v1/predict", **BEARER)
    assert (got.status, got.headers["allow"]) == (405, "POST")
    assert got.json["error"] == "expected POST /v1/predict, found GET"


def test_without_the_token_nothing_but_health_and_docs_is_answered(server: Server) -> None:
    for path in ("/v1/labels", "/metrics", "/v1/nowhere"):
        nearly = (TOKEN[:-1], TOKEN[:1], f"{TOKEN}x", TOKEN.swapcase(), "")
        for given in ("", "Basic ???", TOKEN, *(f"Bearer {token}" for token in nearly)):
            found = server.ask(path, **({"Authorization": given} if given else {}))
            assert (found.status, found.headers["www-authenticate"]) == (401, "Bearer")
            assert "expected the token" in found.json["error"]
        assert server.ask(path, **BEARER).status in (200, 404)
    password = base64.b64encode(f"anybody:{TOKEN}".encode()).decode()
    assert server.ask("/v1/labels", Authorization=f"Basic {password}").status == 200
    for path in ("/", "/health", "/docs", "/openapi.json"):
        assert server.ask(path).status == 200


def test_labels_health_and_docs(server: Server) -> None:
    labels = server.ask("/v1/labels", **BEARER).json
    assert labels.pop("version").startswith("memos-1-")
    assert labels == {
        "name": "default",
        "model": "memos-1",
        "engine": ENGINE,
        "gives": "label",
        "reads_pairs": None,
        "labels": LABELS,
    }
    health = server.ask("/health").json
    assert (health["status"], health["model"], health["waiting"]) == ("UP", "memos-1", 0)
    assert health["engine"] == ENGINE
    schema = server.ask("/openapi.json").json
    text = json.dumps(schema["paths"]["/v1/predict"]["post"], ensure_ascii=False)
    assert "배송도 빠르고" in text
    page = server.ask("/docs").body.decode()
    assert '"openapi.json"' in page and "배송도 빠르고" in page
    # Nothing of it comes from elsewhere.
    assert "<script" not in page and "https://" not in page


def test_head_is_get_without_a_body(server: Server) -> None:
    for path in ("/health", "/metrics", "/", "/v1/labels", "/docs"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("HEAD", path, headers=BEARER)
        found = connection.getresponse()
        assert (found.status, found.read()) == (200, b""), path
        assert int(found.headers["content-length"]) > 0, path
        connection.request("GET", path, headers=BEARER)
        assert connection.getresponse().status == 200, path
        connection.close()


def numbers(server: Server) -> dict[str, float]:
    lines = server.ask("/metrics", **BEARER).body.decode().splitlines()
    rows = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in rows}


def test_metrics_count_requests_texts_and_errors(server: Server) -> None:
    before = numbers(server)
    server.ask("/v1/predict", {"texts": TEXTS[:7]}, **BEARER)
    server.ask("/v1/predict", b"{", **BEARER)
    server.ask("/v1/x/y/z", **BEARER)
    after = numbers(server)

    def more(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert more('malmoi_requests_total{path="/v1/predict",status="200"}') == 1
    assert more('malmoi_requests_total{path="/v1/predict",status="400"}') == 1
    assert more('malmoi_requests_total{path="other",status="404"}') == 1
    assert more("malmoi_batch_texts_sum") == 7
    assert more('malmoi_request_seconds_count{path="/v1/predict"}') == 2
    assert after["malmoi_waiting_requests"] == 0
    assert 'engine="onnx-fp32"' in "".join(after)
    assert not [name for name in after if "/v1/x" in name]


@pytest.mark.parametrize(
    ("fixture", "body", "keys"),
    [
        ("several_labels_model", {"texts": TEXTS[:9]}, {"labels", "confidence", "probabilities"}),
        ("pairs_model", {"pairs": list(pairwise(TEXTS))}, {"label"}),
        ("pairs_model", {"pair": TEXTS[:2]}, {"label"}),
        ("values_model", {"pairs": [TEXTS[:2], TEXTS[2:4]]}, {"value", "cut"}),
    ],
)
def test_models_of_other_kinds(
    request: pytest.FixtureRequest, fixture: str, body: Any, keys: set[str]
) -> None:
    classifier = Classifier.load(request.getfixturevalue(fixture))
    with TestClient(make_application(alone(classifier))) as client:
        found = client.post("/v1/predict", json=body)
        refused = client.post("/v1/predict", json={"text": "꿈", "pair": ["꿈", "꿈"]})
    assert found.status_code == 200
    predictions = found.json()["predictions"]
    pairs = body.get("pairs") or ([body["pair"]] if "pair" in body else None)
    texts = [first for first, _ in pairs] if pairs else body["texts"]
    expected = classifier.predict(texts, [second for _, second in pairs] if pairs else None)
    for each, one in zip(predictions, expected, strict=True):
        assert keys <= each.keys()
        assert each.get("label", one.label) == one.label
        assert each.get("labels", []) == list(getattr(one, "labels", ()))
        assert each.get("value", 0.0) == pytest.approx(getattr(one, "value", 0.0), abs=0.05)
    assert refused.status_code == 422


def test_without_a_token_all_may(classifier_directory: Path) -> None:
    application = make_application(
        alone(Classifier.load(classifier_directory)), limits=Limits(max_texts=2)
    )
    with TestClient(application) as client:
        assert client.post("/v1/predict", json={"text": "꿈"}).status_code == 200
        assert "security" not in client.get("/openapi.json").text
