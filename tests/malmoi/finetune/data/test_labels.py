"""What the labels of a file are: lists, columns of 0 and 1, equal spellings, groups."""

import csv
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from malmoi.errors import InputError
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.label_cells import labels_in, write_list
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.data.row_format import RowFormat
from malmoi.labels.label_names import (
    in_order,
    joined_by,
    nearest_label,
    nearly_equal,
    normal_label,
    parse_labels,
)
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import load_table
from tests.malmoi.finetune.conftest import save_labels

TEXTS = ["배송이 빨라요", "맛이 없어요", "값이 비싸요", "그저 그래요", "다시 살게요", "상했어요"]


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path


def labelled(folder: Path, cells: Sequence[object]) -> Path:
    """A table of six texts, or as many as there are cells."""
    rows = [(text, cell) for text, cell in zip(TEXTS, cells, strict=False)]
    return write_table(folder / "table.csv", ("text", "label"), rows)


def write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def read(
    path: Path,
    labels: Sequence[str] | None = None,
    *,
    notes: ReadingNotes | None = None,
    **form: Any,
) -> Examples:
    return read_examples(path, labels, RowFormat(**form), notes=notes)


def names_of(examples: Examples) -> list[list[str]]:
    return [[examples.labels[index] for index in ids] for ids in examples.label_sets]


def test_labels_in_a_cell() -> None:
    for cell, names in (
        ("가격", ["가격"]),
        ("가격, 배송 ,가격", ["가격", "배송"]),
        ('["가격", "배송"]', ["가격", "배송"]),
        ("['가격', '배송']", ["가격", "배송"]),
        ("('가격', '배송')", ["가격", "배송"]),
        ("{'배송', '가격'}", ["가격", "배송"]),
        ("['가격' '배송']", ["가격", "배송"]),  # as numpy prints them
        ("['가격'\n '배송']", ["가격", "배송"]),
        ('["가격, 할인"]', ["가격, 할인"]),
        ("[1, 2.0]", ["1", "2"]),
        ('{"choices": ["가격", "배송"]}', ["가격", "배송"]),
        ('{"choices": "가격"}', ["가격"]),
        ('[{"result": [{"value": {"choices": ["가격"]}}]}]', ["가격"]),
        ("[공지]", ["[공지]"]),  # a name in brackets
        ("(광고) 배송", ["(광고) 배송"]),
        ("[]", []),
        ("", []),
        (" \u200b", []),
    ):
        assert labels_in(cell, ",", "a.csv:2") == names


def test_cells_without_names() -> None:
    for cell, message in (
        ("가격,,배송", "a.csv:2: expected labels between the separators"),
        ('[[0, 5, "사람"]]', "a.csv:2: expected label names in a list, found"),
        ("[null]", "a.csv:2: expected label names in a list, found"),
        ('{"type": "E18"}', 'a.csv:2: expected label names or "choices" in the cell, found'),
    ):
        with pytest.raises(InputError) as refused:
            labels_in(cell, ",", "a.csv:2")
        assert str(refused.value).startswith(message)


def test_written_lists_are_read_back() -> None:
    for names in ([], ["가격"], ["가격, 할인", 'a"b', "[공지]"], ["1", "10"]):
        assert labels_in(write_list(names), ",", "") == names


def test_one_spelling_of_what_looks_the_same() -> None:
    for written, label in (
        (" 긍정\u200b", "긍정"),
        ("\ufeff긍정", "긍정"),
        ("긍\u200b정", "긍정"),
        ("긍정\u00a0", "긍정"),
        (unicodedata.normalize("NFD", "긍정"), "긍정"),
        ("1.0", "1"),
        ("-2.00", "-2"),
        ("1.5", "1.5"),
        ("01", "01"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),  # one picture of three
    ):
        assert normal_label(written) == label


def test_labels_of_the_flag_are_spelt_likewise() -> None:
    assert parse_labels("1.0, 긍정\u200b") == ["1", "긍정"]
    with pytest.raises(InputError, match="--labels has 1 more than once"):
        parse_labels("1,1.0")


