"""Kiwi inside cleaning: sentences, spaces, masks that stay whole, failures that are counted."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from malmoi.__main__ import main
from malmoi.text import morphemes
from malmoi.text.cleaning.cleaner import CleaningSettings, clean_batch, clean_text
from malmoi.text.cleaning.personal_data import MASKS
from malmoi.text.cleaning.spacing import AnalysedTexts, Analysis, analyse_batch
from malmoi.text.corpus import units
from malmoi.text.corpus.clean_corpus import CleaningMeans, build_clean_corpus
from malmoi.text.corpus.clean_report import CleaningReport
from malmoi.text.corpus.parquet_parts import FileWriter
from malmoi.text.corpus.units import REJECT_SCHEMA
from malmoi.text.duplicates.near import NearDuplicates
from malmoi.text.record import Record

SPLIT = Analysis(split_sentences=True)
SPACE = Analysis(correct_spacing=True)
BOTH = Analysis(split_sentences=True, correct_spacing=True)
# kiwipiepy 0.24.1 writes 됐네 for 됬네 in it, which spacing must not.
FAILING = (
    "명작이다 일부 영화제데로 이해못한사람이 평점 짜게줘나서 평점 저리됬네 이명작을 ㅡㅡ "
    "이해력 낮은사람보면 재미없다고 느낄영화"
)


def analysed(*texts: str, how: Analysis) -> AnalysedTexts:
    settings = CleaningSettings()
    return analyse_batch(list(texts), clean_batch(list(texts), settings), settings, how)


def test_sentences() -> None:
    for text, sentences in (
        (
            "정말 재밌어요. 010-1234-5678로 연락 바랍니다!",
            [("정말 재밌어요.", "too-short"), ("[전화]로 연락 바랍니다!", None)],
        ),
        (
            "배송이 빨라서 좋았어요ㅋㅋㅋㅋ 다음에 또 살게요",
            [("배송이 빨라서 좋았어요ㅋㅋ", None), ("다음에 또 살게요", "too-short")],
        ),
        # A blank line ends a sentence, another line break does not.
        (
            "오늘의 새로운 제목\n \n내용이 길게\n이어집니다",
            [("오늘의 새로운 제목", None), ("내용이 길게 이어집니다", None)],
        ),
        # Cut there, nothing would tell the account number from another.
        ("입금할 곳\n\n110-123-456789 부탁합니다", [("입금할 곳 [계좌] 부탁합니다", None)]),
        # 됀 is 되 and ㄴ다 to Kiwi, which cuts inside it.
        ("후회됀다. 알아보고 볼 걸", [("후회됀다.", "too-short"), ("알아보고 볼 걸", "too-short")]),
    ):
        found = analysed(text, how=SPLIT)
        assert list(zip(found.texts, found.reasons, strict=True)) == sentences
        assert found.sentences == list(range(1, len(sentences) + 1))


def test_spacing() -> None:
    for text, spaced, reason in (
        ("아버지가방에들어가신다", "아버지가 방에 들어가신다", None),
        ("이미 잘 띄어 쓴 글입니다", "이미 잘 띄어 쓴 글입니다", None),
        # Long enough once it is spaced.
        ("너무재밌어요진짜", "너무 재밌어요 진짜", None),
        ("재밌음", "재밌음", "too-short"),
        # Kiwi alone: [주민 번호].
        ("주민번호는900101-1234567입니다", "주민 번호는 [주민번호]입니다", None),
        ("메일a.b@naver.com로보내주세요", "메일 [이메일]로 보내 주세요", None),
        # Kiwi alone: two spaces.
        ("좋다 라이언필립 연기도 좋음ㅋㅋ", "좋다 라이언 필립 연기도 좋음 ㅋㅋ", None),
    ):
        found = analysed(text, how=SPACE)
        assert (found.texts, found.reasons, found.sentences) == ([spaced], [reason], [None])
        assert not found.failed


def test_masks_stay_whole_and_the_result_is_stable(comments: list[str]) -> None:
    for how in (SPLIT, SPACE, BOTH):
        with (
            Path(__file__).with_name("personal_data.tsv").open(encoding="utf-8", newline="") as file
        ):
            texts = [row[0] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
        texts += comments[:150]
        texts += [f"{text}{mask}{text}" for mask in MASKS.values() for text in comments[:8]]
        found = analysed(*texts, how=how)
        before = "".join(clean_text(text) for text in texts)
        after = "".join(found.texts)
        for mask in MASKS.values():
            assert before.count(mask) == after.count(mask) > 0
        # At most spaces change, and nothing more to clean is left.
        assert "".join(before.split()) == "".join(after.split()) and not found.failed
        assert [clean_text(text) for text in found.texts] == found.texts


def test_empty_broken_and_overlong_texts_are_left_whole(tmp_path: Path) -> None:
    broken = "안녕하세요. 반갑습니다.".encode().decode("cp949", "replace")
    texts = ["", broken, "가나다라. " * 200_001, "남아 있는 문장입니다."]
    report, rows, rejects = build(records(*texts), tmp_path, SPLIT)
    assert [row["id"] for row in rows] == ["3:1"]
    assert [(r["id"], r["reason"]) for r in rejects] == [
        ("0", "empty"),
        ("1", "mojibake"),
        ("2", "too-long"),
    ]
    assert report.read == 4


def records(*texts: str, source: str = "a.txt") -> list[Record]:
    return [
        Record(id=str(n), text=text, label=f"라벨{n}", source=source)
        for n, text in enumerate(texts)
    ]


def build(
    texts: list[Record], folder: Path, analysis: Analysis, **options: Any
) -> tuple[CleaningReport, list[dict[str, str]], list[dict[str, str]]]:
    """The report, the rows kept, the rows rejected."""
    work, out, file = folder / "work", folder / "out", folder / "rejects.jsonl"
    work.mkdir(parents=True)
    out.mkdir()
    report = build_clean_corpus(
        texts,
        out,
        work,
        CleaningSettings(),
        analysis=analysis,
        rejects=FileWriter(file, REJECT_SCHEMA),
        **options,
    )
    rejects = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return report, pq.read_table(out / "part-00000.parquet").to_pylist(), rejects


def test_sentences_keep_label_and_source_and_are_counted(tmp_path: Path) -> None:
    texts = records("정말 재밌는 영화였어요. 별로. 다음에 또 보러 가고 싶네요.") + records(
        "정말재밌는영화였어요. 꼭 다시 보고 싶은 작품입니다.", source="b.csv"
    )
    report, rows, rejects = build(texts, tmp_path, BOTH)
    assert [(r["id"], r["text"], r["label"], r["source"]) for r in rows] == [
        ("0:1", "정말 재밌는 영화였어요.", "라벨0", "a.txt"),
        ("0:3", "다음에 또 보러 가고 싶네요.", "라벨0", "a.txt"),
        ("0:2", "꼭 다시 보고 싶은 작품입니다.", "라벨0", "b.csv"),
    ]
    # Spaced before duplicates are looked for.
    assert [(r["id"], r["reason"], r["text"], r["kept_id"]) for r in rejects] == [
        ("0:2", "too-short", "별로.", None),
        ("0:1", "duplicate", "정말 재밌는 영화였어요.", "0:1"),
    ]
    found = json.loads((tmp_path / "out" / "_report.json").read_text(encoding="utf-8"))
    assert found["analysis"] == {
        "split_sentences": True,
        "correct_spacing": True,
        "analyser": morphemes.analyser_version(),
    }
    assert (found["read"], found["kept"]) == (5, 3)
    assert (found["before_splitting"], found["analyser_failed"]) == (2, 0)
    assert found["sources"]["a.txt"] == {
        "read": 3,
        "kept": 2,
        "dropped": {"too-short": 1},
        "analyser_failed": 0,
        "before_splitting": 1,
    }
    assert CleaningReport.read_from(tmp_path / "out") == report
    assert report.summary() == (
        "3 of 5 sentences of 2 texts kept (dropped: 1 too-short, 1 duplicate)"
    )


def test_a_text_that_kiwi_cannot_space_passes_unchanged_and_is_counted(tmp_path: Path) -> None:
    report, rows, _ = build(
        records("너무재밌어요진짜") + records(FAILING, source="b"), tmp_path, SPACE
    )
    assert [row["text"] for row in rows] == ["너무 재밌어요 진짜", FAILING]
    found = json.loads((tmp_path / "out" / "_report.json").read_text(encoding="utf-8"))
    assert found["analyser_failed"] == 1 and "before_splitting" not in found
    assert {name: s["analyser_failed"] for name, s in found["sources"].items()} == {
        "a.txt": 0,
        "b": 1,
    }
    assert report.summary() == (
        "2 of 2 texts kept (dropped: none); the analyser failed on 1, which passed unchanged"
    )
    assert CleaningReport.read_from(tmp_path / "out") == report


@pytest.fixture
def broken_kiwi(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An analyser that fails on every text with 나쁜 in it, as a C++ library does."""
    kiwi = morphemes._kiwi(os.getpid())

    class Broken:
        def __getattr__(self, name: str) -> Any:
            def call(text: str, **options: Any) -> Any:
                if "나쁜" in text:
                    raise RuntimeError("bad allocation")
                return getattr(kiwi, name)(text, **options)

            return call

    monkeypatch.setattr(morphemes, "_kiwi", lambda process: Broken())
    yield


