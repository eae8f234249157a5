"""The recipe of the released checkpoints: its record is checked, what travels, what is refused."""

import json
import math
import shlex
import tarfile
from pathlib import Path
from shutil import copy, copytree
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lab.release import rented_gpu
from lab.release.rented_gpu import RentedGpuSettings
from malmoi.errors import InputError
from malmoi.flags import parse_flags
from malmoi.pretrain.config.run_config import read_config
from malmoi.pretrain.config.run_plan import plan_from_json
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.pretrain.plan import Machine, plan
from malmoi.text.corpus.clean_corpus import corpus_hash
from tests.lab.release.conftest import (
    CORPUS,
    NAMES,
    RATED,
    RECORD,
    REPORT,
    ROOT,
    STEPS,
    Encoder,
    plan_of,
    write_json,
    write_reviews,
    write_weights,
    written_reviews,
)


def test_an_encoder_is_made_once_and_its_record_can_be_checked(
    small: ModuleType,
    trained: Encoder,
    tmp_path: Path,
    comments: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    copytree(trained.cache, tmp_path / "runs")
    corpus = Path(copy(trained.corpus, tmp_path))
    run = Path(copytree(trained.run, tmp_path / "released"))
    assert small.pretrain(corpus, run, STEPS * 512, 60, small.RECIPE)  # nothing is left to do
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows[1]["bag_loss"] *= 1.1
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run / "metrics.jsonl").write_text(text, encoding="utf-8")
    write_json(run / "corpus.json", CORPUS)
    # Today's recipe may be another: the record says what is repeated.
    monkeypatch.setattr(
        small, "RECIPE", ["--vocab-size", "1024", "--set", "objective.bag_weight=0"]
    )
    # A sixth of 1 - 1 / 1.1: of three losses in two rows, nothing else differs from the record.
    with pytest.raises(InputError, match=r"within 1% of the record in the mean, found 1\.5%"):
        small.check(corpus, run, steps=STEPS)
    corpus.write_text("\n".join(comments[:399]) + "\n", encoding="utf-8")
    found = rf"{json.loads((run / 'run.json').read_text())['corpus_sha256']}\), found another "
    with pytest.raises(InputError, match=rf"{found}\({corpus_hash(corpus)}\); of other texts"):
        small.check(corpus, run, steps=STEPS)


