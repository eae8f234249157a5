"""The cards of the released checkpoints: what they say is what the records and results say."""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from malmoi.errors import InputError
from tests.release.conftest import (
    RECORD,
    ROOT,
    plan_of,
    write_json,
    write_records,
    write_weights,
)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """release/scores_table.py, with nothing measured yet."""
    module = importlib.import_module("release.scores_table")
    monkeypatch.setattr(module, "QUALITY", tmp_path / "quality.json")
    return module


@pytest.fixture
def released(measured: ModuleType, tmp_path: Path) -> Path:
    """A folder with the records of a release, where cards are written to."""
    return write_records(tmp_path / "checkpoints")


def card_of(released: Path, name: str = "malmoi-small") -> str:
    """The card, written anew by release.py --cards, in one line."""
    release = importlib.import_module("release.make")
    release.main(release.ReleaseSettings(output=released, cards=True))
    return (released / name / "README.md").read_text(encoding="utf-8").replace("\n", " ")


def test_cards_say_what_the_records_say(measured: ModuleType, released: Path) -> None:
    sha256 = write_weights(released / "malmoi-small")
    rows: list[dict[str, Any]] = [
        {"part": "test", "task": "nsmc", "encoder": "malmoi-small", "seed": seed, "accuracy": score}
        for seed, score in enumerate((88.0, 89.0))
    ]
    for row, typos in zip(rows, (85.0, 86.0), strict=True):
        row["weights_sha256"] = sha256
        row["spoilt"] = {"as written": 88.0, "typos": typos, "CP949": 88.0}
    others = rows[0] | {"accuracy": 1.0}
    rows += [others | {"part": "dev", "task": "kote"}, others | {"weights_sha256": "0" * 64}]
    write_json(measured.QUALITY, {"runs": rows})
    encoder = card_of(released)
    for fact in (
        "7.4 million parameters",
        "50 million tokens (12,345 steps) in 2.0 hours",
        "seed 7",
        "Every figure is `benchmarks/quality/score.py`'s",
        "Those of NSMC were fixed beforehand, by pilots",
        "88.00; means over 2 seeds): typos -2.50, CP949 0.00. Cleaning",
        "NSMC is a rebuilt split",
        "took 10 minutes for reviews and 10 minutes for memos.",
        "its classifier has macro F1 0.8100: [malmoi-small-memos](../malmoi-small-memos/",
    ):
        assert fact in encoder
    assert "Not measured yet" not in encoder and "correction_weight" not in encoder
    assert "on everyday sentences, comments of 12 platforms and petitions to the" in encoder
    assert (
        "| 14,455 | MIT |" in encoder
        and "| 3 | public record; the archive states no licence" in encoder
    )
    assert "| accuracy | 88.50 ± 0.71 (2) |  |  |" in encoder
    assert "| this encoder | 7.4M | 88.50 |  |  |  |" in encoder
    assert "| DistilKoBERT |  | 88.41 | 73.21 | 92.48 |  |" in encoder
    memos = card_of(released, "malmoi-small-memos")
    assert "0.8100 (standard deviation 0.0141); texts: 꿈 500, 오류 501." in memos
    assert "Rated reviews alone (1,000): 0.7000." in memos
    assert "calibration error falls from 0.108 to 0.034" in memos


def test_the_card_names_a_discriminator_that_corrects(released: Path) -> None:
    record = RECORD | {"plan": plan_of(recipe="few-tokens")}
    write_json(released / "malmoi-small" / "run.json", record)
    assert (
        "guesses what stood there (`objective.correction_weight=5`), in batches of 4,096 tokens at"
        in card_of(released)
    )


def test_emoji_that_the_vocabulary_lacks_are_counted(released: Path) -> None:
    emoji = importlib.import_module("release.cards").EMOJI

    def save(known: str) -> None:
        words = {word: number for number, word in enumerate(["[UNK]", *known])}
        tokenizer = Tokenizer(WordPiece(words, unk_token="[UNK]"))
        tokenizer.save(str(released / "malmoi-small" / "tokenizer.json"))

    save(emoji[:3])
    assert "its vocabulary has 3: others are one and the same [UNK]" in card_of(released)
    save(emoji)
    assert "emoji" not in card_of(released)


