"""Records into a clean corpus: what is kept, what is counted, and nothing that depends on how."""

import json
import os
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from malmoi.errors import InputError
from malmoi.text.cleaning.cleaner import CLEANER_VERSION, CleaningSettings
from malmoi.text.corpus import parquet_parts as text_parts
from malmoi.text.corpus import units
from malmoi.text.corpus.clean_corpus import (
    CleaningMeans,
    build_clean_corpus,
    corpus_hash,
    iter_clean_texts,
    write_clean_corpus,
)
from malmoi.text.corpus.clean_report import CleaningReport
from malmoi.text.corpus.parquet_parts import FileWriter
from malmoi.text.corpus.units import REJECT_SCHEMA, cut_units
from malmoi.text.duplicates.near import NearDuplicates
from malmoi.text.public.catalog import find_source
from malmoi.text.public.fetched import Fetched, FetchedFile, write_fetched
from malmoi.text.reading.records import iter_records
from malmoi.text.record import Record
from malmoi.workers import engines


def records(*texts: str, source: str = "a.txt") -> list[Record]:
    return [Record(id=str(n), text=text, source=source) for n, text in enumerate(texts)]


def rejected(path: Path) -> list[tuple[str, str, str | None]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row["id"], row["reason"], row["kept_id"]) for row in rows]


def build(
    texts: list[Record], folder: Path, near: NearDuplicates | None = None
) -> tuple[list[str], list[tuple[str, str, str | None]], CleaningReport]:
    (folder / "work").mkdir(parents=True)
    (folder / "out").mkdir()
    rejects = FileWriter(folder / "rejects.jsonl", REJECT_SCHEMA)
    report = build_clean_corpus(
        texts, folder / "out", folder / "work", CleaningSettings(), near=near, rejects=rejects
    )
    return list(iter_clean_texts(folder / "out")), rejected(folder / "rejects.jsonl"), report


def test_a_record_keeps_everything_but_its_dirt(tmp_path: Path) -> None:
    record = Record(id="7", text="재밌다ㅋㅋㅋㅋ 정말로 재밌다", label="긍정", source="a.csv")
    write_clean_corpus([record], tmp_path / "c", CleaningSettings())
    assert pq.read_table(tmp_path / "c" / "part-00000.parquet").to_pylist() == [
        {"id": "7", "text": "재밌다ㅋㅋ 정말로 재밌다", "label": "긍정", "source": "a.csv"}
    ]


def test_the_first_of_equal_clean_texts_is_kept_and_named(tmp_path: Path) -> None:
    texts = ["먼저 나온 텍스트입니다", "다른 텍스트 하나입니다", "먼저   나온\u200b 텍스트입니다\n"]
    kept, dropped, report = build(records(*texts, "짧다"), tmp_path)
    assert kept == texts[:2]
    assert sorted(dropped) == [("2", "duplicate", "0"), ("3", "too-short", None)]
    assert (report.read, report.kept) == (4, 2)
    assert report.dropped["duplicate"] == report.dropped["too-short"] == 1


def test_duplicates_stay_when_asked_for(tmp_path: Path) -> None:
    text = "같은 텍스트가 두 번 나온다"
    settings = CleaningSettings(drop_duplicates=False)
    assert write_clean_corpus(records(text, text), tmp_path / "c", settings).kept == 2
    assert list(iter_clean_texts(tmp_path / "c")) == [text, text]


def test_near_duplicates_name_the_text_kept_and_their_copies_do_too(tmp_path: Path) -> None:
    first = "이 영화는 처음부터 끝까지 눈을 뗄 수가 없었고 배우들의 연기도 정말 훌륭했습니다"
    near, other = f"{first}!", "배송이 빨라서 좋았는데 포장이 조금 아쉬웠던 상품입니다 참고하세요"
    kept, dropped, report = build(records(first, other, near, near), tmp_path, NearDuplicates())
    assert kept == [first, other]
    assert sorted(dropped) == [("2", "near-duplicate", "0"), ("3", "duplicate", "0")]
    assert report.dropped["near-duplicate"] == report.dropped["duplicate"] == 1
    assert (report.read, report.kept) == (4, 2)
    report_file = json.loads((tmp_path / "out" / "_report.json").read_text(encoding="utf-8"))
    assert report_file["near_duplicates"] == {
        "threshold": 0.8,
        "ngram_characters": 3,
        "hashes": 112,
        "bands": 14,
    }


def test_the_report_counts_every_source(tmp_path: Path) -> None:
    texts = records("이 텍스트는 남아 있습니다", "") + records(
        "이 텍스트는 남아 있습니다", "이것도 남아 있는 글이다", source="b/c.csv"
    )
    report = write_clean_corpus(texts, tmp_path / "c", CleaningSettings())
    found = json.loads((tmp_path / "c" / "_report.json").read_text(encoding="utf-8"))
    assert found["cleaning"] == CLEANER_VERSION == "v3"
    assert found["settings"]["min_characters"] == 10
    assert (found["read"], found["kept"]) == (4, 2)
    assert found["dropped"]["empty"] == found["dropped"]["duplicate"] == 1
    assert found["dropped"]["too-long"] == 0
    assert found["sources"] == {
        "a.txt": {"read": 2, "kept": 1, "dropped": {"empty": 1}},
        "b/c.csv": {"read": 2, "kept": 1, "dropped": {"duplicate": 1}},
    }
    assert CleaningReport.read_from(tmp_path / "c") == report
    assert report.summary() == "2 of 4 texts kept (dropped: 1 empty, 1 duplicate)"