def test_a_stage_that_fails_ends_the_release_with_its_code(
    release: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.txt"
    with pytest.raises(SystemExit) as ended:
        release.pretrain(missing, tmp_path / "run", 1e6, 1, [])
    assert ended.value.code == 2
    errors = capfd.readouterr().err
    assert str(missing) in errors and "Traceback" not in errors


def test_a_release_is_not_begun_where_one_lies_already(
    release: ModuleType, tmp_path: Path, released: Path
) -> None:
    settings = release.ReleaseSettings(
        data=write_reviews(tmp_path / "data", RATED), work=tmp_path / "work", output=released
    )
    for name in ("malmoi-small", "malmoi-medium-reviews", "malmoi-small-memos"):
        with pytest.raises(InputError, match=rf"expected no {name} in .* move it away, or name an"):
            release.make(settings)
        (released / name).rename(tmp_path / name)
    settings.output = tmp_path / "file"
    settings.output.touch()
    with pytest.raises(InputError, match="expected a folder for --output, found the file"):
        release.make(settings)
    assert not settings.work.exists()


def test_a_check_repeats_the_flags_and_the_texts_of_the_record(
    release: ModuleType, tmp_path: Path, released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the recipe of today is: what was released by another can still be checked."""
    encoder = released / "malmoi-small"
    plan = plan_of(
        correction_weight=2.5,
        adam_bias_correction=False,
        tokens_per_batch=8192,
        vocab_size=16_000,
        save_steps=7,
        init="skip-gram",
    )
    write_json(encoder / "run.json", RECORD | {"plan": plan, "corpus_sha256": "0"})
    (encoder / "metrics.jsonl").write_text('{"step": 20, "discriminator_loss": 0.3}\n')
    found = release.read_released(encoder, None)
    arguments = ["--corpus", "c", *found.flags]
    given = parse_flags(PretrainSettings, program=None, about="", arguments=arguments)
    # What the run made of defaults counts, for they may be others today, or on another device.
    assert read_config(given).as_json() == {
        "recipe": "default",
        "corpus": "c",
        "seed": 7,
        "preset": "tiny",
        "learning_rate": 5e-4,
        "tokens_per_batch": 8192,
        "objective.unigram_fraction": 1.0,
        "objective.correction_weight": 2.5,
        "optimizer.adam_bias_correction": False,
        "generator.sharing": "instance",
        "model.initializer_range": 0.05,
        "batching.rows": "length",
    }
    work, commands = tmp_path / "work", []

    def run(command: list[str], check: bool) -> SimpleNamespace:
        commands.append(command[3:])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(release.subprocess, "run", run)
    monkeypatch.setattr(release, "check", lambda *arguments: None)
    data = write_reviews(tmp_path / "data", RATED)
    settings = release.ReleaseSettings(data=data, work=work, output=released, check=True)
    files = ("reviews_rated.tsv.gz", "ChatbotData.csv", "petitions_2017-08.jsonl")
    write_json(encoder / "corpus.json", {"sources": {name: {"kept": 1} for name in files}})
    release.make(settings)
    assert [command[1] for command in commands[:-1]] == ["chatbot", "petitions"]
    texts = [Path(text).name for text in commands[-1][1:-2]]
    assert texts[:2] == list(files[:2]) and len(texts) == 8
    # Of that corpus no new encoder is made.
    (work / "corpus").mkdir()
    release.make(settings)
    with pytest.raises(InputError, match=r"sources kote,petitions,.*, found .*; this recipe has"):
        release.make(release.ReleaseSettings(data=data, work=work, output=tmp_path / "new"))
    write_json(encoder / "corpus.json", {"sources": {}})
    with pytest.raises(InputError, match=r"files of a released encoder's corpus in .*, found none"):
        release.make(settings)


def test_every_loss_that_the_record_has_is_compared(
    release: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def losses(**row: float) -> dict[int, dict[str, float]]:
        path = tmp_path / "metrics.jsonl"
        path.write_text(json.dumps({"step": 20, "discriminator_loss": 0.5} | row) + '\n{"ste')
        found: dict[int, dict[str, float]] = release.losses_of(path)
        return found

    assert losses(bag_loss=0.0) == {20: {"discriminator_loss": 0.5}}  # it has no weight
    release.compare_losses(losses(bag_loss=8.0), losses(bag_loss=8.1), steps=20)
    release.compare_losses(losses(), losses(bag_loss=8.1), steps=20)
    release.compare_losses(losses(correction_loss=8.0), losses(correction_loss=8.1), steps=20)
    printed = capsys.readouterr().out
    assert "bag_loss" in printed and "correction_loss" in printed
    for again in (losses(bag_loss=8.4), losses(bag_loss=8.0, discriminator_loss=0.525)):
        with pytest.raises(InputError, match=r"within 1% of the record in the mean, found 2\.5%"):
            release.compare_losses(losses(bag_loss=8.0), again, steps=20)
    with pytest.raises(InputError, match=r"found 50\.0%"):
        release.compare_losses(losses(bag_loss=8.0), losses(), steps=20)
    with pytest.raises(InputError, match="found inf%"):
        release.compare_losses(losses(), losses(discriminator_loss=math.nan), steps=20)
    # One row of 25 may fall on a short rise, all of them may not.
    curve = {step: {"discriminator_loss": 0.3} for step in range(20, 501, 20)}
    release.compare_losses(curve, curve | {500: {"discriminator_loss": 0.31}}, steps=500)
    assert "mean difference 0.13%, largest 3.33%" in capsys.readouterr().out
    all_risen = {step: {"discriminator_loss": 0.31} for step in curve}
    with pytest.raises(InputError, match=r"found 3\.3%"):
        release.compare_losses(curve, all_risen, steps=500)
    with pytest.raises(InputError, match="up to step 40 in both, found them up to 20 in"):
        release.compare_losses(losses(), losses(), steps=40)


def test_a_release_appears_whole_or_not_at_all(
    release: ModuleType, cards: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = release.ReleaseSettings(
        data=write_reviews(tmp_path / "data", RATED),
        work=tmp_path / "work",
        output=tmp_path / "output",
    )
    release._keep_settings(settings)
    write_json(settings.work / "corpus" / "report.json", CORPUS)
    text, label = next(iter(written_reviews().items()))
    predicted = {"text": ["영화", text], "label": [label] * 2, "predicted": ["", label]}
    (settings.work / "reviews").mkdir()
    pd.DataFrame(predicted).to_csv(settings.work / "reviews" / "predictions.csv")

    def pack_encoder(run: Path, folder: Path) -> None:
        write_json(folder / "run.json", RECORD)
        write_weights(folder)

    monkeypatch.setattr(release, "pack_encoder", pack_encoder)

    def pack(run: Path, folder: Path, report: dict[str, Any]) -> None:
        write_json(folder / "report.json", report)

    monkeypatch.setattr(release, "pack_classifier", lambda *where: pack(*where, {"folds": []}))
    with pytest.raises(InputError, match=r"report\.json, found another"):
        release._release(settings)
    assert not any(settings.output.iterdir())
    monkeypatch.setattr(release, "pack_classifier", lambda *where: pack(*where, REPORT))
    release._release(settings)
    names = {"malmoi-small", "malmoi-medium-reviews", "malmoi-small-memos"}
    assert {path.name for path in settings.output.iterdir()} == names
    assert all((settings.output / name / "README.md").is_file() for name in names)
    corpus = json.loads((settings.output / "malmoi-small" / "corpus.json").read_text())
    sha256 = release.file_sha256(tmp_path / "data" / "reviews_rated.tsv.gz")
    assert corpus == CORPUS | {"sha256": {"reviews_rated.tsv": sha256}}
    report = json.loads((settings.output / "malmoi-medium-reviews" / "report.json").read_text())
    assert report["by_origin"]["written"] == {"texts": 1, "macro_f1": 1.0}


def test_the_classifiers_alone_are_made_again_both_or_none(
    release: ModuleType,
    cards: ModuleType,
    tmp_path: Path,
    released: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the released encoder, which stays as it is; what is released stays until both are."""
    settings = release.ReleaseSettings(
        data=write_reviews(tmp_path / "data", RATED),
        work=tmp_path / "work",
        output=released,
        reviews_per_label=40,
        classifiers="reviews,memos",
    )
    encoder = (released / "malmoi-small" / "run.json").read_bytes()
    commands: list[list[str]] = []

    def run(command: list[str], check: bool) -> SimpleNamespace:
        commands.append(command)
        output = Path(command[-1])
        output.mkdir()
        text, label = next(iter(written_reviews().items()))
        predicted = {"text": ["영화", text], "label": [label] * 2, "predicted": ["", label]}
        pd.DataFrame(predicted).to_csv(output / "predictions.csv")
        score = None if output == settings.work / "memos" else 0.9
        write_json(output / "report.json", REPORT | {"folds": [{"macro_f1": score}] * 2})
        return SimpleNamespace(returncode=0)

    def learn_ratings(encoder: Path, labels: Any, rows: list[Any], folder: Path) -> None:
        assert encoder == ROOT / "checkpoints" / "malmoi-medium"
        write_json(folder / "ratings.json", {"texts": len(rows), "epochs": 1})
        write_weights(folder, b"ratings")

    monkeypatch.setattr(release.subprocess, "run", run)
    monkeypatch.setattr(release, "learn_ratings", learn_ratings)
    monkeypatch.setattr(release, "pack_classifier", lambda run, folder: copytree(run, folder))
    with pytest.raises(InputError, match=r"malmoi-small-memos.report\.json, found another"):
        release.make(settings)
    for task in NAMES:
        report = json.loads((released / NAMES[task] / "report.json").read_text())
        assert report == REPORT
    write_json(settings.work / "memos" / "report.json", REPORT)
    # What is left of an older encoder is not released with this one.
    sha256 = write_weights(released / "malmoi-small")
    write_weights(released / "malmoi-small", b"newer")
    with pytest.raises(
        InputError, match=rf"made with memos_encoder_sha256 .*, found it made with {sha256};"
    ):
        release.make(settings)
    write_weights(released / "malmoi-small")
    release.make(settings)
    assert [Path(command[-1]).name for command in commands] == ["reviews", "memos"]
    starts = {
        "reviews": ("--set", f"start.continue_from={settings.work / 'ratings'}"),
        "memos": ("--model", released / "malmoi-small"),
    }
    for command, (task, (flag, start)) in zip(commands, starts.items(), strict=True):
        assert command[command.index(flag) + 1] == str(start)
        assert " ".join(release.CLASSIFIERS[task]) in " ".join(command)
    report = json.loads((released / "malmoi-medium-reviews" / "report.json").read_text())
    assert report["folds"] == [{"macro_f1": 0.9}] * 2 and "written" in report["by_origin"]
    # Of 긍정, which has 60, 40 are among the texts of the folds.
    assert report["ratings_first"] == {"texts": 60, "epochs": 1}
    assert "0.9000" in (released / "malmoi-medium-reviews" / "README.md").read_text()
    names = {"malmoi-small", "malmoi-medium-reviews", "malmoi-small-memos"}
    assert {path.name for path in released.iterdir()} == names
    assert (released / "malmoi-small" / "run.json").read_bytes() == encoder
    # Nor is one that began otherwise.
    write_weights(settings.work / "ratings", b"others")
    with pytest.raises(InputError, match="reviews made with reviews_begin_sha256 "):
        release.make(settings)
    write_weights(settings.work / "ratings", b"ratings")
    # One alone leaves the other as it is.
    (released / "malmoi-small-memos" / "mark").touch()
    settings.classifiers = "reviews"
    release.make(settings)
    assert (released / "malmoi-small-memos" / "mark").is_file() and len(commands) == 2


ROWS = 24


@pytest.fixture
def home(trained: Encoder, tmp_path: Path) -> Path:
    """A folder with a tokenized corpus and NSMC's files."""
    copytree(trained.cache / "cache" / "tokenized", tmp_path / "tokenized")
    folder = tmp_path / "data" / "nsmc"
    folder.mkdir(parents=True)
    lines = [f"{n}\t{('정말 좋다', '너무 별로')[n % 2]} {n}\t{n % 2}" for n in range(ROWS)]
    for name in ("ratings_train.txt", "ratings_test.txt"):
        text = "id\tdocument\tlabel\n" + "\n".join(lines) + "\n"
        (folder / name).write_text(text, encoding="utf-8")
    return tmp_path


def settings_in(home: Path, step: str, **more: Any) -> RentedGpuSettings:
    places = {
        "pack": home / "gpu-pack.tar.xz",
        "tokenized": home / "tokenized",
        "data": home / "data",
        "work": home / "work",
        "output": home / "results",
    }
    return RentedGpuSettings(step=step, **places | more)  # type: ignore[arg-type]


def test_the_flags_are_what_the_released_encoder_learnt_with() -> None:
    path = ROOT / "checkpoints" / "malmoi-medium" / "run.json"
    released = plan_from_json(json.loads(path.read_text())["plan"], path)
    flags = ["--corpus", "tokenized", *shlex.split(rented_gpu.FLAGS)]
    given = read_config(parse_flags(PretrainSettings, program=None, about="", arguments=flags))
    lengths = np.full(100, 8)
    gpu = Machine(device="cuda", prefers_bf16=True)
    planned = plan(given, lengths=lengths, checkpoint=None, machine=gpu)
    for part in ("networks", "objective", "optimizer", "batching"):
        assert getattr(planned, part) == getattr(released, part)


def test_a_pack_has_corpus_and_tasks_and_is_not_too_large(home: Path) -> None:
    settings = settings_in(home, "pack")
    rented_gpu.main(settings)
    with tarfile.open(settings.pack) as archive:
        names = archive.getnames()
    assert {"pack.json", "data/nsmc/ratings_train.txt", "data/nsmc/ratings_test.txt"} < {*names}
    assert "tokenized/ids.bin" in names and "tokenized/tokenizer/tokenizer.json" in names
    before = settings.pack.read_bytes()
    with pytest.raises(InputError, match=r"at most 0\.01 MiB to travel, found .*; leave tasks"):
        rented_gpu.main(settings_in(home, "pack", most_mib=0.01))
    assert settings.pack.read_bytes() == before
    assert not list(home.glob(".gpu-pack*"))