def test_a_card_names_the_folder_it_lies_in(
    released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'AutoModel.from_pretrained("malmoi-small")' in card_of(released)
    monkeypatch.setattr(importlib.import_module("release.cards"), "ROOT", released.parent)
    place = f"{released.name}/malmoi-small"
    assert f'AutoModel.from_pretrained("{place}")' in card_of(released)
    assert f'"{place}-memos", truncation' in card_of(released, "malmoi-small-memos")


def test_figures_are_explained_where_there_are_some(measured: ModuleType, released: Path) -> None:
    encoder = card_of(released)
    assert "Not measured yet." in encoder and "Every figure" not in encoder
    assert "KoELECTRA" not in encoder
    sha256 = write_weights(released / "malmoi-small")
    row = {"part": "test", "task": "kote", "encoder": "malmoi-small", "weights_sha256": sha256}
    write_json(measured.QUALITY, {"runs": [row | {"macro_f1": 30.0}]})
    encoder = card_of(released)
    assert "Every figure" in encoder and "KoELECTRA" not in encoder
    assert "were chosen on a part of the training file." in encoder
    chosen = {"part": "dev", "task": "korsts", "dev_file": True, "spearman": 30.0}
    others = [{"spearman": 30.0, "task": "korsts"}, chosen, chosen | {"task": "questions"}]
    write_json(measured.QUALITY, {"runs": [row | {"macro_f1": 30.0}, *(row | o for o in others)]})
    assert "of KorSTS and question pairs on the dev file." in card_of(released)
    assert "Thresholds of KOTE" in encoder and "cosine" not in encoder
    assert "fixed beforehand" not in encoder and "spoilt" not in encoder
    assert "project's own texts" not in encoder
    own = row | {"task": "memos", "texts_sha256": measured.file_sha256(measured.OWN_TEXTS["memos"])}
    write_json(measured.QUALITY, {"runs": [own | {"macro_f1": 80.0}]})
    assert "project's own texts were chosen on other folds" in card_of(released)
    row |= {"task": "korsts", "spearman": 38.5}
    write_json(measured.QUALITY, {"runs": [row]})
    encoder = card_of(released)
    assert "the last column is no SVM but the cosine" in encoder
    assert "| this encoder | 7.4M |  | 38.50 |  |  |" in encoder
    # Another encoder in its folder, or rows from before they named weights.
    for rows, weights in (([row], b"newer"), ([row | {"weights_sha256": None}], b"weights")):
        write_json(measured.QUALITY, {"runs": rows})
        write_weights(released / "malmoi-small", weights)
        encoder = card_of(released)
        assert "Not measured yet." in encoder and "38.50" not in encoder


def test_memos_are_compared_with_the_linear_classifier_as_it_was_measured(
    measured: ModuleType, released: Path
) -> None:
    def row_of(task: str, linear: float | None) -> dict[str, Any]:
        row = {"part": "test", "task": task, "encoder": measured.LINEAR, "macro_f1": linear}
        return row | {"texts_sha256": measured.file_sha256(measured.OWN_TEXTS[task])}

    def limits(linear: float | None) -> str:
        row = row_of("memos", linear)
        write_json(measured.QUALITY, {"runs": [] if linear is None else [row]})
        return card_of(released, "malmoi-small-memos")

    assert "is better on these memos (macro F1 0.8111," in limits(81.11)
    assert "macro F1 0.8100, below the 0.8111 of a linear classifier" in card_of(released)
    assert "has 0.8089 on these memos" in limits(80.89)
    assert "is better" not in limits(80.89) + limits(None)
    written = {"written": {"texts": 9, "macro_f1": 0.7}}
    report = released / "malmoi-small-reviews" / "report.json"
    write_json(report, json.loads(report.read_text()) | {"by_origin": written})
    row = row_of("written", 70.1)
    write_json(measured.QUALITY, {"runs": [row]})
    better = "is better on these written reviews (macro F1 0.7010,"
    assert better in card_of(released, "malmoi-small-reviews")
    # Texts that have been mended since are others.
    write_json(measured.QUALITY, {"runs": [row | {"texts_sha256": "0" * 64}]})
    assert "No simpler classifier was" in card_of(released, "malmoi-small-reviews")
    # That of the committed results.
    results = json.loads((ROOT / "benchmarks" / "results" / "quality.json").read_text("utf-8"))
    assert measured.LINEAR in {run["encoder"] for run in results["runs"]}


def test_what_is_said_of_test_files_is_said_of_the_corpus_it_is_true_of(
    measured: ModuleType, released: Path
) -> None:
    names = ("malmoi-small", "malmoi-small-reviews")
    for name in names:
        card = card_of(released, name)
        assert "nobody has looked which" in card and "official" not in card
        assert "question" not in card and "rented" not in card
    (known,) = importlib.import_module("release.cards").OTHER_TESTS
    record = RECORD | {"corpus_sha256": known}
    write_json(released / "malmoi-small" / "run.json", record)
    for name in names:
        card = card_of(released, name)
        assert "official `ratings_test.txt`" in card and "nor compare such a figure" in card
    encoder = card_of(released)
    # Whose machine it was only the weights tell.
    assert "rented" not in encoder and "card of the encoder" not in encoder
    assert "and none of the question pairs" in encoder
    record = record | {"plan": plan_of(init="checkpoints/mine")}
    write_json(released / "malmoi-small" / "run.json", record)
    assert "see the card of the encoder that it went on from, too." in card_of(released)


def test_a_card_says_what_its_encoder_went_on_from(released: Path) -> None:
    record = RECORD | {"plan": plan_of(init="checkpoints/mine")}
    write_json(released / "malmoi-small" / "run.json", record)
    card = card_of(released)
    assert "further from `mine`" in card and "It went on from `mine`, with its tokenizer" in card
    assert "from nothing" not in card and "skip-gram" not in card


def test_the_card_says_what_is_no_fair_comparison(measured: ModuleType, released: Path) -> None:
    own = {"weights_sha256": write_weights(released / "malmoi-small"), "encoder": "malmoi-small"}
    random = {"encoder": "malmoi-small, random weights", "shape": "12 x 256, 30,522 entries"}

    def row_of(
        whose: dict[str, str], epochs: int, score: float, part: str = "test"
    ) -> dict[str, Any]:
        row = {"part": part, "task": "kote", "epochs": epochs, "learning_rate": 5e-4}
        return whose | row | {"macro_f1": score}

    write_json(measured.QUALITY, {"runs": [row_of(own, 3, 46.0), row_of(random, 3, 32.0)]})
    card = card_of(released)
    assert "fine-tuned otherwise" not in card and "second time" not in card
    rows = [row_of(own, 10, 46.0), row_of(random, 3, 32.0)]
    rows.append(row_of(own, 3, 43.5, "test, first look"))
    write_json(measured.QUALITY, {"runs": rows})
    card = card_of(released)
    assert "worse, on kote (10 epochs at 0.0005, they 3 epochs at 0.0005)." in card
    assert "first time: kote 43.50 (1) with 3 epochs at 0.0005." in card
    assert "| 46.00 (1) | 32.00 (1) |" in card
    # Both chosen from the same settings: each has its best.
    rows += [row_of(whose, epochs, 40.0, "dev") for whose in (own, random) for epochs in (3, 10)]
    rows.append(row_of(random, 3, 31.0, "test, first look"))
    write_json(measured.QUALITY, {"runs": rows})
    card = card_of(released)
    assert "fine-tuned otherwise" not in card
    assert "3 epochs at 0.0005, kote random weights 31.00 (1) with 3 epochs at 0.0005." in card
    # But not by the same texts.
    on_file = [
        row | ({"dev_file": True} if row["part"] == "dev" and "shape" not in row else {})
        for row in rows
    ]
    write_json(measured.QUALITY, {"runs": on_file})
    assert "worse, on kote" in card_of(released)
    rows = [row for row in rows if (row["part"], row["epochs"]) != ("dev", 10)]
    rows.append(row_of(own, 10, 40.0, "dev"))
    write_json(measured.QUALITY, {"runs": rows})
    assert "worse, on kote" in card_of(released)
    # Random weights of another shape say nothing of this one.
    for row in rows:
        row |= {"shape": "2 x 64, 30,522 entries"} if "shape" in row else {}
    write_json(measured.QUALITY, {"runs": rows})
    assert "| 46.00 (1) |  |" in card_of(released)


def test_the_card_says_what_the_vocabulary_does_to_spoilt_texts(
    measured: ModuleType, released: Path
) -> None:
    row = {"part": "test", "task": "nsmc", "encoder": "malmoi-small", "accuracy": 88.0}
    row |= {"weights_sha256": write_weights(released / "malmoi-small")}
    write_json(measured.QUALITY, {"runs": [row | {"spoilt": {"as written": 88.0, "typos": 85.0}}]})
    assert "another (fine-tuned" not in card_of(released)
    others = [
        {"encoder": f"vocabulary of {name}", "spoilt": {"as written": 86.0, "typos": score}}
        for name, score in (("kcbert-base", 84.5), ("malmoi-small", 83.0))
    ]
    write_json(measured.QUALITY.with_name("quality_vocabularies.json"), {"runs": others})
    card = card_of(released)
    assert "vocabulary of kcbert-base: as written 86.00, typos -1.50;" in card
    assert "vocabulary of malmoi-small: as written 86.00, typos -3.00." in card


def test_students_of_the_encoder_have_a_row_of_their_own(
    measured: ModuleType, released: Path
) -> None:
    sha256 = write_weights(released / "malmoi-small")
    row = {"part": "test", "task": "nsmc", "encoder": "malmoi-small", "weights_sha256": sha256}
    write_json(measured.QUALITY, {"runs": [{**row, "accuracy": 88.0}]})
    assert "self-training" not in card_of(released)
    how = {"arm": "student", "teachers": "0,1", "epochs": 2, "batch_size": 64}
    students: list[dict[str, Any]] = [
        {**how, "learning_rate": 4e-4, "weights_sha256": whose, "part": part, "accuracy": score}
        for whose, part, score in (
            (sha256, "test", 89.5),
            (sha256, "test", 89.7),
            (sha256, None, 20.0),
            ("0" * 64, "test", 20.0),
        )
    ]
    path = measured.QUALITY.with_name("self_training.json")
    setting = {"unlabelled": 4_000, "dev_size": 700}
    write_json(path, {"setting": setting, "runs": students[2:]})
    assert "self-training" not in card_of(released)
    write_json(path, {"setting": setting, "runs": students})
    card = card_of(released)
    assert (
        "NSMC, with self-training on 4,000 unlabelled reviews | accuracy | 89.60 ± 0.14 (2) |"
        in card
    )
    assert "2 fine-tuned encoders and logistic regression" in card and "365 of" not in card
    assert "of 4,000 other reviews is" in card and "700 labelled reviews were kept out" in card
    write_json(path, {"setting": setting, "runs": [*students, {**students[0], "epochs": 3}]})
    with pytest.raises(InputError, match=r"self_training\.json: expected students of one setting"):
        card_of(released)


def test_the_card_says_where_the_generator_comes_from(measured: ModuleType, released: Path) -> None:
    assert "No generator is released with it" in card_of(released)
    folder = released / "malmoi-small" / "generator"
    folder.mkdir()
    assert "`generator/` was trained beside it" in card_of(released)
    record = {
        "plan": {"objective": {"schedule": "frozen-discriminator"}},
        "networks": {"generator": {"num_hidden_layers": 4, "hidden_size": 64}},
        "progress": {"tokens": 20_000_238, "seconds": 1_800},
    }
    write_json(folder / "run.json", record)
    with pytest.raises(InputError, match=r"generator.run\.json, found another"):
        card_of(released)
    rows = [{"generator_loss": loss, "generator_accuracy": 0.3} for loss in (9.0, *[4.5] * 20)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    card = card_of(released)
    assert "(4 layers, 64 wide) was trained afterwards" in card
    assert "20 million tokens of the same corpus in 30 minutes" in card
    assert "with a loss of 4.50, 30% of the masked tokens guessed" in card


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("malmoi-small/run.json", None, "expected .*run.json, found none"),
        ("malmoi-small/run.json", [], "expected a JSON object in .*run.json, found list"),
        ("malmoi-small/run.json", {}, r"run\.json, found another \(KeyError\('networks'\)\)"),
        ("malmoi-small/model.safetensors", None, r"weights in .*model\.safetensors, found none"),
        ("malmoi-small/corpus.json", None, "expected .*corpus.json, found none"),
        ("malmoi-small/corpus.json", {}, r"corpus\.json, found another \(KeyError\('sources'\)\)"),
        (
            "malmoi-small/corpus.json",
            {"sources": {"my_reviews.csv": {"kept": 3}}},
            r"corpus\.json: expected files of reviews_rated.*, found my_reviews\.csv; add",
        ),
        ("malmoi-small-memos/report.json", None, "expected .*report.json, found none"),
        ("malmoi-small-memos/report.json", {"folds": []}, r"report\.json, found another"),
    ],
)
def test_cards_of_what_is_no_release_are_refused_and_none_is_written(
    released: Path, file: str, content: Any, message: str
) -> None:
    if content is None:
        (released / file).unlink()
    else:
        write_json(released / file, content)
    with pytest.raises(InputError, match=message):
        card_of(released)
    assert not list(released.rglob("README.md"))


def test_a_damaged_record_is_named(released: Path) -> None:
    (released / "malmoi-small" / "run.json").write_text('{"plan": ', encoding="utf-8")
    with pytest.raises(InputError, match=r"expected JSON in .*run\.json, found Expecting value"):
        card_of(released)
