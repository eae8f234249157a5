"""The stages of a release, as `python -m lab.release.make` has them done; see there."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lab.release.cards import CARD, ReleasedFolders, write_cards
from lab.release.check import (
    CHECKED_STEPS,
    check_corpus,
    compare_losses,
    losses_of,
    read_json,
    read_released,
)
from lab.release.make import CLASSIFIED, ReleaseSettings
from lab.release.packing import pack_classifier, pack_encoder
from lab.release.public_texts import REVIEWS, SOURCES, fetch_texts, hashes_of, sources_of
from lab.release.rating_classifier import MOST_PER_LABEL, RECORD, learn_ratings
from lab.release.rating_classifier import SETTINGS as RATINGS_SETTINGS
from lab.release.review_texts import (
    WRITTEN,
    find_reviews,
    ratings_to_begin_with,
    reviews_to_learn,
    scores_by_origin,
)
from lab.release.scores_table import weights_sha256
from lab.release.sittings import leave_with, pretrain, pretraining_command
from lab.release.stages import SETTINGS, keep
from malmoi.errors import InputError
from malmoi.files import file_sha256, write_at_once
from malmoi.labels.tasks import read_task
from malmoi.model_folders import discriminator_folder
from malmoi.pretrain.model.starting_checkpoint import discriminator_config, preset_of

ROOT = Path(__file__).parents[2]
NAME = "malmoi-small"
MEMOS = ROOT / "corpora" / "memos" / "memos.csv"
# The best of what was tried with 5 million tokens (lab/log; one seed). With --init the vocabulary
# is that encoder's.
RECIPE = ["--vocab-size", "32000", "--recipe", "few-tokens"]
# For a tiny encoder that begins as word vectors: twice its preset's batch, and a rate to match,
# for a long run (not compared with the preset's). Others take their preset's.
TINY_FROM_NOTHING = ["--tokens-per-batch", "8192", "--learning-rate", "7e-4"]
# Flags of finetune/kfold.py, chosen on folds of another seed (lab/log).
FOR_FEW_TEXTS = ["--recipe", "few-texts"]
CLASSIFIERS = {
    "reviews": ["--epochs", "6", *FOR_FEW_TEXTS, "--learning-rate", "3e-4"],
    "memos": ["--epochs", "10", *FOR_FEW_TEXTS],
}
# Reviews need an encoder that follows turns (lab/log/classifiers.md).
BEGINS_AS = {"reviews": "malmoi-medium", "memos": NAME}
LABELS = {task: tuple(read_task(ROOT / "corpora" / task).label_names) for task in CLASSIFIED}
SITTING_OVER = "this sitting is over; the same command goes on"


def make(settings: ReleaseSettings) -> None:
    """Go on where the last sitting stopped."""
    settings.check_values()
    if settings.cards:
        write_cards(_released_in(settings.output), home=settings.output)
        return
    if settings.check:
        record = read_released(settings.output / NAME, settings.init)  # before any work
        corpus = _corpus(settings, sources_of(record.files))
        check(corpus, settings.output / NAME, settings.init)
        return
    if settings.classifiers:
        remake_classifiers(settings)
        return
    _check_free(settings.output)
    corpus = _corpus(settings)
    rated_reviews(settings)  # seconds, and what is wrong with them shows before hours
    encoder = settings.work / "encoder"
    flags = _encoder_flags(_preset(settings), settings.init)
    if not pretrain(corpus, encoder, settings.planned, settings.minutes, flags):
        print(SITTING_OVER)
        return
    _classify_all(encoder, settings)
    _release(settings)
    print(f"released into {settings.output}")


def _folders(output: Path) -> list[Path]:
    return [output / NAME, *(_classifier_folder(output, task) for task in CLASSIFIERS)]


def _classifier_folder(output: Path, task: str) -> Path:
    return output / f"{BEGINS_AS[task]}-{task}"


def _released_in(output: Path, encoder: Path | None = None) -> ReleasedFolders:
    """The release in a folder; its encoder may lie elsewhere."""
    beside, *classifiers = _folders(output)
    by_task = dict(zip(CLASSIFIERS, classifiers, strict=True))
    return ReleasedFolders(encoder=encoder or beside, classifiers=by_task)


def _check_free(output: Path) -> None:
    """Refuse, before hours of work, a folder that the result could not be put into.

    Raises:
        InputError: a release is there, or a file.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"expected a folder for --output, found the file {output}; name another")
    for folder in _folders(output):
        if folder.exists():
            raise InputError(
                f"expected no {folder.name} in {output} yet, found one; move it away, or name "
                "another folder by --output (with make: OUTPUT=...)"
            )


