"""`malmoi tokenizer train` and `evaluate` as their users meet them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from filelock import FileLock
from tokenizers import Regex, pre_tokenizers
from transformers import AutoTokenizer

from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.tokenizer import evaluation
from malmoi.tokenizer.measures import cut_by_kiwi, load_any_tokenizer, measure
from tests.malmoi.tokenizer.conftest import KINDS, Pair

ROOT = Path(__file__).parents[3]
COMMENTS = ROOT / "corpora" / "comments"


class Run(Protocol):
    def __call__(self, *flags: str) -> tuple[int, str, str]: ...


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process, which has loaded the libraries already."""

    def call(*flags: str) -> tuple[int, str, str]:
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
        code = main(["tokenizer", *flags])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


def test_the_package_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tokenizer", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "train" in done.stdout and "evaluate" in done.stdout


def test_train_writes_a_tokenizer_and_says_what_it_was_trained_on(tmp_path: Path, run: Run) -> None:
    flags = ["train", "--corpus", str(COMMENTS), "--vocab-size", "2048", "--model", "bpe"]
    output = tmp_path / "made"
    code, _, error = run(*flags, "--max-sample-bytes", "40000", "--output", str(output))
    assert (code, error) == (0, "")
    assert len(AutoTokenizer.from_pretrained(output)) == 2_048
    names = {"tokenizer.json", "tokenizer_config.json", "sentencepiece.model", "training.json"}
    assert {path.name for path in output.iterdir()} == names
    record = json.loads((output / "training.json").read_text(encoding="utf-8"))
    assert record["settings"]["model"] == "bpe"
    assert record["cleaning"]["kept"] == record["sample"]["of_texts"] > record["sample"]["texts"]
    assert record["sample"]["bytes"] <= 40_000
    assert len(record["sample"]["sha256"]) == len(record["corpus_sha256"]) == 64
    assert record["analyser"] is None
    code, _, error = run(*flags, "--output", str(output))
    assert code == 2
    assert error.startswith("error: expected a new directory for --output")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_train_with_morphemes_records_the_analyser(tmp_path: Path, run: Run) -> None:
    corpus = tmp_path / "comments.txt"
    corpus.write_text(
        "영화를 학교에서 봤는데 정말 재밌었어요\n" * 3 + "배우가 연기를 참 잘하네요\n"
    )
    flags = ["--corpus", str(corpus), "--vocab-size", "1024", "--output", str(tmp_path / "made")]
    code, _, error = run("train", *flags, "--morphemes")
    assert (code, error) == (0, "")
    record = json.loads((tmp_path / "made" / "training.json").read_text(encoding="utf-8"))
    assert record["analyser"].startswith("kiwipiepy 0.")
    assert record["analyser_failed_texts"] == 0


def test_bad_flags_are_one_line_and_leave_nothing(tmp_path: Path, run: Run) -> None:
    output = str(tmp_path / "made")
    for flags, message in [
        (["train", "--corpus", str(tmp_path / "no"), "--output", output], "no such file"),
        (
            ["train", "--corpus", str(COMMENTS), "--output", output, "--vocab-size", "10"],
            "expected --vocab-size from 1024",
        ),
        (["trane"], "expected a command of train, evaluate, found 'trane'; see --help"),
        (["evaluate", output, "--corpus", str(COMMENTS)], "expected a tokenizer directory"),
    ]:
        code, _, error = run(*flags)
        assert code == 2
        assert error.count("\n") == 1, error
        assert error.startswith("error: ") and message in error
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_into_one_directory_is_refused_at_once(tmp_path: Path, run: Run) -> None:
    output = tmp_path / "made"
    with FileLock(tmp_path / ".made.lock"):
        code, printed, error = run("train", "--corpus", str(COMMENTS), "--output", str(output))
    assert (code, printed, error.count("\n")) == (2, "", 1)
    assert f"found one at work on {output}" in error and not output.exists()


def test_evaluate_compares_directories_and_vocabularies(
    tmp_path: Path, pair_of: Callable[..., Pair], run: Run
) -> None:
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n영\n##화\n재밌\n", encoding="utf-8")
    ours = str(pair_of("wordpiece").directory)
    output = tmp_path / "compared.json"
    flags = ["--corpus", str(COMMENTS / "games.txt"), str(COMMENTS / "news.txt")]
    code, printed, _ = run("evaluate", ours, str(vocabulary), *flags, "--output", str(output))
    assert code == 0
    assert "tok/char" in printed
    table = json.loads(output.read_text(encoding="utf-8"))
    assert len(table["rows"]) == 4
    by_name = {(row["tokenizer"], Path(row["corpus"]).stem): row for row in table["rows"]}
    assert by_name[ours, "games"]["unknown_tokens"] < 0.01
    assert by_name[str(vocabulary), "games"]["unknown_tokens"] > 0.9
    assert table["analyser"].startswith("kiwipiepy")
    assert (tmp_path / "compared.png").read_bytes().startswith(b"\x89PNG")


