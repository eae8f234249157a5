"""Does a review classifier gain from reviews without labels, on which teachers are asked?

    python -m benchmarks.quality.self_training --model checkpoints/malmoi-small
    python -m benchmarks.quality.self_training --model checkpoints/malmoi-small --test

The teachers are classifiers of NSMC's training reviews, whose log-odds are added: the encoder,
fine-tuned with several seeds, and logistic regression over character n-grams, which errs elsewhere.
A student is the same encoder, trained on their soft pseudo-labels of other reviews (nobody looks at
their ratings) and on the training reviews with their labels (Xie et al. 2020, "Self-training with
Noisy Student improves ImageNet classification", section 2; of its noise only dropout). 10,000 of
the training reviews are kept from all of them, to choose by. Pseudo-labels and students are kept in
`--work`, so that a run that was stopped goes on, and two processes may train other seeds side by
side. Only `--test` reads the test file: it scores the students of `--student-seeds`, each once.

Legend: N texts; a probability is that of label 1, positive.
"""

import hashlib
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from scipy.special import expit, logit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from transformers import (
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from benchmarks.quality.downstream import (
    REVIEWS,
    ROOT,
    Results,
    encoder_name,
    identity_of,
    mean_and_spread,
)
from benchmarks.quality.tasks import TASKS, Rows
from finetune.plan import plan_training
from finetune.settings import TrainSettings
from finetune.training.encoders import (
    encoder_source,
    find_encoder,
    load_encoder_tokenizer,
    load_for_classification,
)
from finetune.training.fit import TrainingData, hidden_size, train
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import directory_at_once, write_at_once
from malmoi.inference.batching import DeviceTokens, tokenize_all
from malmoi.inference.torch_engine import predict_probabilities
from malmoi.model_loading import longest_input, save_model
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records
from malmoi.tokenizer_folders import load_tokenizer

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
    """Score the students of `--student-seeds` on the test file, each once."""
    work: Path = ROOT / "runs" / "benchmarks" / "self_training"
    """Folder of pseudo-labels and students."""
    results: Path = Path(__file__).parents[1] / "results" / "self_training.json"
    """JSON file of the results."""


@dataclass(frozen=True, kw_only=True)
class _Reviews:
    """What is learnt from, asked about and chosen by; no text of one is in another."""

    labelled: Rows
    dev: Rows
    others: list[str]

    def sha256(self) -> str:
        """Of all that pseudo-labels and students depend on."""
        targets = [rows.targets.tolist() for rows in (self.labelled, self.dev)]
        return _sha256([self.labelled.texts, self.dev.texts, self.others, targets])


def main(settings: SelfTrainingSettings) -> None:
    """Teach, then score teachers and students.

    Raises:
        InputError: a flag makes no sense, or a student that is to be scored is not there.
    """
    comparison = TASKS["nsmc"]
    if missing := [path for path in (*comparison.needs, REVIEWS) if not path.is_file()]:
        print(f"skipped: no {missing[0].name} in ../shared/data")
        return
    teacher_seeds = _seeds("teacher-seeds", settings.teacher_seeds)
    if not teacher_seeds:
        raise InputError("expected --teacher-seeds of at least one seed, found none")
    student_seeds = _seeds("student-seeds", settings.student_seeds)
    teacher_training = TrainSettings(epochs=settings.teacher_epochs)
    student_training = TrainSettings(
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
    )
    for training in (teacher_training, student_training):
        training.check()
    source = encoder_source(settings.model or find_encoder())
    name = encoder_name(source)
    reviews = _reviews(settings)
    common = {
        "unlabelled": settings.unlabelled,
        "dev_size": settings.dev_size,
        "teacher_epochs": settings.teacher_epochs,
        "texts_sha256": reviews.sha256(),
    }
    results = Results(settings.results, **common)
    key = {"encoder": name} | identity_of(source)
    student = {
        "arm": "student",
        "teachers": ",".join(map(str, teacher_seeds)),
        "epochs": settings.epochs,
        "batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate,
    }
    pseudo_labels_in = settings.work / f"{name}-{_sha256(key | common)[:8]}"
    students_in = settings.work / f"{name}-{_sha256(key | common | student)[:8]}-students"
    settings.work.mkdir(parents=True, exist_ok=True)
    if settings.test:
        with FileLock(f"{students_in}.lock"):
            _score(results, key | student, student_seeds, students_in)
        return

    print(
        f"{len(reviews.labelled.texts):,} labelled, {len(reviews.others):,} not, "
        f"{len(reviews.dev.texts):,} to choose by"
    )
    tokenizer = load_encoder_tokenizer(source)

    def add(probabilities: np.ndarray, seconds: int | None = None, **arm: object) -> float:
        accuracy = 100 * float(((probabilities > 0.5) == reviews.dev.targets).mean())
        if not _dev_rows(results, **key, **arm):
            took = {} if seconds is None else {"seconds": seconds}
            results.add(key | {"dev_accuracy": accuracy} | took | arm)
        return accuracy

    gold = np.eye(2, dtype=np.float32)[reviews.labelled.targets]
    asked = [reviews.dev.texts, reviews.others]

    def encoder(seed: int) -> list[np.ndarray]:
        model = _fit(source, tokenizer, reviews.labelled.texts, gold, teacher_training, seed)
        return [_ask(model, tokenizer, texts) for texts in asked]

    pseudo_labels = []
    for seed in teacher_seeds:
        with FileLock(f"{pseudo_labels_in}-{seed}.lock"):
            found = _kept(pseudo_labels_in / f"encoder-{seed}.npz", partial(encoder, seed))
            add(found[0], arm="encoder", seed=seed)
        pseudo_labels.append(found)
    if not student_seeds:
        return
    best = (0.0, 0.0)
    with FileLock(f"{pseudo_labels_in}-linear.lock"):
        linear = _kept(pseudo_labels_in / "linear.npz", partial(_linear, reviews.labelled, asked))
        add(linear[0], arm="linear")
        for share in SHARES:
            blended = _blend([one[0] for one in pseudo_labels], linear[0], share)
            accuracy = add(blended, arm="teacher", teachers=student["teachers"], share=share)
            best = max(best, (accuracy, share))
    teacher = _blend([one[1] for one in pseudo_labels], linear[1], best[1])

    texts = [*reviews.labelled.texts, *reviews.others]
    targets = np.concatenate([gold, np.stack([1 - teacher, teacher], axis=1)]).astype(np.float32)
    for seed in student_seeds:
        folder = students_in / str(seed)
        with FileLock(f"{students_in}-{seed}.lock"):
            seconds = None
            if folder.is_dir():
                print(f"trained already: {folder}")
                model = AutoModelForSequenceClassification.from_pretrained(folder)
            else:
                began = time.perf_counter()
                with directory_at_once(folder) as scratch:
                    model = _fit(source, tokenizer, texts, targets, student_training, seed)
                    seconds = round(time.perf_counter() - began)
                    save_model(model, tokenizer, scratch)
                print(f"student: {folder}")
            # One that was stopped here has no row yet.
            dev = _ask(model, tokenizer, reviews.dev.texts)
            add(dev, seconds, **student, share=best[1], seed=seed)


def _dev_rows(results: Results, **key: object) -> list[dict[str, Any]]:
    return [row for row in results.of(**key) if "dev_accuracy" in row]


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
    """Rising.

    Raises:
        InputError: one is no number, or there twice.
    """
    try:
        seeds = sorted(int(seed) for seed in text.split(",")) if text else []
    except ValueError as error:
        raise InputError(f"expected --{flag} of comma-separated seeds, found {text}") from error
    if len(set(seeds)) < len(seeds) or any(not 0 <= seed < 2**32 for seed in seeds):
        raise InputError(f"expected --{flag} of different seeds from 0 on, found {text}")
    return seeds


def _sha256(what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _kept(path: Path, make: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
    """Pseudo-labels, [N] each, of the reviews to choose by and of those without labels."""
    if path.is_file():
        with np.load(path) as kept:
            return [kept["dev"], kept["others"]]
    dev, others = make()
    buffer = io.BytesIO()
    np.savez(buffer, dev=dev, others=others)
    write_at_once(path, buffer.getvalue())
    return [dev, others]


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
    if not 0 < size <= len(found):
        raise InputError(
            f"expected --unlabelled from 1 to the {len(found):,} reviews there are, found {size:,}"
        )
    chosen = np.random.default_rng(0).permutation(len(found))[:size]
    return [found[place] for place in np.sort(chosen)]


def _linear(learn: Rows, asked: list[list[str]]) -> list[np.ndarray]:
    """Probabilities by character n-grams, [N] of each list asked about."""
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
    seed: int,
) -> PreTrainedModel:
    """Fine-tune on probabilities of both labels, float32 [N, 2].

    Raises:
        InputError: the loss became infinite or NaN.
    """
    model = load_for_classification(
        source, LABELS, dropout=training.dropout, seed=seed, tokenizer=tokenizer
    )
    longest = longest_input(model, tokenizer)
    planned = plan_training(training, hidden_size=hidden_size(model), longest_input=longest)
    data = TrainingData(
        task="single",
        labels=LABELS,
        tokens=tokenize_all(tokenizer, texts, planned.max_length),
        targets=targets,
        strata=targets.argmax(axis=1),
    )

    def progress(done: int, steps: int) -> None:
        if done % 500 == 0:
            print(f"step {done:,} of {steps:,}", flush=True)

    train(model, data, np.arange(len(texts)), planned, progress, seed=seed)
    return model


def _ask(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> np.ndarray:
    """Probabilities [N]."""
    tokens = DeviceTokens(tokenize_all(tokenizer, texts, TrainSettings.max_length), model.device)
    found = predict_probabilities(model, tokens, np.arange(len(texts)), "single", model.device)
    return found[:, 1]


def _blend(encoders: list[np.ndarray], linear: np.ndarray, share: float) -> np.ndarray:
    """Probabilities [N] by the mean log-odds of the encoders and, with `share` of the weight, those
    of the linear classifier."""
    odds = [logit(np.clip(one, CERTAIN, 1 - CERTAIN)) for one in (*encoders, linear)]
    blended: np.ndarray = expit((1 - share) * np.mean(odds[:-1], axis=0) + share * odds[-1])
    return blended


if __name__ == "__main__":
    sys.exit(run_command(SelfTrainingSettings, main, "Learn from reviews without labels."))
