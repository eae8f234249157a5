"""Label Studio's protocol, as label-studio-ml-backend publishes it.

Requests are those of its label_studio_ml/api.py and tests/test_api.py, and of Label Studio's own
ml/api_connector.py; answers those of response.py and of examples/sklearn_text_classifier.
"""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from malmoi.inference.classifier import Classifier
from malmoi.serving.application import make_application
from malmoi.serving.limits import Limits
from tests.malmoi.finetune.conftest import LABELS, separable
from tests.malmoi.serving.conftest import alone

VERSION = "memos-1-0a1b2c3d"
TEXTS = [text for text, _ in separable()]
# As in examples/sklearn_text_classifier/test_api.py, with the labels of the tests.
CONFIG = """
<View>
  <Text name="text" value="$text"/>
  <View style="box-shadow: 2px 2px 5px #999; padding: 20px;">
    <Header value="Choose text sentiment"/>
    <Choices name="sentiment" toName="text" choice="single" showInLine="true">
      <Choice value="꿈"/>
      <Choice value="일기"/>
      <Choice value="일정"/>
    </Choices>
  </View>
</View>
"""


def config_with(choices: str, *, choice: str = "single", texts: str = "") -> str:
    text = texts or '<Text name="text" value="$text"/>'
    control = f'<Choices name="c" toName="text" choice="{choice}">{choices}</Choices>'
    return f"<View>{text}{control}</View>"


ALL = "".join(f'<Choice value="{label}"/>' for label in LABELS)


def request_for(texts: list[str], config: str = CONFIG, **data: list[str]) -> dict[str, Any]:
    """What Label Studio sends to `/predict`."""
    columns = {"text": texts, **data}
    tasks = [
        {"id": place, "data": {key: column[place] for key, column in columns.items()}}
        for place in range(len(texts))
    ]
    return {
        "tasks": tasks,
        "model_version": None,
        "project": "1.1700000000",
        "label_config": config,
        "params": {"login": None, "password": None, "context": None},
    }


def setup_for(config: str) -> dict[str, Any]:
    """What it sends to `/setup`."""
    return {
        "project": "1.1700000000",
        "schema": config,
        "hostname": "http://localhost:8080",
        "access_token": "x",
        "extra_params": {},
    }


@pytest.fixture(scope="module")
def client(classifier_directory: Path) -> Any:
    classifier = Classifier.load(classifier_directory)
    application = make_application(alone(classifier, VERSION), limits=Limits(max_texts=100))
    with TestClient(application) as found:
        yield found


def test_health_says_up_and_names_the_model_class(client: Any) -> None:
    for path in ("/health", "/"):
        found = client.get(path).json()
        assert found["status"] == "UP" and isinstance(found["model_class"], str)


def test_setup_gives_the_version(client: Any) -> None:
    found = client.post("/setup", json=setup_for(CONFIG))
    assert (found.status_code, found.json()) == (200, {"model_version": VERSION})


def test_predictions_of_tasks(client: Any, classifier_directory: Path) -> None:
    found = client.post("/predict", json=request_for(TEXTS))
    assert found.status_code == 200
    assert list(found.json()) == ["results"]
    results = found.json()["results"]
    expected = Classifier.load(classifier_directory).predict(TEXTS)
    assert len({one.label for one in expected}) > 1
    for result, one in zip(results, expected, strict=True):
        assert result["model_version"] == VERSION
        assert result["score"] == pytest.approx(one.confidence, abs=0.02)
        assert result["result"] == [
            {
                "from_name": "sentiment",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": [one.label]},
            }
        ]
    assert client.post("/predict", json=request_for([])).json() == {"results": []}


def test_labels_are_found_by_value_alias_and_predicted_values(client: Any) -> None:
    choices = (
        '<Choice value="Dream" predicted_values="악몽, 꿈"/><Choice value="일기" alias="diary"/>'
        '<Choice value="Plan"><Choice value="일정"/></Choice>'
    )
    found = client.post("/predict", json=request_for(TEXTS, config_with(choices))).json()
    chosen = {result["result"][0]["value"]["choices"][0] for result in found["results"]}
    plain = client.post("/predict", json=request_for(TEXTS)).json()["results"]
    labels = {result["result"][0]["value"]["choices"][0] for result in plain}
    names = {"꿈": "Dream", "일기": "diary", "일정": "일정"}
    assert chosen == {names[label] for label in labels}


def test_several_labels(several_labels_model: Path) -> None:
    classifier = Classifier.load(several_labels_model)
    with TestClient(make_application(alone(classifier, VERSION))) as client:
        found = client.post(
            "/predict", json=request_for(TEXTS, config_with(ALL, choice="multiple"))
        ).json()
        single = client.post("/predict", json=request_for(TEXTS, CONFIG))
    for result, one in zip(found["results"], classifier.predict(TEXTS), strict=True):
        labels = list(getattr(one, "labels", ()))
        assert [each["value"]["choices"] for each in result["result"]] == (
            [labels] if labels else []
        )
    assert single.status_code == 422 and 'choice="multiple"' in single.json()["error"]


def test_pairs_of_texts(pairs_model: Path) -> None:
    classifier = Classifier.load(pairs_model)
    texts = '<Text name="text" value="$text"/><Text name="other" value="$other"/>'
    others = TEXTS[::-1]
    with TestClient(make_application(alone(classifier, VERSION))) as client:
        request = request_for(TEXTS, config_with(ALL, texts=texts), other=others)
        found = client.post("/predict", json=request).json()["results"]
        one = client.post("/predict", json=request_for(TEXTS, CONFIG))
    labels = [result["result"][0]["value"]["choices"][0] for result in found]
    assert labels == [each.label for each in classifier.predict(TEXTS, others)]
    assert one.status_code == 422 and "two <Text>" in one.json()["error"]