def _release(settings: ReleaseSettings) -> None:
    """Put what the stages made into --output, whole: whatever fails, fails beside it."""
    settings.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{NAME}-", dir=settings.output) as name:
        scratch = Path(name)
        pack_encoder(settings.work / "encoder", scratch / NAME)
        read = read_json(settings.work / "corpus" / "report.json")
        _write_json(scratch / NAME / "corpus.json", read | {"sha256": _hashes(settings, read)})
        _pack_classifiers(settings, scratch)
        write_cards(_released_in(scratch), home=settings.output)
        for folder in _folders(scratch):
            folder.rename(settings.output / folder.name)


def remake_classifiers(settings: ReleaseSettings) -> None:
    """Cross-validate classifiers on the released encoder; then, and only then, swap them in.

    Raises:
        InputError: there is no whole release, or the stages in --work are of other texts.
    """
    encoder, *released = _folders(settings.output)
    for folder in (encoder, *released):
        read_json(folder / ("run.json" if folder == encoder else "report.json"))
    _keep_settings(settings)
    _classify_all(encoder, settings)
    with tempfile.TemporaryDirectory(prefix=f".{NAME}-", dir=settings.output) as name:
        scratch = Path(name)
        _pack_classifiers(settings, scratch)
        made = [folder for folder in released if (scratch / folder.name).exists()]
        for folder in made:
            if (folder / CARD).is_file():
                shutil.copyfile(folder / CARD, scratch / folder.name / CARD)
                print(f"{folder / CARD}: the numbers are new; read whether its text is still true")
        for folder in released:
            if folder not in made:  # the encoder's card names it
                shutil.copytree(folder, scratch / folder.name)
        # The encoder's card names them, too, and is written where it lies.
        write_cards(_released_in(scratch, encoder), home=settings.output)
        for folder in made:
            folder.rename(scratch / f"{folder.name}-before")
            (scratch / folder.name).rename(folder)


