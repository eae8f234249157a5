"""A lent GPU for half an hour: pre-train, teach, score, and bring everything back.

    python -m release.rented_gpu pack   # here: what travels, into lease/ (git ignores it)
    bash lease/there.sh --minutes 9             # there, again and again until it says "done"

The machine has neither ../shared nor a network, is taken back after 30 s without a command, and
ends a command after 10 minutes. So there.sh, the step `drive` with its packages, starts one process
that outlives it and does everything in a row, then only watches, and moves what is finished to
$OUT; the same command once more goes on watching. Name `lease` in `carry` in every command: what is
not named is removed. Set the released checkpoints aside before the first: 64 MiB travel in all.

In a row: pre-training for so many minutes; its weights in float16; NSMC with three seeds, whose
mean opinion of the rated reviews (their ratings unread) teaches a student; NSMC and three classes
from the student. A test file is scored once for each training, and nothing is chosen by it.

    bash lease/there.sh speed                   # there: benchmarks/speed/pretraining.py on the GPU

Some seven minutes, mostly of compiling (estimated); flags such as --tokens-per-batch go through.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import tyro
from safetensors.torch import load_file, save_file
from scipy.special import expit, logit
from transformers import AutoModelForPreTraining, PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.quality.downstream import REVIEWS, ROOT
from benchmarks.quality.tasks import TASKS, rated_reviews, three_classes
from benchmarks.robustness.perturbations import PERTURBATIONS
from finetune.evaluation.scores import score_task
from finetune.plan import plan_training
from finetune.settings import TrainSettings
from finetune.training.encoders import (
    encoder_source,
    load_encoder_tokenizer,
    load_for_classification,
)
from finetune.training.fit import TrainingData, hidden_size, train
from malmoi.command_line import run_command
from malmoi.devices import choose_device
from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.inference.batching import TokenizedTexts, tokenize_all
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.model_loading import longest_input, save_model
from malmoi.text.cleaning.cleaner import clean_text
from tokenizer.loading import load_pretraining_tokenizer

CARRIED = ROOT / "lease"
WORK = ROOT / "runs" / "lease"
RESULTS = WORK / "results"
# Not on the machine, which has transformers and pandas (its Python is 3.12).
WHEELS = ["zstandard", "tyro", "docstring-parser", "typeguard", "ftfy", "wcwidth"]
WHEELS += ["openpyxl", "et-xmlfile"]
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
# The correction of few-tokens, with a generator after the first noise.
PRETRAINING = ["--preset", "small", "--recipe", "few-tokens"]
PRETRAINING += ["--set", "objective.unigram_fraction=0.15"]
PRETRAINING += ["--tokens-per-batch", "32768", "--learning-rate", "1e-3"]
PRETRAINING += ["--set", "model.dropout=0.1"]
THERE = """\
[ -d /tmp/site ] || python3 -m pip install -q --no-index --no-deps --target /tmp/site \
  lease/*.whl || exit
export PYTHONPATH=/tmp/site:lease:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
if [ "$1" = speed ]; then
  [ -d runs/lease/tokenized ] || python3 -m tarfile -e lease/data.tar.xz runs/lease || exit
  exec python3 benchmarks/speed/pretraining.py --device cuda --tokens-per-batch 65536 \
    --corpus runs/lease/tokenized --output "$OUT/pretraining.json" "${@:2}"
fi
exec python3 release/rented_gpu.py drive "$@"
"""
SPOILT = 10_000
# Bytes of a file of weights; 16 MiB is the most that comes back as one.
SHARD = 15_500_000
# Bytes of weights handed over in one command, of 64 MiB that come back in all.
MOST = 56_000_000
# Ratings of a text that NSMC's training file has too are stored 100 higher.
LABELLED = 100
CERTAIN = 1e-4


@dataclass(kw_only=True)
class LeaseSettings:
    """What to do, and for how long."""

    step: tyro.conf.Positional[Literal["pack", "drive", "chain", "score"]] = "drive"
    """pack: here; drive: there. The other two are drive's own."""
    minutes: float = 9
    """Of pre-training."""
    watch: float = 510
    """Seconds that `drive` watches before it returns; unpacking and packing come on top."""
    tokenized: Path = Path("runs/cache/tokenized")
    """pack: folder of the tokenized corpus, or one with it as its only folder."""
    rows: int = 0
    """At most so many of every file; 0: all. To try the whole beforehand, on a CPU."""
    task: str = ""
    """score: nsmc, three-all or student."""
    encoder: Path = WORK / "pretrained"
    """score: what to start from."""
    seed: int = 0
    """score: of everything random."""
    epochs: int = 3
    """score: passes over the training rows."""
    batch_size: int = 128
    """score: texts a step; the rate goes with it."""
    teach: bool = False
    """score: keep the opinion of the rated reviews."""


def main(settings: LeaseSettings) -> None:
    """Do the step."""
    {"pack": pack, "drive": drive, "chain": chain, "score": score}[settings.step](settings)


def pack(settings: LeaseSettings) -> None:
    """Put what the machine needs into one folder: token ids, no texts; wheels."""
    if not REVIEWS.is_file():
        raise InputError(f"expected {REVIEWS.name} in ../shared/data, found none")
    folders = [path.parent for path in sorted(settings.tokenized.rglob("offsets.bin"))]
    if len(folders) != 1:
        raise InputError(
            f"expected one tokenized corpus in {settings.tokenized}, found {len(folders)}; make it "
            "with pretrain/run.py --max-steps 0 and name its folder by --tokenized"
        )
    if not list(folders[0].glob("word-vectors-*.npz")):
        raise InputError(f"expected word vectors in {folders[0]}, found none (--init)")
    shutil.rmtree(CARRIED, ignore_errors=True)
    rows = CARRIED / "rows"
    rows.mkdir(parents=True)
    tokenizer = load_pretraining_tokenizer(folders[0] / "tokenizer")

    def keep(name: str, texts: list[str], targets: np.ndarray) -> None:
        found = tokenize_all(tokenizer, texts, TrainSettings.max_length)
        np.savez(
            rows / f"{name}.npz",
            flat=found.flat.astype(np.uint16),
            lengths=found.lengths.astype(np.uint8),
            targets=targets.astype(np.uint8),
            pad=found.pad,
        )

    learn = TASKS["nsmc"].train()
    keep("nsmc", learn.texts, learn.targets)
    for task in ("nsmc", "three-all"):
        read = TASKS[task].test
        assert read is not None
        test = read()
        keep(f"{task}-test", test.texts, test.targets)
        for name, perturb in PERTURBATIONS.items() if task == "nsmc" else ():
            draw = random.Random(0)
            spoilt = [clean_text(perturb(text, draw)) for text in test.texts[:SPOILT]]
            keep(f"spoilt-{name}", spoilt, test.targets[:SPOILT])
    texts, ratings = rated_reviews()
    known = set(learn.texts)
    keep("reviews", texts, ratings + LABELLED * np.array([text in known for text in texts]))
    with tarfile.open(CARRIED / "data.tar.xz", "w:xz", preset=3) as archive:
        archive.add(folders[0], "tokenized")
        archive.add(rows, "rows")
    shutil.rmtree(rows)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", "3.12", "--implementation", "cp", "-d", str(CARRIED)]
    command += ["-c", str(ROOT / "constraints.txt"), *WHEELS]
    subprocess.run(command + [f"--platform={one}" for one in PLATFORMS], check=True)
    # malmoi.text.morphemes imports Kiwi, whose wheel is large and which nothing asks there.
    (CARRIED / "kiwipiepy.py").write_text("class Kiwi: ...\n", encoding="utf-8")
    (CARRIED / "there.sh").write_text(THERE, encoding="utf-8")
    size = sum(path.stat().st_size for path in CARRIED.iterdir()) / 2**20
    print(f"{CARRIED.name}: {size:.0f} MiB (64 travel, with the files of the repository)")


def drive(settings: LeaseSettings) -> None:
    """Start the chain if it does not run, then watch it and hand over what is finished."""
    if "OUT" not in os.environ:
        print("skipped: no $OUT, so this is no lent machine")
        return
    out = Path(os.environ["OUT"])
    if not (WORK / "chain.txt").is_file():
        _begin(settings)
    end = time.monotonic() + settings.watch
    handed_over = 0
    while True:
        over = time.monotonic() > end or (WORK / "done").is_file()
        for path in sorted(RESULTS.glob("*.safetensors")):
            size = path.stat().st_size
            if handed_over + size <= MOST:
                shutil.move(path, out / path.name)
                handed_over += size
        if over:
            break
        time.sleep(1)
    with tarfile.open(out / "logs.tar.xz", "w:xz") as archive:
        for pattern in ("*.txt", "*.json", "pretrained/*.json*", "pretrained/*/*.json"):
            for path in WORK.glob(pattern):
                archive.add(path, str(path.relative_to(WORK)))
    for path in sorted(WORK.glob("*.txt")):
        print(path.name, *path.read_text(encoding="utf-8").splitlines()[-2:], sep="\n  ")
    done = WORK / "done"
    if done.is_file() and not any(RESULTS.glob("*.safetensors")):
        print(f"done: {done.read_text(encoding='utf-8')}")
    else:
        print("not done: the same command again, at once")


def _begin(settings: LeaseSettings) -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    try:
        with tarfile.open(CARRIED / "data.tar.xz") as archive:
            archive.extractall(WORK, filter="data")
    except FileNotFoundError as error:
        raise InputError(
            f"expected {error.filename}, found none; make it with the step pack, and name its "
            "folder in carry"
        ) from error
    command = [*_itself(), "chain", "--minutes", settings.minutes, "--rows", settings.rows]
    with (WORK / "chain.txt").open("w") as log:
        subprocess.Popen([*map(str, command)], stdout=log, stderr=log, start_new_session=True)


def chain(settings: LeaseSettings) -> None:
    """All of it; whatever happens, the watcher is told that it is over."""
    how = "a step failed, see the logs"
    try:
        _in_a_row(settings)
        how = "all of it"
    finally:
        (WORK / "done").write_text(how, encoding="utf-8")


def _in_a_row(settings: LeaseSettings) -> None:
    """One after the other; what can be done side by side is."""
    pretrained, corpus = WORK / "pretrained", WORK / "tokenized"
    limit: list[Any] = ["--max-minutes", settings.minutes]
    if settings.rows:
        limit = ["--max-steps", 2, "--tokens-per-batch", 1024]
    command = [sys.executable, ROOT / "pretrain" / "run.py", "--corpus", corpus, *PRETRAINING]
    command += [*limit, "--set", "execution.save_steps=5000"]
    command += ["--set", "execution.log_steps=100", "--output", pretrained]
    _wait([_start("pretraining", command)])
    _hand_over(pretrained / "discriminator", "discriminator")
    _hand_over(pretrained / "generator", "generator")
    teachers = [_score(settings, "nsmc", pretrained, seed, 3, 128, "--teach") for seed in range(3)]
    beside = _score(settings, "three-all", pretrained, 0, 2, 256)
    _wait(teachers)
    _wait([_score(settings, "student", pretrained, 0, 2, 256)])
    student = WORK / "student"
    _hand_over(student, "student")
    last = [_score(settings, "nsmc", student, seed, 3, 128) for seed in range(3)]
    last += [_score(settings, "three-all", student, seed, 2, 256) for seed in range(3)]
    _wait([beside, *last])