def test_numbers_sort_by_value() -> None:
    assert in_order(["10", "9", "기타", "-1", "1.5"]) == ["-1", "1.5", "9", "10", "기타"]


def test_nearly_equal_names() -> None:
    names = ["Positive", "positive", "ＯＫ", "OK", "매우 좋음", "매우좋음", "01", "1"]
    names += ["❤\ufe0f", "❤", "\u22122", "-2", "부정"]
    assert nearly_equal(names) == [
        ["Positive", "positive"],
        ["ＯＫ", "OK"],
        ["매우 좋음", "매우좋음"],
        ["01", "1"],
        ["❤\ufe0f", "❤"],
        ["\u22122", "-2"],
    ]


def test_what_stands_between_labels() -> None:
    assert joined_by(["가#나", "가", "나"], "#;", alone=True) == "#"
    assert joined_by(["가;나", "나;다", "가;다"], "#;", alone=False) == ";"
    assert joined_by(["서울;남구", "부산;남구", "부산;중구", "서울;중구"], ";", alone=True) is None
    for alone in (True, False):
        assert joined_by(["C#", "C", "Java"], "#;", alone=alone) is None
        assert joined_by(["가", "나"], "#;", alone=alone) is None


def test_equal_labels_are_one_class(tmp_path: Path) -> None:
    for cells, labels in (
        (
            ["긍정", "긍정\u200b", " 긍정 ", "부정", unicodedata.normalize("NFD", "부정"), "부정"],
            {"긍정": 3, "부정": 3},
        ),
        (["1", "1.0", "0", "0.0", "1", "0"], {"0": 3, "1": 3}),
        (["10", "9", "10", "9", "10", "9"], {"9": 3, "10": 3}),
        (
            ['["긍정"]', "['부정']", "긍정", '{"choices": ["부정"]}', "긍정", "부정"],
            {"긍정": 3, "부정": 3},
        ),
    ):
        counts = read(labelled(tmp_path, cells)).counts
        assert list(counts.items()) == list(labels.items())


def test_a_label_that_goes_on_like_another_is_that_one() -> None:
    assert nearest_label("기타문의", ["기", "배송", "교환문의", "기타"]) == "기타"
    assert nearest_label("일긔", ["일기", "일정"]) == "일기"
    assert nearest_label("0.5", ["4.5", "3.5"]) is None


def test_nearly_equal_labels_are_asked_about(tmp_path: Path) -> None:
    data = labelled(tmp_path, ["Positive", "positive", "negative"] * 2)
    with pytest.raises(InputError, match=r"Positive \(2, first .*positive \(2, .*--labels"):
        read(data)
    assert read(data, ["negative", "positive", "Positive"]).counts["Positive"] == 2
    with pytest.raises(InputError, match="did you mean positive"):
        read(data, ["negative", "positive"])


def test_several_labels_want_another_task(tmp_path: Path) -> None:
    for cell in ('["가격", "배송"]', '{"choices": ["가격", "배송"]}'):
        data = labelled(tmp_path, ["가격", cell, "배송"])
        with pytest.raises(
            InputError, match=r"table\.csv:3.*found 2 \(가격, 배송\); give --task multi"
        ):
            read(data)
        assert names_of(read(data, task="multi")) == [["가격"], ["가격", "배송"], ["배송"]]


def test_another_separator_is_asked_about(tmp_path: Path) -> None:
    for mark in ("#", ";", "|", "/", "+", "·", "、", "，"):
        data = labelled(tmp_path, ["가격", f"가격{mark}배송", "배송"])
        with pytest.raises(InputError, match=rf'give --set data.label_separator="\{mark}"'):
            read(data, task="multi")
        with pytest.raises(InputError, match=r"give --task multi --set data\.label_separator"):
            read(data)
        found = read(data, task="multi", label_separator=mark)
        assert names_of(found) == [["가격"], ["가격", "배송"], ["배송"]]
        assert len(read(data, task="multi", label_separator=",").labels) == 3


