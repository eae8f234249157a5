"""Files of Label Studio and doccano come in with their labels, and go out as those tools read."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.exporting import export_for
from malmoi.labels.importing import FileOrigin, WayOfReading, import_files
from malmoi.labels.people import Person
from malmoi.labels.review import texts_with_votes
from malmoi.labels.text_import import ImportReport
from malmoi.text.reading.sources import Source, find_sources, source_of_upload
from tests.malmoi.labels.conftest import Make

# As Label Studio exports it: full users, or ids alone.
TASKS: list[dict[str, Any]] = [
    {
        "id": 7,
        "data": {"text": "배송 빨라요 👍🏽", "별점": 5},
        "annotations": [
            {
                "id": 31,
                "completed_by": {"id": 1, "email": "a@b.kr", "first_name": "", "last_name": ""},
                "result": [
                    {
                        "id": "x1",
                        "from_name": "sentiment",
                        "to_name": "text",
                        "type": "choices",
                        "origin": "manual",
                        "value": {"choices": ["긍정"]},
                    }
                ],
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": "2026-01-02T03:04:05.000006Z",
                "lead_time": 4.288,
            },
            {
                "id": 32,
                "completed_by": 10,
                "result": [{"type": "choices", "value": {"choices": ["부정"]}}],
                "was_cancelled": False,
                "ground_truth": False,
                "lead_time": None,
            },
            {
                "id": 33,
                "completed_by": {"email": "c@b.kr"},
                "result": [{"type": "choices", "value": {"choices": ["긍정"]}}],
                "was_cancelled": False,
                "ground_truth": True,
            },
        ],
        "drafts": [],
        "predictions": [],
        "meta": {},
        "project": 3,
    },
    {
        "id": 8,
        "data": {"text": "모르겠다", "별점": 3},
        "annotations": [
            {
                "completed_by": 10,
                # Chosen, and then cancelled all the same.
                "result": [{"type": "choices", "value": {"choices": ["긍정"]}}],
                "was_cancelled": True,
            }
        ],
        "predictions": [],
    },
    {
        "id": 9,
        "data": {"text": "다른 라벨", "별점": 1},
        "annotations": [
            {"completed_by": 10, "result": [{"type": "choices", "value": {"choices": ["화남"]}}]}
        ],
        "predictions": [],
    },
]
EXAMPLES = [
    {"id": 1, "text": "좋아요", "label": ["긍정"], "Comments": ["확실함"], "별점": 5},
    {"id": 2, "text": "아직", "label": [], "Comments": [], "별점": 3},
]


def come_in(
    access: ProjectAccess, sources: Sequence[Source], origin: FileOrigin, annotator: str = "관리자"
) -> ImportReport:
    me = replace(access, person=Person(name=annotator, is_local=True))
    return import_files(me, sources, WayOfReading(origin=origin))


def votes(access: ProjectAccess) -> list[tuple[str, dict[str, tuple[str, ...]], Any]]:
    return [
        (
            text.text,
            {vote.annotator: ("건너뜀",) if vote.skipped else vote.labels for vote in text.votes},
            text.adjudicated,
        )
        for text in texts_with_votes(access, range(1, 100))
    ]


def test_label_studio_comes_in_and_goes_round(make: Make, tmp_path: Path) -> None:
    first = make(name="하나")
    sources = [source_of_upload("ls.json", json.dumps(TASKS, ensure_ascii=False).encode())]
    report = come_in(first, sources, "label-studio")
    assert (report.new_texts, report.labels) == (3, 4)
    assert report.left_out_count == 1
    assert [one.reason.facts["name"] for one in report.left_out] == ["화남"]
    expected: list[Any] = [
        ("배송 빨라요 👍🏽", {"a@b.kr": ("긍정",), "label-studio:10": ("부정",)}, ("긍정",)),
        ("모르겠다", {"label-studio:10": ("건너뜀",)}, None),
        ("다른 라벨", {}, None),
    ]
    assert votes(first) == expected
    assert come_in(first, sources, "label-studio").labels == 0
    path = tmp_path / "out.json"
    assert export_for(first, path, "label-studio") == 3
    tasks = json.loads(path.read_text("utf-8"))
    assert [task["data"] for task in tasks] == [task["data"] for task in TASKS]
    choices = tasks[0]["annotations"][0]["result"][0]
    assert choices["type"] == "choices" and choices["value"] == {"choices": ["긍정"]}
    second = make(name="둘")
    come_in(second, find_sources(path), "label-studio")
    assert [one for one in votes(second)] == expected


def test_choices_that_are_no_list_are_named_and_the_text_comes_in(make: Make) -> None:
    for value in (None, "긍정", {"choices": "긍정"}, {}):
        access = make(name=repr(value))
        annotation = {"completed_by": 1, "result": [{"type": "choices", "value": value}]}
        task = {"data": {"text": "글"}, "annotations": [annotation]}
        report = come_in(
            access, [source_of_upload("ls.json", json.dumps([task]).encode())], "label-studio"
        )
        assert votes(access) == [("글", {}, None)], value
        (bad,) = map(str, report.left_out)
        assert "ls.json" in bad and "value.choices" in bad, value


def test_an_unknown_label_keeps_the_others_of_its_row(make: Make) -> None:
    access = make()

    def of(who: str, label: Any, truth: bool = False) -> dict[str, Any]:
        result = [{"type": "choices", "value": {"choices": label}}]
        return {"completed_by": {"email": who}, "result": result, "ground_truth": truth}

    tasks = [
        {
            "data": {"text": "하나"},
            "annotations": [
                *(of("a@b.kr", ["긍정"]), of("c@b.kr", ["화남"]), of("d@b.kr", "긍정"), "아님"),
                *(of("r@b.kr", ["부정"], True), of("s@b.kr", ["화남"], True)),
            ],
        },
        {
            "data": {"text": "둘"},
            "annotations": [of("a@b.kr", ["긍정"]), of("r@b.kr", ["화남"], True)],
        },
        {
            "data": {"text": "셋"},
            # A name that cannot be stored is found only when all are saved at once.
            "annotations": [of("가\x00", ["긍정"]), of("a@b.kr", ["부정"])],
        },
    ]
    report = come_in(
        access, [source_of_upload("ls.json", json.dumps(tasks).encode())], "label-studio"
    )
    assert votes(access) == [
        ("하나", {"a@b.kr": ("긍정",)}, ("부정",)),
        ("둘", {"a@b.kr": ("긍정",)}, None),
        ("셋", {"a@b.kr": ("부정",)}, None),
    ]
    assert report.labels == 4
    assert report.left_out_count == len(report.left_out) == sum(report.reasons.values()) == 6
    unknown = [one for one in map(str, report.left_out) if "expected a label of" in one]
    assert len(unknown) == 3 and all(one.startswith("ls.json:") for one in unknown)


def test_doccano_comes_in_and_goes_round(make: Make, tmp_path: Path) -> None:
    first = make(name="하나")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in EXAMPLES)
    report = come_in(
        first, [source_of_upload("admin.jsonl", lines.encode())], "doccano", annotator="admin"
    )
    assert (report.new_texts, report.labels, report.left_out) == (2, 2, [])
    expected = [("좋아요", {"admin": ("긍정",)}, None), ("아직", {}, None)]
    assert votes(first) == expected
    path = tmp_path / "out.jsonl"
    assert export_for(first, path, "doccano") == 2
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[0]["Comments"] == ["admin: 확실함"]
    assert [(row["text"], row["label"], row["별점"]) for row in rows] == [
        ("좋아요", ["긍정"], 5),
        ("아직", [], 3),
    ]
    second = make(name="둘")
    come_in(second, find_sources(path), "doccano", annotator="admin")
    assert votes(second) == expected
    # Nor does a comment get the name in front again with each way round.
    export_for(second, tmp_path / "again.jsonl", "doccano")
    again = (tmp_path / "again.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["Comments"] for line in again] == [["admin: 확실함"], []]


def test_exports_of_older_versions_come_in_or_say_why_not(make: Make) -> None:
    access = make()
    result = {"type": "choices", "value": {"choices": ["부정"]}}
    task = {"data": {"text": "둘"}, "completions": [{"completed_by": 1, "result": [result]}]}
    for name, rows, tool in (
        ("a.jsonl", {"text": "하나", "labels": ["긍정"], "meta": {}}, "doccano"),
        ("b.json", [task], "label-studio"),
    ):
        source = source_of_upload(name, json.dumps(rows).encode())
        assert come_in(access, [source], tool, annotator="지은").labels == 1  # type: ignore[arg-type]
    assert [labels for _, labels, _ in votes(access)] == [
        {"지은": ("긍정",)},
        {"label-studio:1": ("부정",)},
    ]
    numbers = {"text": "셋", "annotations": [{"label": 1, "user": 1}]}
    with pytest.raises(InputError, match="'label' or 'labels'"):
        come_in(access, [source_of_upload("c.jsonl", json.dumps(numbers).encode())], "doccano")


def test_an_empty_project_goes_out_as_an_empty_file(make: Make, tmp_path: Path) -> None:
    access = make()
    assert export_for(access, tmp_path / "a.json", "label-studio") == 0
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == []
