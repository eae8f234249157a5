"""Does a review classifier gain from reviews without labels, on which teachers are asked?

    python benchmarks/self_training.py --model checkpoints/malmoi-small
    python benchmarks/self_training.py --model checkpoints/malmoi-small --test

The teachers are classifiers of NSMC's training reviews, whose log-odds are added: the encoder,
fine-tuned with several seeds, and logistic regression over character n-grams, which errs elsewhere.
A student is the same encoder, trained on their probabilities for other reviews (nobody looks at
their ratings) and on the training reviews with their labels (Xie et al. 2020, "Self-training with
Noisy Student", section 2, without its noise). 10,000 of the training reviews are kept from all of
them, to choose by. Opinions and students are kept in `--work`, so that a run that was stopped goes
on, and two processes may train other seeds side by side. Only `--test` reads the test file: it
scores the students that are there, each once.
"""

import hashlib
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from downstream import NSMC, REVIEWS, ROOT, Results, encoder_name, identity_of, mean_and_spread
from quality_tasks import TASKS, Rows
from scipy.special import expit, logit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from transformers import (
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from corpora.atomic import directory_at_once, write_at_once
from corpora.cleaning import clean_text
from corpora.command_line import run_command
from corpora.errors import InputError
from corpora.reading import iter_records
from finetune.batches import DeviceTokens, tokenize_all
from finetune.encoders import (
    encoder_source,
    find_encoder,
    load_encoder_tokenizer,
    load_for_classification,
)
from finetune.predicting import predict_probabilities
from finetune.training import TrainingData, TrainSettings, train
from pretrain.saving import save_model
from tokenizer.training import load_tokenizer

LABELS = ["0", "1"]
# Share of the linear classifier in the teacher's log-odds, to choose from.
SHARES = (0.0, 0.3, 0.5, 0.7)
# Keeps log-odds of certain answers finite.
CERTAIN = 1e-4


@dataclass(kw_only=True)
class SelfTrainingSettings:
    """Which encoder learns, from how many reviews."""

    model: str | None = None
    """Encoder: directory, pre-training run or Hub id; by default the newest finished run, else the
    released one."""
    unlabelled: int = 400_000
    """Reviews without labels."""
    teacher_epochs: int = 2
    """Passes of a teacher over the training reviews."""
    teacher_seeds: str = "0,1"
    """Comma-separated seeds of the encoders among the teachers."""
    epochs: int = 2
    """Passes of a student over all reviews."""
    batch_size: int = 64
    """Reviews in a step of a student."""
    learning_rate: float = 4e-4
    """Highest learning rate of a student."""
    student_seeds: str = "0,1,2"
    """Comma-separated seeds of the students; empty: only teachers."""
    dev_size: int = 10_000
    """Training reviews to choose by."""
    test: bool = False
    """Score the students that are there on the test file, each once."""
    work: Path = ROOT / "runs" / "benchmarks" / "self_training"
    """Folder of opinions and students."""
    results: Path = Path(__file__).parent / "results" / "self_training.json"
    """JSON file of the results."""


@dataclass(frozen=True, kw_only=True)
class _Reviews:
    """What is learnt from, asked about and chosen by; no text of one is in another."""

    labelled: Rows
    dev: Rows
    others: list[str]


def main(settings: SelfTrainingSettings) -> None:
    """Teach, then score teachers and students."""
    if missing := [path for path in (NSMC, REVIEWS) if not path.is_file()]:
        print(f"skipped: no {missing[0].name} in ../shared/data")
        return
    teacher_seeds = _seeds("teacher-seeds", settings.teacher_seeds)
    if not teacher_seeds:
        raise InputError("expected --teacher-seeds of at least one seed, found none")
    student_seeds = _seeds("student-seeds", settings.student_seeds)
    source = encoder_source(settings.model or find_encoder())
    name = encoder_name(source)
    common = {
        "unlabelled": settings.unlabelled,
        "dev_size": settings.dev_size,
        "teacher_epochs": settings.teacher_epochs,
    }
    results = Results(settings.results, **common)
    key = {"encoder": name} | identity_of(source)
    student = {
        "arm": "student",
        "teachers": settings.teacher_seeds,
        "epochs": settings.epochs,
        "batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate,
    }
    of_teachers = f"{name}-{_hash(key | common)}"
    of_students = f"{of_teachers}-{_hash(student)}"
    if settings.test:
        _score(results, key | student, student_seeds, settings.work / of_students)
        return

    reviews = _reviews(settings)
    print(
        f"{len(reviews.labelled.texts):,} labelled, {len(reviews.others):,} not, "
        f"{len(reviews.dev.texts):,} to choose by"
    )
    tokenizer = load_encoder_tokenizer(source)

    def add(probabilities: np.ndarray, seconds: float, **more: object) -> float:
        accuracy = 100 * float(((probabilities > 0.5) == reviews.dev.targets).mean())
        # Another process may have had the same opinion.
        if not results.of(**key, **more):
            row = key | {"dev_accuracy": accuracy, "seconds": round(seconds)} | more
            results.add(row)
        return accuracy

    gold = np.eye(2, dtype=np.float32)[reviews.labelled.targets]
    opinions = []
    for seed in teacher_seeds:
        training = TrainSettings(epochs=settings.teacher_epochs, seed=seed)

        def encoder(training: TrainSettings = training) -> list[np.ndarray]:
            model = _fit(source, tokenizer, reviews.labelled.texts, gold, training)
            return [_ask(model, tokenizer, texts) for texts in (reviews.dev.texts, reviews.others)]

        found, seconds = _kept(settings.work / of_teachers / f"encoder-{seed}.npz", encoder)
        add(found[0], seconds, arm="encoder", seed=seed)
        opinions.append(found)
    if not student_seeds:
        return
    linear, seconds = _kept(
        settings.work / of_teachers / "linear.npz",
        lambda: _linear(reviews.labelled, [reviews.dev.texts, reviews.others]),
    )
    add(linear[0], seconds, arm="linear")
    best = (0.0, 0.0)
    for share in SHARES:
        blended = _blend([one[0] for one in opinions], linear[0], share)
        teachers = {"arm": "teacher", "teachers": settings.teacher_seeds, "share": share}
        best = max(best, (add(blended, 0, **teachers), share))
    teacher = _blend([one[1] for one in opinions], linear[1], best[1])

    texts = [*reviews.labelled.texts, *reviews.others]
    targets = np.concatenate([gold, np.stack([1 - teacher, teacher], axis=1)]).astype(np.float32)
    for seed in student_seeds:
        folder = settings.work / of_students / str(seed)
        if folder.is_dir():
            print(f"trained already: {folder}")
            continue
        training = TrainSettings(
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            seed=seed,
        )
        began = time.perf_counter()
        model = _fit(source, tokenizer, texts, targets, training)
        seconds = time.perf_counter() - began
        add(_ask(model, tokenizer, reviews.dev.texts), seconds, **student, share=best[1], seed=seed)
        with directory_at_once(folder) as scratch:
            save_model(model, tokenizer, scratch)
        print(f"student: {folder}")


def _score(results: Results, key: dict[str, Any], seeds: list[int], folder: Path) -> None:
    """The students that were not yet, on the test file; then the mean."""
    read = TASKS["nsmc"].test
    assert read is not None
    missing = [seed for seed in seeds if not results.of(**key, seed=seed, part="test")]
    for seed in missing:
        if not (folder / str(seed)).is_dir():
            raise InputError(f"expected a student in {folder / str(seed)}; train it without --test")
    rows = read() if missing else Rows(texts=[], targets=np.array([]))
    for seed in missing:
        model = AutoModelForSequenceClassification.from_pretrained(folder / str(seed))
        found = _ask(model, load_tokenizer(folder / str(seed)), rows.texts)
        accuracy = 100 * float(((found > 0.5) == rows.targets).mean())
        results.add(key | {"seed": seed, "part": "test", "accuracy": accuracy})
    scores = [row["accuracy"] for row in results.of(**key, part="test")]
    print(f"NSMC, test: {mean_and_spread(scores)}")


def _seeds(flag: str, text: str) -> list[int]:
    try:
        return [int(seed) for seed in text.split(",")] if text else []
    except ValueError as error:
        raise InputError(f"expected --{flag} of comma-separated seeds, found {text}") from error


def _hash(what: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]


def _kept(path: Path, make: Callable[[], list[np.ndarray]]) -> tuple[list[np.ndarray], float]:
    """Opinions about the reviews to choose by and those without labels, and seconds of forming."""
    if path.is_file():
        with np.load(path) as kept:
            return [kept["dev"], kept["others"]], float(kept["seconds"])
    began = time.perf_counter()
    found = make()
    seconds = time.perf_counter() - began
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez(buffer, dev=found[0], others=found[1], seconds=seconds)
    write_at_once(path, buffer.getvalue())
    return found, seconds


def _reviews(settings: SelfTrainingSettings) -> _Reviews:
    """The same for every seed."""
    learn = TASKS["nsmc"].train()
    if not 0 < settings.dev_size < len(learn.texts) // 2:
        raise InputError(
            f"expected --dev-size from 1 to less than half of {len(learn.texts):,} reviews, found "
            f"{settings.dev_size:,}"
        )
    order = np.random.default_rng(0).permutation(len(learn.texts))
    dev = learn.at(np.sort(order[: settings.dev_size]))
    known = set(dev.texts)
    rest = [place for place in order[settings.dev_size :] if learn.texts[place] not in known]
    others = _unlabelled({*learn.texts}, settings.unlabelled)
    return _Reviews(labelled=learn.at(np.sort(rest)), dev=dev, others=others)


def _unlabelled(known: set[str], size: int) -> list[str]:
    """Rated reviews without their ratings, none of them in `known`."""
    found = sorted({clean_text(record.text) for record in iter_records(REVIEWS)} - known - {""})
    chosen = np.random.default_rng(0).permutation(len(found))[:size]
    return [found[place] for place in np.sort(chosen)]


def _linear(learn: Rows, asked: list[list[str]]) -> list[np.ndarray]:
    """Probability of label 1 for each of the texts asked, by character n-grams."""
    vectorizer = TfidfVectorizer(
        analyzer="char", ngram_range=(1, 4), min_df=2, sublinear_tf=True, dtype=np.float32
    )
    features = vectorizer.fit_transform(learn.texts)
    model = LogisticRegression(C=5, solver="liblinear").fit(features, learn.targets)
    return [model.predict_proba(vectorizer.transform(texts))[:, 1] for texts in asked]


def _fit(
    source: str,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    targets: np.ndarray,
    training: TrainSettings,
) -> PreTrainedModel:
    """Fine-tune on probabilities [N, 2]."""
    model = load_for_classification(
        source, LABELS, dropout=training.dropout, seed=training.seed, tokenizer=tokenizer
    )
    data = TrainingData(
        task="single",
        labels=LABELS,
        tokens=tokenize_all(tokenizer, texts, training.max_length),
        targets=targets,
        strata=targets.argmax(axis=1),
    )

    def progress(done: int, steps: int) -> None:
        if done % 500 == 0:
            print(f"step {done:,} of {steps:,}", flush=True)

    train(model, data, np.arange(len(texts)), training, progress)
    return model


def _ask(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> np.ndarray:
    tokens = DeviceTokens(tokenize_all(tokenizer, texts, TrainSettings.max_length), model.device)
    found = predict_probabilities(model, tokens, np.arange(len(texts)), "single", model.device)
    return found[:, 1]


def _blend(encoders: list[np.ndarray], linear: np.ndarray, share: float) -> np.ndarray:
    """By the mean log-odds of the encoders and, with `share` of the weight, the linear ones."""
    odds = [logit(np.clip(one, CERTAIN, 1 - CERTAIN)) for one in (*encoders, linear)]
    blended: np.ndarray = expit((1 - share) * np.mean(odds[:-1], axis=0) + share * odds[-1])
    return blended


if __name__ == "__main__":
    sys.exit(run_command(SelfTrainingSettings, main, "Learn from reviews without labels."))