def test_a_text_without_a_label(tmp_path: Path) -> None:
    data = labelled(tmp_path, ["", "가격", "", "배송", "가격,배송"])
    found = read(data, task="multi")
    assert names_of(found) == [[], ["가격"], [], ["배송"], ["가격", "배송"]]
    assert (found.without_label, found.unlabelled) == (2, 0)
    assert found.targets.sum() == 4
    found = read(data, task="multi", skip_unlabelled=True)
    assert names_of(found) == [["가격"], ["배송"], ["가격", "배송"]]
    assert (found.without_label, found.unlabelled) == (0, 2)
    with pytest.raises(InputError, match="give --task multi"):
        read(data)
    with pytest.raises(InputError, match=r"1 of 3 rows .* have no label"):
        read(labelled(tmp_path, ["", "가격", "배송"]))
    found = read(labelled(tmp_path, ["", "가격", "배송"]), skip_unlabelled=True)
    assert (found.labels, len(found.texts), found.unlabelled) == (["가격", "배송"], 2, 1)


def test_an_empty_cell_beside_empty_lists_is_no_text_of_no_label(tmp_path: Path) -> None:
    data = labelled(tmp_path, ["", "가격", "[]", "배송", "가격,배송", ""])
    with pytest.raises(InputError, match=r"2 of 6 rows .* first is .*:2, while 1 say by \[\]"):
        read(data, task="multi")
    found = read(data, task="multi", skip_unlabelled=True)
    assert names_of(found) == [["가격"], [], ["배송"], ["가격", "배송"]]
    assert (found.without_label, found.unlabelled) == (1, 2)


def said(*labels: str, **more: bool) -> dict[str, object]:
    """An annotation of Label Studio."""
    return {"result": [{"type": "choices", "value": {"choices": list(labels)}}], **more}


def tasks(folder: Path, *annotations: list[dict[str, object]]) -> Path:
    found = [
        {"id": n, "data": {"text": f"글 {n}"}, "annotations": one}
        for n, one in enumerate(annotations)
    ]
    (folder / "ls.json").write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    return folder / "ls.json"


def test_of_annotations_those_count_that_hold(tmp_path: Path) -> None:
    for task in ("single", "multi"):
        reading = ReadOptions(text_column="data.text")
        columns: dict[str, Any] = {"reading": reading, "label_column": "annotations"}
        held = [
            [said("가격"), said("배송", was_cancelled=True)],
            [said("배송"), said("배송"), said("가격", ground_truth=False, was_cancelled=True)],
            [said("배송"), said("가격", ground_truth=True)],
        ]
        found = read(tasks(tmp_path, *held), task=task, **columns)
        assert found.counts == {"가격": 2, "배송": 1}
        # Two who differ are no text with both labels.
        with pytest.raises(InputError, match="annotators who agree on a text, found 가격 and 배송"):
            read(tasks(tmp_path, *held, [said("가격"), said("배송")]), task=task, **columns)
        # Nor is a text that nobody has labelled one of no label.
        nobody = tasks(tmp_path, *held, [], [said("가격", was_cancelled=True)])
        with pytest.raises(
            InputError, match=r"2 of 5 rows .* have no label, the first is .*id 3; "
        ):
            read(nobody, task=task, **columns)
        found = read(nobody, task=task, skip_unlabelled=True, **columns)
        assert (len(found.texts), found.unlabelled, found.without_label) == (3, 2, 0)


def test_a_value_counts_however_it_is_written(tmp_path: Path) -> None:
    rows = [("가", "나", "4.50"), ("가", "나", "4.5"), ("다", "라", "2"), ("다", "라", "3")]
    data = write_table(tmp_path / "pairs.csv", ("sentence1", "sentence2", "score"), rows)
    found = read(data, task="pair-regression")
    assert found.values == [4.5, 2.0]
    assert (found.repeats, found.contradictions) == (1, 1)
    write_table(data, ("sentence1", "sentence2", "score"), [*rows, ("마", "바", "4,5")])
    with pytest.raises(InputError, match="found '4,5'; correct it, with a point before decimals"):
        read(data, task="pair-regression")


def test_no_row_with_a_label_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at least two labels in .*, found none; "):
        read(labelled(tmp_path, ["", "", ""]), task="multi")


ONE_HOT = [(text, place % 2, int(place > 1), "메모") for place, text in enumerate(TEXTS)]