def _pack_classifiers(settings: ReleaseSettings, output: Path) -> None:
    for task in settings.tasks():
        pack_classifier(settings.work / task, _classifier_folder(output, task))
    if "reviews" in settings.tasks():
        report = _classifier_folder(output, "reviews") / "report.json"
        more: dict[str, Any] = {
            "by_origin": scores_by_origin(settings.work / "reviews" / "predictions.csv")
        }
        if (settings.work / "ratings").is_dir() and settings.reviews_per_label:
            more["ratings_first"] = read_json(settings.work / "ratings" / RECORD)
        _write_json(report, read_json(report) | more)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    write_at_once(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _run(*command: object) -> None:
    leave_with(subprocess.run([sys.executable, *map(str, command)], check=False).returncode)


def _keep_settings(settings: ReleaseSettings, sources: Sequence[str] = SOURCES) -> None:
    """Write beside the stages what they are made with; refuse what would mix two releases.

    Raises:
        InputError: a stage that is there was made with another setting or from other texts.
    """
    # A check has a corpus in common with a release, and no more.
    ours: dict[str, Any] = {}
    if not settings.classifiers or "reviews" in settings.tasks():  # memos are learnt without them
        ours["reviews_sha256"] = file_sha256(find_reviews(settings.data))
        if not settings.check:
            ours["rated_sha256"] = ours["reviews_sha256"]
    if not settings.check:
        ours |= {"reviews_per_label": settings.reviews_per_label}
        ours |= {"written_sha256": file_sha256(WRITTEN), "memos_sha256": file_sha256(MEMOS)}
        ours |= {f"{task}_flags": " ".join(flags) for task, flags in CLASSIFIERS.items()}
    if not settings.classifiers:
        ours["sources"] = ",".join(sources)
    if not (settings.check or settings.classifiers):
        init = settings.init and weights_sha256(discriminator_folder(settings.init))
        ours |= {"tokens": settings.planned, "preset": _preset(settings), "init_sha256": init}
        ours["encoder_flags"] = " ".join(_recipe(_preset(settings), settings.init))
    keep(settings.work, ours)


def _corpus(settings: ReleaseSettings, sources: Sequence[str] = SOURCES) -> Path:
    """The clean corpus, made if need be."""
    _keep_settings(settings, sources)
    corpus = settings.work / "corpus"
    if not corpus.is_dir():
        texts = fetch_texts(settings.data, settings.work / "sources", sources)
        reviews = find_reviews(settings.data)
        _run("-m", "malmoi", "clean", reviews, *texts, "--output", corpus)
    return corpus


def _hashes(settings: ReleaseSettings, report: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of each file that the corpus of this report was made from."""
    kept = read_json(settings.work / SETTINGS)
    sources = hashes_of(settings.work / "sources", filter(None, kept["sources"].split(",")))
    # Packed or not; the report knows under which name it was read.
    reviews = next((name for name in report["sources"] if name.startswith(REVIEWS)), REVIEWS)
    return {reviews: kept["reviews_sha256"]} | sources


def _preset(settings: ReleaseSettings) -> str:
    """The flag, else what pretrain/run.py takes without it."""
    if settings.preset is not None:
        return settings.preset
    return "tiny" if settings.init is None else preset_of(discriminator_config(settings.init))


def _recipe(preset: str, init: Path | None) -> list[str]:
    """Flags of pretrain/run.py for what an encoder learns."""
    return [*RECIPE, *TINY_FROM_NOTHING] if (preset, init) == ("tiny", None) else RECIPE


def _encoder_flags(preset: str, init: Path | None) -> list[str]:
    """Flags of pretrain/run.py for an encoder: the recipe, and what it begins as."""
    return [*_recipe(preset, init), "--preset", preset, *_init(init)]


def _init(init: Path | None) -> list[str]:
    return [] if init is None else ["--init", str(init)]


def check(
    corpus: Path, released: Path, init: Path | None = None, steps: int = CHECKED_STEPS
) -> None:
    """Pre-train the first steps again and hold their losses against the released record.

    Args:
        init: what the released encoder went on from, if from another.

    Raises:
        InputError: the corpus is not the one of the record, or the losses differ by more than
            TOLERANCE in the mean.
    """
    record = read_released(released, init)
    check_corpus(corpus, record.corpus_sha256, released)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        # Today's code may train another vocabulary; that of --init comes with it.
        vocabulary = [] if init else ["--tokenizer", str(discriminator_folder(released))]
        flags = [*record.flags, *vocabulary, *_init(init)]
        process = subprocess.Popen(pretraining_command(corpus, run, record.tokens, flags))
        while process.poll() is None and max(losses_of(run / "metrics.jsonl"), default=0) < steps:
            time.sleep(1)
        leave_with(process.poll() or 0)
        process.terminate()
        process.wait()
        found = losses_of(run / "metrics.jsonl")
    compare_losses(record.losses, found, steps)


def rated_reviews(settings: ReleaseSettings) -> Path:
    """The file of what the classifier of reviews learns from, made if need be."""
    path = settings.work / "reviews.csv"
    if not path.is_file():
        table = reviews_to_learn(settings.data, settings.reviews_per_label)
        write_at_once(path, table.to_csv(index=False))
    return path


def _classify_all(encoder: Path, settings: ReleaseSettings) -> None:
    """Cross-validate what is wanted, where no stage of the same encoder has it yet.

    Raises:
        InputError: a stage is there that was made from another encoder.
    """
    # Seconds, and what is wrong with them shows before hours.
    reviews = rated_reviews(settings) if "reviews" in settings.tasks() else None
    begins_as = {
        task: encoder if BEGINS_AS[task] == NAME else ROOT / "checkpoints" / BEGINS_AS[task]
        for task in settings.tasks()
    }
    for task, folder in begins_as.items():
        sha256 = weights_sha256(discriminator_folder(folder))
        keep(settings.work, {f"{task}_encoder_sha256": sha256})
    for task, folder in begins_as.items():
        if task == "reviews":
            assert reviews is not None
            start = _begin_with_ratings(folder, settings, reviews)
            # The head that learnt the ratings is kept, too: it knows the labels.
            begin = weights_sha256(discriminator_folder(start))
            keep(settings.work, {"reviews_begin_sha256": begin})
            given = ["--model", start] if start == folder else _going_on_from(start)
            _classify([*given, "--data", reviews], settings.work, task)
        else:
            _classify(["--model", folder], settings.work, task)


def _going_on_from(classifier: Path) -> list[str]:
    return ["--set", f"start.continue_from={classifier}"]


def _begin_with_ratings(encoder: Path, settings: ReleaseSettings, reviews: Path) -> Path:
    """The encoder with a head, taught other film ratings first; where there are none, itself."""
    if settings.reviews_per_label == 0:
        return encoder
    ours = {
        "ratings_per_label": MOST_PER_LABEL,
        "ratings_settings": repr(RATINGS_SETTINGS),
        "ratings_beside_sha256": file_sha256(reviews),  # what is held out in folds is not learnt
        "ratings_encoder_sha256": weights_sha256(discriminator_folder(encoder)),
    }
    keep(settings.work, ours)
    folder = settings.work / "ratings"
    if not folder.is_dir():
        learnt = pd.read_csv(reviews, keep_default_na=False)["text"]
        rows = ratings_to_begin_with(settings.data, learnt, MOST_PER_LABEL)
        if not rows:
            return encoder
        if (made := settings.work / "reviews").exists():
            raise InputError(
                f"expected {made} made after {folder}, which is not there; name another folder by "
                "--work"
            )
        learn_ratings(discriminator_folder(encoder), LABELS["reviews"], rows, folder)
    return folder


def _classify(start: Sequence[object], work: Path, task: str) -> None:
    run = work / task
    if not (run / "report.json").is_file():
        flags = [*start, "--labels", ",".join(LABELS[task]), *CLASSIFIERS[task]]
        _run(ROOT / "finetune" / "kfold.py", *flags, "--output", run)