def test_a_configuration_that_does_not_fit_is_refused_and_standard_error_says_why(
    client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    other = '<Choices name="d" toName="text"><Choice value="?"/></Choices></View>'
    for config, fact in (
        ("<View>", "XML, found no element"),
        ("", "XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><View>&b;</View>', "<!DOCTYPE>"),
        (config_with('<Choice value="꿈"/>').replace("</View>", other), "none for 일기, 일정;"),
        ("<View></View>", '<Choices toName="text">'),
        ("<View><Image name='i' value='$i'/></View>", '<Choices toName="text">'),
    ):
        requests = (("/setup", setup_for(config)), *[("/predict", request_for(TEXTS, config))] * 2)
        for path, request in requests:
            found = client.post(path, json=request)
            assert found.status_code == 422 and fact in found.json()["error"], config
        # A configuration that is changed later is not set up again.
        client.post("/predict", json=request | {"project": "2.17\n\x1b"})
        first, second = capsys.readouterr().err.splitlines()
        assert first == f"project 1.1700000000 of Label Studio is refused: {found.json()['error']}"
        assert second.startswith("project 2.17   of") and second.isprintable()


def test_the_choices_that_have_the_labels_of_the_model_are_answered(
    client: Any, several_labels_model: Path
) -> None:
    topics = '<Choices name="topic" toName="text"><Choice value="꿈"/></Choices>'
    config = CONFIG.replace("<Header", f"{topics}<Header")
    assert client.post("/setup", json=setup_for(config)).status_code == 200
    found = client.post("/predict", json=request_for(TEXTS, config)).json()
    assert found == client.post("/predict", json=request_for(TEXTS)).json()

    config = config_with(ALL, choice="multiple").replace("<Choices", f"{CONFIG}<Choices")
    with TestClient(
        make_application(alone(Classifier.load(several_labels_model), VERSION))
    ) as other:
        results = other.post("/predict", json=request_for(TEXTS, config)).json()["results"]
    assert {each["from_name"] for result in results for each in result["result"]} == {"c"}


def test_comments_and_cdata_are_xml(client: Any) -> None:
    config = CONFIG.replace("</View>", "<!-- a note --><Style><![CDATA[a > b {}]]></Style></View>")
    assert config != CONFIG
    found = client.post("/predict", json=request_for(TEXTS, config))
    assert found.status_code == 200 and len(found.json()["results"]) == len(TEXTS)


def test_tasks_that_cannot_be_read_are_answered_in_one_line(client: Any) -> None:
    table: tuple[tuple[dict[str, Any], str], ...] = (
        ({"tasks": {"id": 1}}, "a list at tasks, found an object with id"),
        ({"tasks": [1]}, "an object at tasks[0], found 1"),
        ({"tasks": [{"data": {"text": 3}}]}, "a text at data.text of task 0, found 3"),
        ({"tasks": [{"id": 7, "data": "꿈"}]}, "an object at data of task 7, found a text"),
        ({"tasks": [{"data": {"text": "꿈"}}] * 101}, "at most 100 texts in a request, found 101"),
        ({"tasks": [{"data": {"text": "꿈" * 20_001}}]}, "at most 20,000 characters"),
        ({"label_config": None}, "a text at label_config, found null"),
    )
    for change, fact in table:
        found = client.post("/predict", json=request_for(TEXTS) | change)
        assert found.status_code == 422 and fact in found.json()["error"], fact


def test_a_task_without_a_text_has_no_prediction_and_the_others_have_theirs(
    client: Any, pairs_model: Path
) -> None:
    plain = client.post("/predict", json=request_for(TEXTS[:2])).json()["results"]
    request = request_for(TEXTS[:2])
    empty = [{"text": None}, {}, None, {"text": ""}, {"text": " \u200b<br>"}]
    request["tasks"][1:1] = [{"id": 5 + n, "data": data} for n, data in enumerate(empty)]
    found = client.post("/predict", json=request)
    assert found.status_code == 200
    nothing = {"model_version": VERSION, "result": []}
    assert found.json()["results"] == [plain[0], *[nothing] * len(empty), plain[1]]

    texts = '<Text name="text" value="$text"/><Text name="other" value="$other"/>'
    request = request_for(["꿈", "꿈", "꿈"], config_with(ALL, texts=texts), other=["일", "", ""])
    request["tasks"][2]["data"]["other"] = None
    with TestClient(make_application(alone(Classifier.load(pairs_model), VERSION))) as other:
        results = other.post("/predict", json=request).json()["results"]
    assert [bool(result["result"]) for result in results] == [True, False, False]


def test_events_are_taken_and_change_nothing(client: Any) -> None:
    for action in ("ANNOTATION_CREATED", "START_TRAINING"):
        event = {"action": action, "project": {"id": 1, "label_config": CONFIG}}
        found = client.post("/webhook", json=event)
        assert found.status_code == 201 and found.json()["status"] == "ok", action
    unknown = client.post("/webhook", json={"action": "PROJECT_UPDATED"})
    assert (unknown.status_code, unknown.json()["status"]) == (200, "Unknown event")