def test_columns_of_0_and_1(tmp_path: Path) -> None:
    for name in ("onehot.tsv", "onehot.csv"):
        data = write_table(tmp_path / name, ("text", "배송", "품질", "비고"), ONE_HOT)
        found = read(data, task="multi")
        assert found.labels == ["배송", "품질"] and found.label_columns == ("배송", "품질")
        assert names_of(found) == [
            [],
            ["배송"],
            ["품질"],
            ["배송", "품질"],
            ["품질"],
            ["배송", "품질"],
        ]
        said: list[str] = []
        read(data, notes=ReadingNotes(say=said.append), task="multi")
        assert said[0].startswith(f"reading {name}: texts from column 'text', parted by ")
        named = read(data, task="multi", label_column="품질, 배송")
        assert names_of(named) == names_of(found)
        with pytest.raises(
            InputError, match=r"columns of 0 and 1 \(배송, 품질\): give --task multi"
        ):
            read(data)
        with pytest.raises(InputError, match="expected 0 or 1 in 비고, found '메모'"):
            read(data, task="multi", label_column="배송,비고")


def test_columns_of_o_and_x(tmp_path: Path) -> None:
    for yes, no in (("O", "X"), ("O", ""), ("Ｏ", "Ｘ"), ("○", "×"), ("Y", "N"), ("예", "아니오")):
        rows = [(text, *(yes if cell else no for cell in cells)) for text, *cells, _ in ONE_HOT]
        data = write_table(tmp_path / "ox.csv", ("text", "배송", "품질"), rows)
        found = read(data, task="multi")
        assert found.labels == ["배송", "품질"]
        assert names_of(found)[:4] == [[], ["배송"], ["품질"], ["배송", "품질"]]
        with pytest.raises(InputError, match=r"\(배송, 품질\): give --task multi"):
            read(data)


def test_one_wrong_cell_does_not_lose_a_label(tmp_path: Path) -> None:
    rows = [(f"글 {place} {text}", *cells) for place in range(5) for text, *cells, _ in ONE_HOT]
    rows = [(*row, place % 2, place) for place, row in enumerate(rows)]
    rows[7] = (*rows[7][:3], 2, 7)
    header = ("text", "배송", "품질", "가격", "좋아요")
    data = write_table(tmp_path / "onehot.csv", header, rows)
    with pytest.raises(InputError, match=r"cell of 가격, as in 배송, 품질, found '2'.* 1 of 30"):
        read(data, task="multi")
    found = read(data, task="multi", label_column="배송,품질")
    assert found.labels == ["배송", "품질"]


def test_json_lines_with_lists_and_objects(tmp_path: Path) -> None:
    doccano = [
        {"id": place, "text": text, "label": [["긍정", "부정"][place % 2]], "Comments": []}
        for place, text in enumerate(TEXTS)
    ]
    assert read(write_lines(tmp_path / "a.jsonl", doccano)).counts == {
        "긍정": 3,
        "부정": 3,
    }
    nested = [
        {"data": {"text": text}, "labels": {"kind": place % 2}, "note": [1]}
        for place, text in enumerate(TEXTS)
    ]
    data = write_lines(tmp_path / "b.jsonl", nested)
    found = read(data, reading=ReadOptions(text_column="data.text"), label_column="labels.kind")
    assert found.texts == TEXTS and found.label_ids == [0, 1, 0, 1, 0, 1]
    with pytest.raises(InputError, match=r"--text-column, as one of data\.text"):
        read(data)


def test_lists_of_an_upload_are_shown(tmp_path: Path) -> None:
    rows = [{"text": "가", "label": ["긍정", "부정"], "meta": {"age": 3}}]
    data = write_lines(tmp_path / "a.jsonl", rows).read_bytes()
    (row,) = load_table("a.jsonl", data).to_dict("records")
    assert row["label"] == '["긍정", "부정"]' and row["meta.age"] == "3"


