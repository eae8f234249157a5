"""Does a review classifier gain from reviews without labels, on which teachers are asked?

    python -m lab.benchmarks.quality.self_training --model checkpoints/malmoi-small
    python -m lab.benchmarks.quality.self_training --model checkpoints/malmoi-small --test

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
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock

from lab.benchmarks.data import RATED_REVIEWS, DataSettings
from lab.benchmarks.quality.downstream import (
    ROOT,
    Results,
    encoder_name,
    identity_of,
    mean_and_spread,
)
from lab.benchmarks.quality.tasks import TASKS, Rows
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import directory_at_once, write_at_once
from malmoi.finetune.settings import TrainSettings
from malmoi.text.cleaning.cleaner import clean_text

if TYPE_CHECKING:
    from lab.benchmarks.quality.fitting import FittedEncoder

LABELS = ["0", "1"]
# Share of the linear classifier in the teacher's log-odds, to choose from.
SHARES = (0.0, 0.3, 0.5, 0.7)
# Keeps log-odds of certain answers finite.
CERTAIN = 1e-4


@dataclass(kw_only=True)
class SelfTrainingSettings(DataSettings):
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
        """A hash of all that pseudo-labels and students depend on."""
        targets = [rows.targets.tolist() for rows in (self.labelled, self.dev)]
        return _sha256([self.labelled.texts, self.dev.texts, self.others, targets])


def main(settings: SelfTrainingSettings) -> None:
    """Teach, then score teachers and students.

    Raises:
        InputError: a flag makes no sense, data lacks, or a student that is to be scored.
    """
    for file in (*TASKS["nsmc"].needs, RATED_REVIEWS):
        file.find(settings.folder)
    study = _study(settings)
    settings.work.mkdir(parents=True, exist_ok=True)
    if settings.test:
        with FileLock(f"{study.students_in}.lock"):
            _score(study)
        return
    reviews = study.reviews
    print(
        f"{len(reviews.labelled.texts):,} labelled, {len(reviews.others):,} not, "
        f"{len(reviews.dev.texts):,} to choose by"
    )
    pseudo_labels = _ask_encoders(study)
    if study.student_seeds:
        share, teacher = _choose_teacher(study, pseudo_labels)
        _teach_students(study, share, teacher)


@dataclass(frozen=True, kw_only=True)
class _Study:
    """All of one setting.

    Attributes:
        source: the encoder.
        key: what its rows are told by.
        student: what rows of its students are told by, too.
        pseudo_labels_in: folder of what teachers said.
        students_in: folder of the students.
    """

    source: str
    folder: Path
    reviews: _Reviews
    results: Results
    teacher_training: TrainSettings
    student_training: TrainSettings
    teacher_seeds: list[int]
    student_seeds: list[int]
    key: dict[str, Any]
    student: dict[str, Any]
    pseudo_labels_in: Path
    students_in: Path

    def add(self, probabilities: np.ndarray, seconds: int | None = None, **arm: object) -> float:
        """Record the accuracy on the reviews to choose by, if it is not there yet."""
        accuracy = 100 * float(((probabilities > 0.5) == self.reviews.dev.targets).mean())
        if not _dev_rows(self.results, **self.key, **arm):
            took = {} if seconds is None else {"seconds": seconds}
            self.results.add(self.key | {"dev_accuracy": accuracy} | took | arm)
        return accuracy

    @property
    def gold(self) -> np.ndarray:
        """Probabilities of the labelled reviews, float32 [N, 2]."""
        return np.eye(2, dtype=np.float32)[self.reviews.labelled.targets]

    @property
    def asked(self) -> list[list[str]]:
        """What teachers are asked about: the reviews to choose by, and those without labels."""
        return [self.reviews.dev.texts, self.reviews.others]


def _study(settings: SelfTrainingSettings) -> _Study:
    """Check the flags, read the reviews, open the results."""
    from malmoi.finetune.training.encoders import encoder_source
    from malmoi.model_folders import find_encoder

    teacher_seeds = _seeds("teacher-seeds", settings.teacher_seeds)
    if not teacher_seeds:
        raise InputError("expected --teacher-seeds of at least one seed, found none")
    student_seeds = _seeds("student-seeds", settings.student_seeds)
    hows: dict[str, Any] = {
        "epochs": settings.epochs,
        "batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate,
    }
    trainings = [TrainSettings(epochs=settings.teacher_epochs), TrainSettings(**hows)]
    for training in trainings:
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
    key = {"encoder": name} | identity_of(source)
    student = {"arm": "student", "teachers": ",".join(map(str, teacher_seeds))} | hows
    setting = settings.work / f"{name}-{_sha256(key | common)[:8]}"
    students = f"{name}-{_sha256(key | common | student)[:8]}-students"
    return _Study(
        source=source,
        folder=settings.folder,
        reviews=reviews,
        results=Results(settings.results, **common),
        teacher_training=trainings[0],
        student_training=trainings[1],
        teacher_seeds=teacher_seeds,
        student_seeds=student_seeds,
        key=key,
        student=student,
        pseudo_labels_in=setting,
        students_in=settings.work / students,
    )


def _ask_encoders(study: _Study) -> list[list[np.ndarray]]:
    """What the encoder, fine-tuned with each seed, says of what is asked."""

    def teacher(seed: int) -> list[np.ndarray]:
        texts = study.reviews.labelled.texts
        fitted = _fit(study.source, texts, study.gold, study.teacher_training, seed)
        return [_ask(fitted.model, fitted.tokenizer, texts) for texts in study.asked]

    pseudo_labels = []
    for seed in study.teacher_seeds:
        with FileLock(f"{study.pseudo_labels_in}-{seed}.lock"):
            path = study.pseudo_labels_in / f"encoder-{seed}.npz"
            found = _kept(path, partial(teacher, seed))
            study.add(found[0], arm="encoder", seed=seed)
        pseudo_labels.append(found)
    return pseudo_labels


def _choose_teacher(study: _Study, encoders: list[list[np.ndarray]]) -> tuple[float, np.ndarray]:
    """The share of the linear classifier that did best, and probabilities [N] with it."""
    best = (0.0, 0.0)
    with FileLock(f"{study.pseudo_labels_in}-linear.lock"):
        make = partial(_linear, study.reviews.labelled, study.asked)
        linear = _kept(study.pseudo_labels_in / "linear.npz", make)
        study.add(linear[0], arm="linear")
        for share in SHARES:
            blended = _blend([one[0] for one in encoders], linear[0], share)
            teachers = study.student["teachers"]
            accuracy = study.add(blended, arm="teacher", teachers=teachers, share=share)
            best = max(best, (accuracy, share))
    return best[1], _blend([one[1] for one in encoders], linear[1], best[1])


def _teach_students(study: _Study, share: float, teacher: np.ndarray) -> None:
    """Train the students that are not there yet, and record what they do on dev reviews."""
    from transformers import AutoModelForSequenceClassification

    from malmoi.model_loading import save_model
    from malmoi.tokenizer_folders import load_tokenizer

    texts = [*study.reviews.labelled.texts, *study.reviews.others]
    soft = np.stack([1 - teacher, teacher], axis=1)
    targets = np.concatenate([study.gold, soft]).astype(np.float32)
    for seed in study.student_seeds:
        folder = study.students_in / str(seed)
        with FileLock(f"{study.students_in}-{seed}.lock"):
            seconds = None
            if folder.is_dir():
                print(f"trained already: {folder}")
                model = AutoModelForSequenceClassification.from_pretrained(folder)
                tokenizer = load_tokenizer(folder)
            else:
                began = time.perf_counter()
                with directory_at_once(folder) as scratch:
                    fitted = _fit(study.source, texts, targets, study.student_training, seed)
                    seconds = round(time.perf_counter() - began)
                    model, tokenizer = fitted.model, fitted.tokenizer
                    save_model(model, tokenizer, scratch)
                print(f"student: {folder}")
            # One that was stopped here has no row yet.
            dev = _ask(model, tokenizer, study.reviews.dev.texts)
            study.add(dev, seconds, **study.student, share=share, seed=seed)


def _dev_rows(results: Results, **key: object) -> list[dict[str, Any]]:
    return [row for row in results.of(**key) if "dev_accuracy" in row]


def _score(study: _Study) -> None:
    """The students that were not yet, on the test file; then the mean."""
    from transformers import AutoModelForSequenceClassification

    from malmoi.tokenizer_folders import load_tokenizer

    read = TASKS["nsmc"].test
    assert read is not None
    results, key = study.results, study.key | study.student
    missing = [
        seed for seed in study.student_seeds if not results.of(**key, seed=seed, part="test")
    ]
    folders = {seed: study.students_in / str(seed) for seed in missing}
    for folder in folders.values():
        if not folder.is_dir():
            raise InputError(f"expected a student in {folder}; train it without --test")
    rows = read(study.folder) if missing else Rows(texts=[], targets=np.array([]))
    for seed, folder in folders.items():
        model = AutoModelForSequenceClassification.from_pretrained(folder)
        found = _ask(model, load_tokenizer(folder), rows.texts)
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
    learn = TASKS["nsmc"].train(settings.folder)
    if not 0 < settings.dev_size < len(learn.texts) // 2:
        raise InputError(
            f"expected --dev-size from 1 to less than half of {len(learn.texts):,} reviews, found "
            f"{settings.dev_size:,}"
        )
    order = np.random.default_rng(0).permutation(len(learn.texts))
    dev = learn.at(np.sort(order[: settings.dev_size]))
    known = set(dev.texts)
    rest = [place for place in order[settings.dev_size :] if learn.texts[place] not in known]
    others = _unlabelled(settings.folder, {*learn.texts}, settings.unlabelled)
    return _Reviews(labelled=learn.at(np.sort(rest)), dev=dev, others=others)


def _unlabelled(data: Path, known: set[str], size: int) -> list[str]:
    """Rated reviews without their ratings, none of them in `known`."""
    from malmoi.text.reading.records import iter_records

    records = iter_records(RATED_REVIEWS.find(data))
    found = sorted({clean_text(record.text) for record in records} - known - {""})
    if not 0 < size <= len(found):
        raise InputError(
            f"expected --unlabelled from 1 to the {len(found):,} reviews there are, found {size:,}"
        )
    chosen = np.random.default_rng(0).permutation(len(found))[:size]
    return [found[place] for place in np.sort(chosen)]


def _linear(learn: Rows, asked: list[list[str]]) -> list[np.ndarray]:
    """Probabilities by character n-grams, [N] of each list asked about."""
    from sklearn.linear_model import LogisticRegression

    from lab.benchmarks.quality.fitting import character_ngrams

    vectorizer = character_ngrams()
    features = vectorizer.fit_transform(learn.texts)
    model = LogisticRegression(C=5, solver="liblinear").fit(features, learn.targets)
    return [model.predict_proba(vectorizer.transform(texts))[:, 1] for texts in asked]


def _fit(
    source: str, texts: Sequence[str], targets: np.ndarray, training: TrainSettings, seed: int
) -> "FittedEncoder":
    """Fine-tune on probabilities of both labels, float32 [N, 2].

    Raises:
        InputError: the loss became infinite or NaN.
    """
    from lab.benchmarks.quality.fitting import fit_encoder

    def progress(done: int, steps: int) -> None:
        if done % 500 == 0:
            print(f"step {done:,} of {steps:,}", flush=True)

    rows = Rows(texts=list(texts), targets=targets)
    return fit_encoder(
        source, rows, training, task="single", labels=LABELS, seed=seed, progress=progress
    )


def _ask(model: Any, tokenizer: Any, texts: Sequence[str]) -> np.ndarray:
    """Probabilities [N]."""
    from lab.benchmarks.quality.fitting import ask_encoder

    rows = Rows(texts=list(texts), targets=np.array([]))
    return ask_encoder(model, tokenizer, rows)[:, 1]


def _blend(encoders: list[np.ndarray], linear: np.ndarray, share: float) -> np.ndarray:
    """Probabilities [N] by the mean log-odds of the encoders and, with `share` of the weight, those
    of the linear classifier."""
    from scipy.special import expit, logit

    odds = [logit(np.clip(one, CERTAIN, 1 - CERTAIN)) for one in (*encoders, linear)]
    blended: np.ndarray = expit((1 - share) * np.mean(odds[:-1], axis=0) + share * odds[-1])
    return blended


if __name__ == "__main__":
    sys.exit(run_command(SelfTrainingSettings, main, "Learn from reviews without labels."))