def _itself() -> list[str]:
    return [sys.executable, "-m", "release.rented_gpu"]


def _start(name: str, command: list[Any]) -> subprocess.Popen[bytes]:
    with (WORK / f"{name}.txt").open("wb") as log:
        return subprocess.Popen([*map(str, command)], stdout=log, stderr=log, cwd=ROOT)


def _score(
    settings: LeaseSettings,
    task: str,
    encoder: Path,
    seed: int,
    epochs: int,
    batch_size: int,
    *more: str,
) -> subprocess.Popen[bytes]:
    command = [*_itself(), "score", "--task", task, "--encoder", encoder, "--seed", seed]
    command += ["--epochs", epochs, "--batch-size", batch_size, "--rows", settings.rows, *more]
    return _start(f"{task}-{encoder.name}-{seed}", command)


def _wait(processes: list[subprocess.Popen[bytes]]) -> None:
    if any([process.wait() for process in processes]):
        raise SystemExit(1)


def _hand_over(folder: Path, name: str) -> None:
    """Weights in float16, in files small enough to come back."""
    shards: list[dict[str, torch.Tensor]] = [{}]
    size = 0
    for key, value in sorted(load_file(folder / "model.safetensors").items()):
        if size + 2 * value.numel() > SHARD:
            shards.append({})
            size = 0
        shards[-1][key] = value.half()
        size += 2 * value.numel()
    for number, shard in enumerate(shards):
        scratch = RESULTS / f"{name}-{number}.tmp"
        save_file(shard, scratch)
        scratch.rename(scratch.with_suffix(".safetensors"))