def test_pairs_as_klue_has_them(tmp_path: Path) -> None:
    inference = [
        {"guid": str(place), "premise": text, "hypothesis": TEXTS[place - 1], "gold_label": kind}
        for place, (text, kind) in enumerate(zip(TEXTS, ["맞음", "틀림"] * 3, strict=True))
    ]
    found = read(write_lines(tmp_path / "nli.jsonl", inference), task="pair")
    assert found.labels == ["맞음", "틀림"] and found.pairs == [TEXTS[-1], *TEXTS[:-1]]
    likeness = [
        {
            "sentence1": text,
            "sentence2": TEXTS[place - 1],
            "labels": {"label": 3.7, "real-label": place + 0.5, "binary-label": place % 2},
        }
        for place, text in enumerate(TEXTS)
    ]
    data = write_lines(tmp_path / "sts.jsonl", likeness)
    assert read(data, task="pair-regression").values == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert read(data, task="pair").label_ids == [0, 1, 0, 1, 0, 1]


CLASS_LABEL = {"names": ["부정", "긍정"], "_type": "ClassLabel"}


def arrow_table(labels: list[Any], feature: object) -> pyarrow.Table:
    """As the library `datasets` writes one: the names of the labels beside the columns."""
    features = {"text": {"dtype": "string", "_type": "Value"}, "label": feature}
    about = json.dumps({"info": {"features": features}})
    table = pyarrow.table({"text": TEXTS, "label": labels})
    return table.replace_schema_metadata({"huggingface": about})


def test_named_classes_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    pyarrow.parquet.write_table(arrow_table([0, 1, 1, 0, 1, 1], CLASS_LABEL), path)
    assert read(path).counts == {"긍정": 4, "부정": 2}
    several = {"feature": CLASS_LABEL, "_type": "List"}
    table = arrow_table([[0], [0, 1], [], [1], [0], [1]], several)
    pyarrow.parquet.write_table(table, path)
    found = names_of(read(path, task="multi"))
    assert found[:3] == [["부정"], ["긍정", "부정"], []]


@pytest.mark.parametrize("stream", [True, False])
def test_a_folder_that_save_to_disk_wrote(tmp_path: Path, stream: bool) -> None:
    folder = tmp_path / "saved" / "train"
    folder.mkdir(parents=True)
    table = arrow_table([0, 1, 1, 0, 1, 1], CLASS_LABEL)
    path = folder / "data-00000-of-00001.arrow"
    make = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with make(path, table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text('{"_data_files": []}')
    assert read(tmp_path / "saved").counts == {"긍정": 4, "부정": 2}
    with pytest.raises(InputError, match=r"2 of 6 rows"):
        table = arrow_table([-1, 1, 1, 0, 1, -1], CLASS_LABEL)
        with make(path, table.schema) as writer:
            writer.write_table(table)
        read(tmp_path / "saved")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="expected an Arrow file, found a damaged"):
        read(tmp_path / "saved")


def test_texts_that_belong_together(tmp_path: Path) -> None:
    rows = [
        (text, place % 2, writer)
        for place, (text, writer) in enumerate(
            zip(TEXTS, ["ㄱ", "ㄴ", "ㄱ", "", "", "ㄴ"], strict=True)
        )
    ]
    data = write_table(tmp_path / "table.csv", ("text", "label", "writer"), rows)
    groups = read(data, group_column="writer").groups
    assert groups is not None
    assert groups[0] == groups[2] and groups[1] == groups[5]
    assert len(set(groups.tolist())) == 4  # without a writer a text stands alone
    assert read(data).groups is None
    with pytest.raises(InputError, match=r"no group column: .* with --set data\.group_column"):
        read(data, group_column="who")


def test_the_label_database_has_no_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    save_labels(f"sqlite:///{path}", [(text, "가나"[n % 2]) for n, text in enumerate(TEXTS)])
    assert read(path).counts == {"가": 3, "나": 3}
    with pytest.raises(InputError, match=r"leave out data\.group_column"):
        read(path, group_column="annotator")


def test_only_some_of_the_texts(tmp_path: Path) -> None:
    found = read(labelled(tmp_path, ["가", "나"] * 3)).only(np.array([1, 4]))
    assert (found.texts, found.label_ids) == ([TEXTS[1], TEXTS[4]], [1, 0])
    assert found.counts == {"가": 1, "나": 1}