def test_nothing_left_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found none left of 2 after cleaning.*\"too-short\": 2"):
        write_clean_corpus(records("네", "응"), tmp_path / "deep" / "c", CleaningSettings())
    assert not list(tmp_path.iterdir())


def test_half_a_surrogate_pair_is_no_reason_to_stop(tmp_path: Path) -> None:
    odd = Record(
        id="a\ud83d", text="반쪽 \ud83d 이모지가 든 문장", label="\udc00", source="a.jsonl"
    )
    short = Record(id="b", text="\ud83d", source="a.jsonl")
    kept, dropped, _ = build([odd, short], tmp_path)
    assert kept == ["반쪽 이모지가 든 문장"]
    assert dropped == [("b", "empty", None)]


def test_a_whole_file_in_one_line_is_dropped_before_it_costs_time(tmp_path: Path) -> None:
    # Cleaned, it would be "ㅋㅋ" and too short.
    kept, dropped, _ = build(records("ㅋ" * 1_000_001, "이 텍스트는 남아 있습니다"), tmp_path)
    assert (kept, dropped) == (["이 텍스트는 남아 있습니다"], [("0", "too-long", None)])


def test_units_are_cut_by_number_and_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "RECORDS_PER_UNIT", 3)
    monkeypatch.setattr(units, "CHARACTERS_PER_UNIT", 10)
    cut = cut_units(records("가", "나", "다", "라" * 12, "마", "바" * 9, "사"))
    assert [unit.ids for unit in cut] == [["0", "1", "2"], ["3"], ["4", "5"], ["6"]]


def test_parts_hold_a_fixed_number_of_rows_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "RECORDS_PER_UNIT", 7)
    monkeypatch.setattr(text_parts, "ROWS_PER_GROUP", 10)
    monkeypatch.setattr(text_parts, "ROWS_PER_PART", 20)
    texts = [f"{n}번째로 남아 있는 텍스트" for n in range(47)]
    write_clean_corpus(records(*texts), tmp_path / "c", CleaningSettings())
    parts = sorted((tmp_path / "c").glob("part-*.parquet"))
    assert [pq.ParquetFile(part).metadata.num_rows for part in parts] == [20, 20, 7]
    assert [pq.ParquetFile(part).metadata.num_row_groups for part in parts] == [2, 2, 1]
    assert list(iter_clean_texts(tmp_path / "c")) == texts


def test_a_killed_worker_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "RECORDS_PER_UNIT", 10)
    # Runs in each new worker: it dies at once, as for want of memory.
    monkeypatch.setattr(engines, "begin_worker", partial(os._exit, 9))
    texts = records(*(f"{n}번째로 남아 있는 텍스트" for n in range(100)))
    with pytest.raises(InputError, match=r"a worker process was killed, .*fewer --workers"):
        build_clean_corpus(
            texts, tmp_path, tmp_path, CleaningSettings(), means=CleaningMeans(workers=2)
        )


def test_hash_tells_a_fetched_file_from_the_same_bytes_alone(tmp_path: Path) -> None:
    line = "5\t배송이 빨라서 좋았어요 다음에 또 살게요\n"
    fetched, alone = tmp_path / "fetched", tmp_path / "alone"
    for folder in (fetched, alone):
        folder.mkdir()
        (folder / "naver_shopping.txt").write_text(line, encoding="utf-8")
    before = corpus_hash(fetched)
    assert before == corpus_hash(alone)
    source = find_source("naver_shopping")
    record = Fetched(
        source=source.name,
        homepage=source.homepage,
        licence=source.licence,
        citation=source.citation,
        files={
            file.name: FetchedFile(url="", sha256="", size=0, layout=file.layout)
            for file in source.files
        },
    )
    write_fetched(fetched, record)
    assert [r.text for r in iter_records(fetched)] == ["배송이 빨라서 좋았어요 다음에 또 살게요"]
    assert corpus_hash(fetched) != before


def test_a_corpus_of_an_older_cleaner_is_still_read(tmp_path: Path) -> None:
    """With what that one made of it, and its version."""
    folder = tmp_path / "c"
    write_clean_corpus(records("별점은 ★★★★★ 입니다 정말로"), folder, CleaningSettings())
    report = folder / "_report.json"
    text = report.read_text(encoding="utf-8")
    assert f'"cleaning": "{CLEANER_VERSION}"' in text
    report.write_text(text.replace(f'"{CLEANER_VERSION}"', '"v1"'), encoding="utf-8")
    assert list(iter_clean_texts(folder)) == ["별점은 ★★★★★ 입니다 정말로"]
    assert CleaningReport.read_from(folder).cleaning == "v1"
