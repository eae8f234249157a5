"""Texts that came from Label Studio go back to the tags and people that it knows."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.exporting import export_for
from malmoi.labels.importing import WayOfReading, import_files
from malmoi.labels.people import Person
from malmoi.labels.review import texts_with_votes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources, source_of_upload
from tests.malmoi.labels.conftest import Make

# Label Studio's project has its texts in a field of another name.
BODIES = WayOfReading(origin="label-studio", options=ReadOptions(text_column="data.body"))


def part(name: str, *labels: str) -> dict[str, Any]:
    value = {"choices": list(labels)}
    return {"from_name": name, "to_name": "review", "type": "choices", "value": value}


def task(text: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"body": text, "text": "제목"}, "annotations": list(annotations)}


def come_in(access: ProjectAccess, *tasks: dict[str, Any], choices: str | None = None) -> Any:
    source = source_of_upload("ls.json", json.dumps(tasks).encode())
    me = replace(access, person=Person(name="나", is_local=True))
    return import_files(me, [source], replace(BODIES, label_column=choices))


def go_out(access: ProjectAccess, path: Path) -> list[dict[str, Any]]:
    export_for(access, path, "label-studio")
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return found


def labels_of(access: ProjectAccess) -> list[dict[str, tuple[str, ...]]]:
    texts = texts_with_votes(access, range(1, 100))
    return [{vote.annotator: vote.labels for vote in text.votes} for text in texts]


def test_labels_go_back_to_the_tags_and_fields_that_they_came_from(
    make: Make, tmp_path: Path
) -> None:
    access = make()
    done = {"completed_by": 3, "result": [part("sentiment", "긍정")]}
    come_in(access, task("하나", done), task("둘"))
    save_acts(access, [Act(text_id=2, kind="label", request_id="x", labels=["부정"])])
    first, second = go_out(access, tmp_path / "out.json")
    # The text stays where it was, and no other field is written over.
    assert first["data"] == {"body": "하나", "text": "제목"}
    assert first["annotations"][0]["result"] == [part("sentiment", "긍정")]
    # A label that was given here, and one that Label Studio has never given, too.
    assert second["annotations"][0]["result"] == [part("sentiment", "부정")]


def test_nobody_goes_out_whom_label_studio_would_refuse(make: Make, tmp_path: Path) -> None:
    access = make()
    told = [{"completed_by": 3}, {"completed_by": {"email": "a@b.kr"}}, {}]
    come_in(access, task("하나", *({**one, "result": [part("s", "긍정")]} for one in told)))
    assert labels_of(access) == [
        {"label-studio:3": ("긍정",), "a@b.kr": ("긍정",), "나": ("긍정",)}
    ]
    (found,) = go_out(access, tmp_path / "out.json")
    # It refuses a whole file for an address or a number that it does not know.
    who = {json.dumps(one.get("completed_by")) for one in found["annotations"]}
    assert who == {"3", '{"email": "a@b.kr"}', "null"}
    again = make(name="다시")
    import_files(again, find_sources(tmp_path / "out.json"), BODIES)
    assert labels_of(again) == labels_of(access)


def test_of_several_choices_one_is_named(make: Make, tmp_path: Path) -> None:
    access = make()
    both = {"completed_by": 1, "result": [part("sentiment", "긍정"), part("topic", "배송")]}
    other = {"completed_by": 2, "result": [part("topic", "배송")]}
    report = come_in(access, task("하나", both, other))
    assert "sentiment, topic" in str(report.left_out[0]) and labels_of(access) == [{}]
    with pytest.raises(InputError, match=r"'mood'.*found sentiment, topic"):
        come_in(access, task("하나", both, other), choices="mood")
    # The same rows, though they are in: what they say of it is new.
    report = come_in(access, task("하나", both, other), choices="sentiment")
    assert labels_of(access) == [{"label-studio:1": ("긍정",)}] and not report.left_out


def test_labels_of_several_choices_go_back_to_theirs(make: Make, tmp_path: Path) -> None:
    access = make(kind="multi", labels="긍정,배송,포장")
    both = {"completed_by": 1, "result": [part("sentiment", "긍정"), part("topic", "배송", "포장")]}
    come_in(access, task("하나", both))
    (found,) = go_out(access, tmp_path / "out.json")
    assert found["annotations"][0]["result"] == both["result"]


def test_the_command_writes_files_for_other_tools(make: Make, any_url: str, tmp_path: Path) -> None:
    come_in(make(), task("하나", {"completed_by": 3, "result": [part("sentiment", "긍정")]}))

    def run(file: str, tool: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "malmoi", "labels", "export", file, f"--for={tool}"]
        return subprocess.run(
            [*command, f"--database={any_url}"], capture_output=True, text=True, cwd=tmp_path
        )

    assert run("out.json", "label-studio").returncode == 0
    (found,) = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert found["annotations"][0]["completed_by"] == 3
    assert run("out.jsonl", "doccano").returncode == 0
    assert json.loads((tmp_path / "out.jsonl").read_text("utf-8"))["label"] == ["긍정"]
    assert ".json" in run("out.csv", "label-studio").stderr
    assert not (tmp_path / "out.csv").exists()
