"""Rows and files that were left out, as visitors are told of them."""

import re
from pathlib import Path

from malmoi.app.rows_left_out import left_out_table
from malmoi.errors import InputError
from malmoi.labels.importing import WayOfReading
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.app.project_pages import finish, made


def test_place_and_reason_stand_apart() -> None:
    empty = InputError("expected a text, found an empty cell", place="표: 가.csv:3")
    found = InputError("expected a label of {offered}, found {name!r}", offered="긍정", name="화남")
    assert left_out_table([empty, found.at("표.xlsx:시트:12")]).to_numpy().tolist() == [
        ["표: 가.csv:3", "글이 빈칸입니다."],
        ["표.xlsx:시트:12", "라벨 목록에 없습니다: 화남 (목록: 긍정)"],
    ]


def test_what_is_wrong_with_a_file_is_told_in_korean(workplace: Path) -> None:
    table: tuple[tuple[str, str | bytes, str | None], ...] = (
        ("a.csv", "text,별점\n좋아요,5\n나빠요,1,2\n", "a.csv:3"),
        ("a.csv", "text,별점\n좋아요,5\n,1\n", "a.csv:3"),
        ("a.csv", "text,별점\n좋아요,5\n\u200b,1\n", "a.csv:3"),
        ("a.csv", 'text,별점\n좋아요,5\n"나빠요,1\n그냥,3\n', None),
        ("a.csv", "text,별점\n", "a.csv"),
        ("a.csv", "", "a.csv"),
        ("a.csv", b"text\n\xff\xff\x00\x81\n", None),
        ("a.jsonl", '{"text": "좋아요"}\n{"text": 나빠요}\n', "a.jsonl:2"),
        ("a.jsonl", '{"text": "좋아요"}\n["나빠요"]\n', "a.jsonl:2"),
        ("a.jsonl", '{"text": "좋아요"}\n{"text": {"글": "나빠요"}}\n', "a.jsonl:2"),
        ("a.xlsx", b"PK\x03\x04 no workbook", "a.xlsx"),
        ("a.parquet", b"PAR1", "a.parquet"),
        ("a.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a.txt"),
        ("a.txt", "\n \n", "a.txt"),
    )
    for number, (name, data, place) in enumerate(table):
        source = source_of_upload(name, data if isinstance(data, bytes) else data.encode())
        way = WayOfReading(options=ReadOptions(text_column="text" if "text" in str(data) else None))
        outcome = finish(made(name=str(number)), source, way=way)
        assert outcome.left_out_count, data
        told = left_out_table(outcome.left_out).to_numpy().tolist()
        assert told and all(re.search("[가-힣]", why) for _, why in told), outcome.left_out
        if place is not None:
            assert [where for where, _ in told] == [place], data