@pytest.mark.usefixtures("broken_kiwi")
def test_a_text_that_cannot_be_split_stays_whole_and_counts_once(tmp_path: Path) -> None:
    texts = records("좋은영화였어요. 또보러가고싶어요.", "나쁜영화였어요. 환불해주세요.")
    report, rows, _ = build(texts, tmp_path, BOTH)
    assert [(row["id"], row["text"]) for row in rows] == [
        ("0:2", "또 보러 가고 싶어요."),
        ("1", "나쁜영화였어요. 환불해주세요."),
    ]
    assert report.sources["a.txt"]["analyser_failed"] == 1


def test_workers_give_the_same_bytes(
    tmp_path: Path, comments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "RECORDS_PER_UNIT", 30)
    texts = records(*comments[:100], FAILING)
    for workers in (1, 2):
        means = CleaningMeans(workers=workers)
        report, _, rejects = build(
            texts, tmp_path / str(workers), BOTH, near=NearDuplicates(), means=means
        )
        assert report.read > len(texts) and rejects
    one, two = (
        {p.name: p.read_bytes() for p in (tmp_path / n).rglob("*") if p.is_file()} for n in "12"
    )
    assert one == two and len(one) >= 7


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kiwi_is_not_imported_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("이 텍스트는 남아 있습니다\n", encoding="utf-8")
    commands = [
        ["clean", str(tmp_path / "a.txt"), "--output", str(tmp_path / "c"), "--workers", "1"],
        ["stats", str(tmp_path / "a.txt")],
    ]
    code = (
        "import sys; from malmoi.__main__ import main; "
        f"print([main(command) for command in {commands}], 'kiwipiepy' in sys.modules)"
    )
    assert run_python(code).endswith("[0, 0] False\n")
    assert json.loads((tmp_path / "c" / "_report.json").read_text())["analysis"] is None


