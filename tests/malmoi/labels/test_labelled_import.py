"""Tables with labels come in with them; hundreds of acts at once are what one by one would be."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from malmoi.commands.labels import LabelsSettings
from malmoi.commands.labels import main as command
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.bulk_labels import save_acts_of_others
from malmoi.labels.importing import WayOfReading, import_files
from malmoi.labels.label_book import LabelBook
from malmoi.labels.label_column import labels_of_cell
from malmoi.labels.people import AccessError
from malmoi.labels.review import texts_with_votes
from malmoi.labels.tables import AnnotationRow, PlaceRow, TextRow
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.labels.conftest import Make, for_person


def acts(first: int) -> list[tuple[str, Act]]:
    """Two annotators on three texts: labels, a skip, a change of mind."""

    def act(number: int, text: int, who: str, label: str | None) -> tuple[str, Act]:
        return who, Act(
            text_id=first + text,
            kind="skip" if label is None else "label",
            request_id=f"{first}:{number}",
            labels=[] if label is None else [label],
            seconds=1.5,
        )

    return [
        act(0, 0, "민수", "긍정"),
        act(1, 0, "지은", "부정"),
        act(2, 1, "민수", None),
        act(3, 1, "지은", "중립"),
        act(4, 2, "민수", "중립"),
        act(5, 2, "민수", "긍정"),
    ]


def rows(access: ProjectAccess) -> list[list[tuple[Any, ...]]]:
    """All that acts write, without ids and times; choices by the names of their labels."""
    columns = {
        TextRow: ("text", "votes", "is_open", "disagrees"),
        PlaceRow: ("annotator", "state", "expires_at", "drawn", "choice"),
        AnnotationRow: (
            *("annotator", "kind", "choice", "flagged", "note", "withdraws"),
            *("guideline_version", "suggested_label", "drawn", "seconds"),
        ),
    }
    found = []
    with access.reading() as connection:
        book = LabelBook(access, connection)
        for table, names in columns.items():
            query = (
                select(*(getattr(table, name) for name in names))
                .where(table.project_id == access.project_id)  # type: ignore[attr-defined]
                .order_by(table.id)  # type: ignore[attr-defined]
            )
            found.append(
                [
                    tuple(
                        book.labels(cell) if name == "choice" and cell else cell
                        for name, cell in zip(names, row, strict=True)
                    )
                    for row in connection.execute(query)
                ]
            )
    return found


def first_text(access: ProjectAccess) -> int:
    with access.reading() as connection:
        mine = TextRow.project_id == access.project_id
        return min(connection.scalars(select(TextRow.id).where(mine)))


@pytest.mark.parametrize("annotators", [1, 2])
def test_many_at_once_write_what_one_by_one_would(make: Make, annotators: int) -> None:
    texts = ("하나입니다", "둘입니다", "셋입니다")
    people = {"민수": "annotator", "지은": "annotator"}
    one, many = (
        make(*texts, name=name, people=people, annotators_per_text=annotators)
        for name in ("하나씩", "한꺼번에")
    )
    for name, act in acts(first_text(one)):
        save_acts(for_person(one, name), [act])
    whole = acts(first_text(many))
    assert save_acts_of_others(many, whole[:3]) == 3
    assert save_acts_of_others(many, whole) == 3
    assert save_acts_of_others(many, whole) == 0
    assert rows(many) == rows(one)


def test_what_does_not_fit_is_refused_whole(make: Make) -> None:
    access = make("하나입니다", "둘입니다", people={"민수": "annotator"})
    text = first_text(access)
    good = ("민수", Act(text_id=text, kind="label", request_id="a", labels=["긍정"]))
    for wrong in (
        Act(text_id=text, kind="label", request_id="b", labels=["화남"]),
        Act(text_id=999, kind="label", request_id="b", labels=["긍정"]),
        Act(text_id=text + 1, kind="label", request_id="a", labels=["긍정"]),
    ):
        with pytest.raises(InputError):
            save_acts_of_others(access, [good, ("민수", wrong)])
    with pytest.raises(AccessError):
        save_acts_of_others(for_person(access, "민수"), [good])
    assert texts_with_votes(access, [text])[0].votes == ()


# An annotation of Label Studio.
SAID = '{"result": [{"value": {"choices": ["%s"]}}]}'


def test_what_a_cell_of_labels_says() -> None:
    for cell, kind, expected in (
        (None, "single", None),
        ("  ", "single", None),
        ("긍정", "single", ["긍정"]),
        (1.0, "single", ["1"]),
        ('["긍정"]', "single", ["긍정"]),
        ("[]", "single", None),
        ("[]", "multi", []),
        ([], "multi", None),
        ("배송, 가격", "multi", ["배송", "가격"]),
        ("배송|가격", "multi", ["배송", "가격"]),
        ("가격, 할인", "multi", ["가격, 할인"]),
        ("배송;가격, 할인", "multi", ["배송", "가격, 할인"]),
        ("긍정+배송、가격", "multi", ["긍정", "배송", "가격"]),
        ("배송;", "multi", ["배송;"]),
        ("배송, 모름", "multi", ["배송, 모름"]),
        ('["배송", "가격"]', "multi", ["배송", "가격"]),
        ("[배송", "multi", ["[배송"]),
        ("배송#가격", "multi", ["배송", "가격"]),
        ("['배송', '가격']", "multi", ["배송", "가격"]),
        ('{"choices": ["배송", "가격"]}', "multi", ["배송", "가격"]),
        (f"[{SAID % '배송'}]", "single", ["배송"]),
        (f'[{SAID % "배송"}, {{"was_cancelled": true, {SAID[1:] % "가격"}]', "multi", ["배송"]),
        (f'[{{"was_cancelled": true, {SAID[1:] % "가격"}]', "multi", None),
    ):
        names = ["배송", "가격", "가격, 할인", "긍정", "1"]
        assert labels_of_cell(cell, kind, names) == expected  # type: ignore[arg-type]


def test_a_label_that_prodigy_had_rejected_is_left_out(make: Make) -> None:
    access = make()
    rows = [
        {"text": f"글 {n}", "label": "긍정", "answer": answer, "_task_hash": n}
        for n, answer in enumerate(("accept", "reject"))
    ]
    source = source_of_upload("a.jsonl", "\n".join(map(json.dumps, rows)).encode())
    done = import_files(access, [source], WayOfReading(label_column="label"))
    assert (done.new_texts, done.labels, done.bad_labels.count) == (2, 1, 1)


def test_a_column_that_is_not_there_is_an_error(make: Make) -> None:
    access = make()
    source = source_of_upload("표.csv", "text,label\n하나입니다,긍정\n".encode())
    with pytest.raises(InputError, match="expected a column '라벨' with labels"):
        import_files(access, [source], WayOfReading(label_column="라벨"))


def test_the_command_says_what_is_new_and_each_fault_once(
    make: Make, any_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make()
    table = tmp_path / "표.csv"

    def said(lines: list[str], annotator: str = "지은") -> str:
        table.write_text("\n".join(["text,라벨", *lines]), encoding="utf-8")
        settings = LabelsSettings(
            action="import",
            files=(table,),
            database=any_url,
            label_column="라벨",
            annotator=annotator,
        )
        command(settings)
        return capsys.readouterr().err

    lines = ["하나입니다,긍정", "둘입니다,부정"]
    assert "2 new texts of 2 rows, 2 new labels" in said(lines)
    again = said(lines)
    assert "imported before, nothing is new" in again and "2 new texts" not in again
    assert "imported before: 0 new texts, 2 new labels" in said(lines, "민수")
    many = said([f"{number}번 글입니다,{number % 2}" for number in range(30)])
    assert "표.csv:2: " in many and len(many.splitlines()) < 12
    wrong = "15 labels: expected a label of 긍정, 부정, 중립, found"
    assert f"{wrong} '0'" in many and f"{wrong} '1'" in many


def test_labels_that_were_not_asked_for_are_named(
    make: Make, any_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make()
    for row, flags in (
        ({"text": "글입니다", "감정": "긍정"}, "--label-column '감정'"),
        ({"text": "글입니다", "label": ["긍정"], "Comments": []}, "--from doccano"),
        ({"text": "제목", "data": {"text": "글"}, "annotations": []}, "--from label-studio"),
        ({"text": "글입니다", "별점": 5}, None),
    ):
        file = tmp_path / "rows.jsonl"
        file.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
        command(LabelsSettings(action="import", files=(file,), database=any_url))
        said = capsys.readouterr().err
        assert "texts only" not in said if flags is None else f"come in with {flags}\n" in said, row
