"""Make the released checkpoints from public texts: an encoder and the app's two classifiers.

    make release
    python checkpoints/release.py --data PATH --minutes 150
    python checkpoints/release.py --check
    python checkpoints/release.py --cards

Stages, each kept under runs/release when it is done: a clean corpus; the encoder, in as many
sittings as it needs; the classifiers of reviews and of memos, cross-validated; last,
checkpoints/malmoi-small and its two classifiers, in half precision, with their cards.
"""

import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from cards import read_json, write_classifier_card, write_encoder_card
from sklearn.metrics import f1_score

from corpora.cleaning import clean_text
from corpora.command_line import run_command
from corpora.errors import InputError
from finetune.packing import pack_classifier, pack_encoder

ROOT = Path(__file__).parents[1]
NAME = "malmoi-small"
# What the encoder learns from is CC0, MIT and public record, and has no text of a test file.
# Rated reviews of e9t/nsmc's raw release, without those that its test files were drawn from.
REVIEWS = "reviews_rated.tsv.gz"
REVIEWS_SHA256 = "5ceede1e996cad567ca8b7f7db7f5ff90999cdaa7bf3db21d03da76457ddfafa"
FETCHED = {
    "chatbot": ["ChatbotData.csv"],
    "petitions": [
        f"petitions_{month}.jsonl"
        for month in ("2017-08", "2019-04", "2019-05", "2019-06", "2019-07", "2019-08")
    ],
}
# The best of docs/experiments.md so far (one seed, 2026-11-22); nothing is released with it yet.
RECIPE = ["--preset", "tiny", "--vocab-size", "32000"]
RECIPE += ["--unigram-fraction", "1", "--bag-weight", "5"]
# Flags of finetune/kfold.py: side by side, because two trainings of one thread each are done before
# two of two threads.
CLASSIFIERS = {"reviews": ["--epochs", "6", "--jobs", "2"], "memos": ["--jobs", "2"]}
CHECKED_STEPS = 500
# Sums in another order, on other cores, drift apart; a wrong recipe is off by much more.
TOLERANCE = 0.03
RATINGS = {"부정": (1, 4), "중립": (5, 8), "긍정": (9, 10)}


@dataclass(kw_only=True)
class ReleaseSettings:
    """Where the texts are, and how long to go on."""

    data: Path = Path("data")
    """Folder with reviews_rated.tsv.gz somewhere below it; a source of which it has not all is
    downloaded."""
    tokens: float = 50e6
    """Tokens that the encoder sees in all."""
    minutes: float = 150
    """Length of this sitting's pre-training; the same command goes on with the next."""
    reviews_per_label: int = 1_000
    """Rated film reviews of each label, beside the written ones of everything else."""
    work: Path = Path("runs/release")
    """Folder of what is under way."""
    output: Path = Path("checkpoints")
    """Folder to release into."""
    check: bool = False
    """Only pre-train the first 500 steps again and hold their losses against the record's."""
    cards: bool = False
    """Only write the cards again, with what benchmarks/quality.py found since."""


def main(settings: ReleaseSettings) -> None:
    """Go on where the last sitting stopped."""
    if settings.cards:
        write_cards(settings)
        return
    corpus = _corpus(settings)
    if settings.check:
        check(corpus, settings.output / NAME)
        return
    encoder = settings.work / "encoder"
    if not pretrain(corpus, encoder, settings.tokens, settings.minutes):
        print("this sitting is over; the same command goes on")
        return
    _classify(encoder, settings.work, "reviews", RATINGS, "--data", rated_reviews(settings))
    _classify(encoder, settings.work, "memos", ("꿈", "일기", "일정", "메모", "오류"))
    pack_encoder(encoder, settings.output / NAME)
    shutil.copyfile(corpus / "report.json", settings.output / NAME / "corpus.json")
    for task in CLASSIFIERS:
        pack_classifier(settings.work / task, settings.output / f"{NAME}-{task}")
    report = settings.output / f"{NAME}-reviews" / "report.json"
    by_origin = scores_by_origin(settings.work / "reviews" / "predictions.csv")
    report.write_text(
        json.dumps(read_json(report) | {"by_origin": by_origin}, ensure_ascii=False, indent=2)
        + "\n",
        encoding="utf-8",
    )
    write_cards(settings)
    print(f"released into {settings.output}")


def write_cards(settings: ReleaseSettings) -> None:
    """Write the README.md of each released checkpoint.

    Raises:
        InputError: one is not there.
    """
    folders = {task: settings.output / f"{NAME}-{task}" for task in CLASSIFIERS}
    for folder in (settings.output / NAME, *folders.values()):
        if not folder.is_dir():
            raise InputError(f"expected a released {folder.name} in {folder.parent}, found none")
    write_encoder_card(settings.output / NAME)
    for task, folder in folders.items():
        write_classifier_card(folder, task, NAME)


def _run(*command: object) -> None:
    _leave_with(subprocess.run([sys.executable, *map(str, command)], check=False).returncode)


def _leave_with(code: int) -> None:
    """End as a stage did that failed: it has said why."""
    if code:
        raise SystemExit(code)


def _reviews(data: Path) -> Path:
    """The file of rated reviews that the record was made from.

    Raises:
        InputError: it is not there, or another one is.
    """
    found = sorted(data.rglob(REVIEWS))
    if not found:
        raise InputError(
            f"expected {REVIEWS} below {data}, found none; it has the rated reviews of "
            "e9t/nsmc's raw release; name its folder with --data"
        )
    sha256 = hashlib.sha256(found[0].read_bytes()).hexdigest()
    if sha256 != REVIEWS_SHA256:
        raise InputError(f"expected {found[0]} with SHA-256 {REVIEWS_SHA256}, found {sha256}")
    return found[0]