def score(settings: LeaseSettings) -> None:
    """Fine-tune on one task and score its test file, or make the student."""
    comparison = TASKS["nsmc" if settings.task == "student" else settings.task]
    # As the rate of batches of 32 that was chosen on dev rows elsewhere, times the root of the
    # ratio: an assumption.
    rate = 3e-4 * (settings.batch_size / 32) ** 0.5
    training = TrainSettings(
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=rate,
        class_weights=comparison.class_weights,
    )
    row: dict[str, Any] = {"task": settings.task, "encoder": settings.encoder.name}
    row |= {"seed": settings.seed, "epochs": training.epochs, "batch_size": training.batch_size}
    row |= {"learning_rate": rate}
    limit = settings.rows
    learn, targets = _rows("nsmc", limit)
    reviews, ratings = _rows("reviews", limit)
    if settings.task == "three-all":
        learn, targets = reviews, three_classes(ratings % LABELLED)
    unlabelled = np.flatnonzero(ratings < LABELLED)
    if settings.task == "student":
        opinions = [np.load(WORK / f"opinion-{seed}.npy") for seed in range(3)]
        odds = np.mean([logit(np.clip(one, CERTAIN, 1 - CERTAIN)) for one in opinions], axis=0)
        soft = np.stack([1 - expit(odds), expit(odds)], axis=1)
        targets = np.concatenate([np.eye(2)[targets], soft]).astype(np.float32)
        learn = _joined(learn, reviews, unlabelled)
    labels = comparison.labels
    began = time.perf_counter()
    model = _fit(settings.encoder, labels, learn, targets, training, settings.seed)
    row["seconds"] = round(time.perf_counter() - began)

    def of(rows: tuple[TokenizedTexts, np.ndarray], first: int | None = None) -> dict[str, float]:
        found, expected = _ask(model, rows[0])[:first], rows[1][:first]
        return score_task("single", expected, found, labels, None)

    test = _rows("nsmc-test" if settings.task == "student" else f"{settings.task}-test", limit)
    scores = of(test)
    row |= {metric: 100 * scores[metric] for metric in ("accuracy", "macro_f1")}
    if settings.task == "nsmc":
        row["spoilt"] = {"as written": 100 * of(test, SPOILT)["accuracy"]} | {
            kind: 100 * of(_rows(f"spoilt-{kind}", limit))["accuracy"] for kind in PERTURBATIONS
        }
    path = WORK / f"{settings.task}-{settings.encoder.name}-{settings.seed}.json"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    print(json.dumps(row))
    if settings.teach:
        np.save(WORK / f"opinion-{settings.seed}.npy", _ask(model, reviews)[unlabelled, 1])
    if settings.task == "student":
        source = encoder_source(settings.encoder)
        _save_encoder(model, load_encoder_tokenizer(source), source, WORK / "student")


def _save_encoder(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str, output: Path
) -> None:
    """The student without its head, in the shape that it began in."""
    whole = AutoModelForPreTraining.from_pretrained(source, dtype=torch.float32)
    whole.base_model.load_state_dict(model.base_model.state_dict())
    with directory_at_once(output) as scratch:
        save_model(whole, tokenizer, scratch)


def _rows(name: str, limit: int) -> tuple[TokenizedTexts, np.ndarray]:
    with np.load(WORK / "rows" / f"{name}.npz") as arrays:
        lengths = arrays["lengths"].astype(np.int64)[: limit or None]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        tokens = TokenizedTexts(
            flat=arrays["flat"][: offsets[-1]].astype(np.int32),
            offsets=offsets,
            second_from=None,
            pad=int(arrays["pad"]),
            was_cut=np.zeros(len(lengths), dtype=bool),
        )
        return tokens, arrays["targets"][: limit or None].astype(np.int64)


def _joined(first: TokenizedTexts, second: TokenizedTexts, places: np.ndarray) -> TokenizedTexts:
    """The texts of the one, then those of the other at some places."""
    chosen = np.zeros(len(second.lengths), dtype=bool)
    chosen[places] = True
    flat = np.concatenate([first.flat, second.flat[np.repeat(chosen, second.lengths)]])
    lengths = np.concatenate([first.lengths, second.lengths[chosen]])
    return replace(first, flat=flat, offsets=np.concatenate([[0], np.cumsum(lengths)]))


def _fit(
    encoder: Path,
    labels: list[str],
    tokens: TokenizedTexts,
    targets: np.ndarray,
    training: TrainSettings,
    seed: int,
) -> PreTrainedModel:
    source = encoder_source(encoder)
    model = load_for_classification(source, labels, dropout=training.dropout, seed=seed)
    longest = longest_input(model, load_encoder_tokenizer(source))
    planned = plan_training(training, hidden_size=hidden_size(model), longest_input=longest)
    strata = targets if targets.ndim == 1 else targets.argmax(axis=1)
    data = TrainingData(task="single", labels=labels, tokens=tokens, targets=targets, strata=strata)

    def progress(done: int, steps: int) -> None:
        if done % 500 == 0:
            print(f"step {done:,} of {steps:,}", flush=True)

    train(model, data, np.arange(len(targets)), planned, progress, seed=seed)
    return model


def _ask(model: PreTrainedModel, tokens: TokenizedTexts) -> np.ndarray:
    device = choose_device()
    held = DeviceTokens(tokens, device)
    return predict_probabilities(model, held, np.arange(len(tokens.lengths)), "single", device)


if __name__ == "__main__":
    sys.exit(run_command(LeaseSettings, main, "Half an hour on a lent GPU, in one go."))