@pytest.mark.usefixtures("broken_kiwi")
def test_keywords_of_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["영화 영화가 재밌었다", "영화를 봤는데 연기가 좋았다", "이 영화 좋아요", "나쁜 영화"]
    (tmp_path / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    assert main(["stats", str(tmp_path / "a.txt"), "--keywords", "2"]) == 0
    assert capsys.readouterr().out.endswith(
        "keywords of 4 texts:\n  영화 (noun): 4\n  좋다 (adjective): 2\n"
    )
    assert main(["stats", str(tmp_path / "a.txt"), "--keywords", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keywords"] == {
        "keywords": [{"word": "영화", "word_class": "noun", "texts": 4}],
        "texts": 4,
    }
    assert main(["stats", str(tmp_path / "a.txt"), "--keywords", "-1"]) == 2
    assert "expected --keywords of at least 0, found -1" in capsys.readouterr().err


def test_keywords_look_at_a_sample_of_long_corpora(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from malmoi.commands import stats

    monkeypatch.setattr(stats, "_KEYWORD_TEXTS", 20)
    lines = [f"영화 {n}" for n in range(200)]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    assert main(["stats", str(tmp_path / "a.txt"), "--keywords", "1"]) == 0
    out = capsys.readouterr().out
    assert "texts: 200\n" in out and out.endswith("keywords of 20 texts:\n  영화 (noun): 20\n")