def _corpus(settings: ReleaseSettings) -> Path:
    """The clean corpus, made if need be."""
    corpus = settings.work / "corpus"
    if corpus.is_dir():
        return corpus
    texts = [_reviews(settings.data)]
    for source, files in FETCHED.items():
        folder = settings.work / "sources" / source
        if all(any(settings.data.rglob(f"{name}*")) for name in files):
            _run("-m", "corpora", "fetch", source, "--from", settings.data, "--output", folder)
        else:
            _run("-m", "corpora", "fetch", source, "--output", folder)
        texts += [folder] if source == "chatbot" else [folder / name for name in files]
    _run("-m", "corpora", "clean", *texts, "--output", corpus)
    return corpus


def _pretraining(corpus: Path, run: Path, tokens: float) -> list[str]:
    command = [sys.executable, str(ROOT / "pretrain" / "run.py"), "--corpus", str(corpus)]
    command += [*RECIPE, "--max-tokens", str(tokens), "--output", str(run)]
    return [*command, "--resume"] if (run / "state").is_dir() else command


def pretrain(corpus: Path, run: Path, tokens: float, minutes: float) -> bool:
    """Go on with the encoder for so many minutes; whether it is finished.

    Raises:
        SystemExit: the training failed, with its code.
    """
    if _is_finished(run):
        return True
    process = subprocess.Popen(_pretraining(corpus, run, tokens))
    try:
        code = process.wait(minutes * 60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # it saves, and goes on from there
        code = process.wait()
    _leave_with(code)
    return _is_finished(run)


def _is_finished(run: Path) -> bool:
    return (run / "run.json").is_file() and read_json(run / "run.json").get("status") == "finished"


def check(corpus: Path, released: Path, steps: int = CHECKED_STEPS) -> None:
    """Pre-train the first steps again and hold their losses against the released record.

    Raises:
        InputError: a loss differs by more than TOLERANCE.
    """
    recorded = _losses(released / "metrics.jsonl")
    tokens = read_json(released / "run.json")["settings"]["max_tokens"]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        process = subprocess.Popen(_pretraining(corpus, run, tokens))
        while process.poll() is None and max(_losses(run / "metrics.jsonl"), default=0) < steps:
            time.sleep(1)
        process.terminate()
        process.wait()
        found = _losses(run / "metrics.jsonl")
    common = sorted(step for step in recorded.keys() & found if step <= steps)
    if not common or common[-1] < steps:
        raise InputError(
            f"expected losses up to step {steps} in both, found them up to "
            f"{max(recorded, default=0)} in the record and {max(found, default=0)} in the new run"
        )
    worst = 0.0
    for step in common:
        worst = max(worst, abs(found[step] / recorded[step] - 1))
        print(f"step {step:4}  recorded {recorded[step]:.4f}  found {found[step]:.4f}")
    print(f"largest difference {worst:.2%}")
    if worst > TOLERANCE:
        raise InputError(f"expected losses within {TOLERANCE:.0%} of the record, found {worst:.1%}")


def _losses(path: Path) -> dict[int, float]:
    """Step to discriminator's loss; a line that is half-written is left out."""
    if not path.is_file():
        return {}
    rows = map(json.loads, path.read_text(encoding="utf-8").split("\n")[:-1])
    return {row["step"]: row["discriminator_loss"] for row in rows}


def rated_reviews(settings: ReleaseSettings) -> Path:
    """Rated reviews, as many of each label, with the project's own written ones."""
    path = settings.work / "reviews.csv"
    if path.is_file():
        return path
    table = pd.read_csv(_reviews(settings.data), sep="\t", quoting=3, keep_default_na=False)
    draw = random.Random(0)
    label_of: dict[str, str] = {}
    for label, (low, high) in RATINGS.items():
        texts = table["document"][table["rating"].between(low, high)]
        unique = sorted({cleaned for text in texts if (cleaned := clean_text(text))})
        for text in draw.sample(unique, min(settings.reviews_per_label, len(unique))):
            label_of.setdefault(text, label)  # people rate one text differently
    label_of |= _written_reviews()
    rows = list(label_of.items())
    draw.shuffle(rows)
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(path, index=False)
    return path


def _written_reviews() -> dict[str, str]:
    """The project's own reviews, cleaned, with their labels."""
    table = pd.read_csv(ROOT / "corpora" / "reviews" / "reviews.csv", keep_default_na=False)
    return dict(zip(map(clean_text, table["text"]), table["label"], strict=True))


def scores_by_origin(predictions: Path) -> dict[str, dict[str, float]]:
    """Texts and macro F1 of the held-out predictions, rated and written reviews apart."""
    table = pd.read_csv(predictions, keep_default_na=False)
    written = table["text"].isin(list(_written_reviews()))
    return {
        origin: {
            "texts": len(rows),
            "macro_f1": float(f1_score(rows["label"], rows["predicted"], average="macro")),
        }
        for origin, rows in (("rated", table[~written]), ("written", table[written]))
    }


def _classify(encoder: Path, work: Path, task: str, labels: Iterable[str], *data: object) -> None:
    run = work / task
    if not (run / "report.json").is_file():
        flags = ["--model", encoder, "--labels", ",".join(labels), *data, *CLASSIFIERS[task]]
        _run(ROOT / "finetune" / "kfold.py", *flags, "--output", run)


if __name__ == "__main__":
    sys.exit(run_command(ReleaseSettings, main, "Make the released checkpoints."))