def vocabulary_file(folder: Path, *entries: str) -> Path:
    path = folder / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", *entries]) + "\n", encoding="utf-8")
    return path


def test_measures_of_a_vocabulary_made_by_hand(tmp_path: Path) -> None:
    entries = ["학교", "##에서", "갔", "##다", "재", "##밌어요", "[unused0]"]
    tokenizer = load_any_tokenizer(vocabulary_file(tmp_path, *entries))
    texts = ["학교에서 갔다", "재밌어요 뷁뷁"]
    # Kiwi: 학교|에서 갔|다 / 재밌|어요 뷁뷁 (one noun)
    measures = measure(tokenizer, texts, cut_by_kiwi(texts))
    assert measures.entries == 9
    assert measures.tokens_per_character == pytest.approx(7 / 12)
    assert measures.tokens_per_eojeol == pytest.approx(7 / 4)
    assert measures.unknown_tokens == pytest.approx(1 / 7)
    assert measures.unknown_characters == pytest.approx(2 / 12)
    assert measures.morpheme_precision == pytest.approx(2 / 3)
    assert measures.morpheme_recall == pytest.approx(2 / 3)
    assert measures.entries_used == 1
    assert measures.texts_per_second > 0


def test_cuts_are_counted_by_whose_they_are(tmp_path: Path) -> None:
    """Precision is of the tokenizer's cuts, recall of Kiwi's, which are more here."""
    tokenizer = load_any_tokenizer(vocabulary_file(tmp_path, "학교에서", "갔", "##다", "[UNUSED1]"))
    texts = ["학교에서 갔다"]
    # Kiwi: 학교|에서 갔|다
    measures = measure(tokenizer, texts, cut_by_kiwi(texts))
    assert measures.morpheme_precision == 1
    assert measures.morpheme_recall == pytest.approx(1 / 2)
    assert measures.morpheme_f1 == pytest.approx(2 / 3)
    assert measures.entries_used == 1


def test_spaces_inside_unknown_tokens_are_no_characters(tmp_path: Path) -> None:
    """One [UNK] may stand for several words."""
    tokenizer = load_any_tokenizer(vocabulary_file(tmp_path, "가"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("[가-나]"), "isolated")
    texts = ["가뷁 뷁"]
    measures = measure(tokenizer, texts, cut_by_kiwi([]))
    assert measures.unknown_tokens == pytest.approx(1 / 2)
    assert measures.unknown_characters == pytest.approx(2 / 3)


def test_measures_of_a_vocabulary_without_entries(tmp_path: Path) -> None:
    tokenizer = load_any_tokenizer(vocabulary_file(tmp_path))
    measures = measure(tokenizer, ["학교에서 갔다"], cut_by_kiwi([]))
    assert (measures.unknown_tokens, measures.entries_used) == (1, 0)


def test_pieces_of_one_character_are_no_cuts(pair_of: Callable[..., Pair]) -> None:
    """A rare syllable in jamo, or an emoji in bytes, is not cut inside."""
    for kind in KINDS:
        tokenizer = load_any_tokenizer(pair_of(kind).directory)
        texts = ["쉟", "🦖"]
        measures = measure(tokenizer, texts, cut_by_kiwi(texts))
        assert measures.tokens_per_character > 1
        assert measures.morpheme_precision == measures.morpheme_f1 == 0


def test_a_file_that_is_no_vocabulary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("가\n나\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"vocab\.txt: expected a BERT vocabulary with \[UNK\]"):
        load_any_tokenizer(path)
    with pytest.raises(InputError, match="found one twice"):
        load_any_tokenizer(vocabulary_file(tmp_path, "가", "가"))
    path.write_bytes("[UNK]\n가".encode("cp949"))
    with pytest.raises(InputError, match="vocabulary in UTF-8"):
        load_any_tokenizer(path)


def test_evaluate_holds_no_corpus_in_memory(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare, read = evaluation.compare, []

    def watched(tokenizers: Any, corpora: Any, **more: Any) -> Any:
        read.extend(isinstance(texts, list | tuple) for texts in corpora.values())
        return compare(tokenizers, corpora, **more)

    monkeypatch.setattr(evaluation, "compare", watched)
    ours = str(vocabulary_file(tmp_path, "영"))
    assert run("evaluate", ours, "--corpus", str(COMMENTS / "games.txt"))[0] == 0
    assert read == [False]
    missing = run("evaluate", ours, "--corpus", str(COMMENTS / "games.txt"), "nowhere.txt")
    assert missing[0] == 2 and "nowhere.txt" in missing[2]
