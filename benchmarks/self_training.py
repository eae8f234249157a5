"""Does a review classifier gain from reviews without labels, on which a teacher is asked?

    python benchmarks/self_training.py --model runs/pretrain/NAME
    python benchmarks/quality.py --model runs/benchmarks/self_training/NAME-student --tasks nsmc

The teacher is two classifiers of NSMC's training reviews, whose log-odds are added: the fine-tuned
encoder, and logistic regression over character n-grams, which errs elsewhere. The student is the
same encoder, trained on the teacher's probabilities for other reviews (nobody looks at their
ratings) and on the training reviews with their labels. 10,000 of the training reviews are kept from
all of them, to choose by. The student's encoder is written to `--output`; test files are not read.
But the student knows labels of reviews that `quality.py` would choose a learning rate by: give it
one rate to take.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from downstream import NSMC, REVIEWS, ROOT, Results, encoder_name, identity_of
from quality_tasks import TASKS, Rows
from scipy.special import expit, logit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from transformers import AutoModelForPreTraining, PreTrainedModel, PreTrainedTokenizerBase

from corpora.atomic import directory_at_once
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
from tokenizer.training import save_tokenizer

LABELS = ["0", "1"]
# Share of the linear classifier in the teacher's log-odds, to choose from.
SHARES = (0.0, 0.3, 0.5, 0.7, 1.0)
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
    """Passes over the training reviews."""
    epochs: int = 2
    """Passes of the student over all reviews."""
    dev_size: int = 10_000
    """Training reviews to choose by."""
    seed: int = 0
    """Of all draws."""
    output: Path | None = None
    """Folder of the student's encoder; default runs/benchmarks/self_training/NAME-student."""
    results: Path = Path(__file__).parent / "results" / "self_training.json"
    """JSON file of the results."""


def main(settings: SelfTrainingSettings) -> None:
    """Teach, then score teacher and student."""
    if missing := [path for path in (NSMC, REVIEWS) if not path.is_file()]:
        print(f"skipped: no {missing[0].name} in ../shared/data")
        return
    source = encoder_source(settings.model or find_encoder())
    name = encoder_name(source)
    output = settings.output or ROOT / "runs" / "benchmarks" / "self_training" / f"{name}-student"
    learn = TASKS["nsmc"].train()
    if not 0 < settings.dev_size < len(learn.texts) // 2:
        raise InputError(
            f"expected --dev-size from 1 to less than half of {len(learn.texts):,} reviews, found "
            f"{settings.dev_size:,}"
        )
    order = np.random.default_rng(settings.seed).permutation(len(learn.texts))
    dev = learn.at(np.sort(order[: settings.dev_size]))
    known = set(dev.texts)
    rest = [place for place in order[settings.dev_size :] if learn.texts[place] not in known]
    labelled = learn.at(np.sort(rest))
    others = _unlabelled({*learn.texts}, settings)
    print(f"{len(labelled.texts):,} labelled, {len(others):,} not, {len(dev.texts):,} to choose by")

    results = Results(
        settings.results,
        unlabelled=settings.unlabelled,
        dev_size=settings.dev_size,
        teacher_epochs=settings.teacher_epochs,
        epochs=settings.epochs,
    )
    key = {"encoder": name, "seed": settings.seed} | identity_of(source)
    if results.of(**key, arm="student") and output.is_dir():
        print(f"measured already: {output}, {settings.results}")
        return
    if output.exists():
        raise InputError(f"expected a new folder, found {output}; name another with --output")

    def add(arm: str, probabilities: np.ndarray, began: float, **more: object) -> float:
        accuracy = 100 * float(((probabilities > 0.5) == dev.targets).mean())
        seconds = round(time.perf_counter() - began)
        # One that was stopped has some of them.
        if not results.of(**key, arm=arm, **more):
            results.add({**key, "arm": arm, "dev_accuracy": accuracy, "seconds": seconds} | more)
        return accuracy

    began = time.perf_counter()
    linear_dev, linear = _linear(labelled, [dev.texts, others])
    add("linear", linear_dev, began)
    began = time.perf_counter()
    tokenizer = load_encoder_tokenizer(source)
    gold = np.eye(2, dtype=np.float32)[labelled.targets]
    model = _fit(source, tokenizer, labelled.texts, gold, settings.teacher_epochs, settings.seed)
    own_dev, own = (_ask(model, tokenizer, texts) for texts in (dev.texts, others))
    add("encoder", own_dev, began, epochs=settings.teacher_epochs)
    best = (0.0, 0.0)
    for share in SHARES[1:-1]:
        blended = _blend(own_dev, linear_dev, share)
        accuracy = add("teacher", blended, began, share=share)
        best = max(best, (accuracy, share))
    teacher = _blend(own, linear, best[1])

    began = time.perf_counter()
    texts = [*labelled.texts, *others]
    targets = np.concatenate([gold, np.stack([1 - teacher, teacher], axis=1)]).astype(np.float32)
    model = _fit(source, tokenizer, texts, targets, settings.epochs, settings.seed)
    numbers = {"unlabelled": len(others), "epochs": settings.epochs, "share": best[1]}
    add("student", _ask(model, tokenizer, dev.texts), began, **numbers)
    save_encoder(model, tokenizer, source, output)
    print(f"the student's encoder: {output}")


def _unlabelled(known: set[str], settings: SelfTrainingSettings) -> list[str]:
    """Rated reviews without their ratings, none of them in `known`."""
    found = sorted({clean_text(record.text) for record in iter_records(REVIEWS)} - known - {""})
    chosen = np.random.default_rng(settings.seed).permutation(len(found))[: settings.unlabelled]
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
    epochs: int,
    seed: int,
) -> PreTrainedModel:
    """Fine-tune on probabilities [N, 2]."""
    training = TrainSettings(epochs=epochs, seed=seed)
    model = load_for_classification(
        source, LABELS, dropout=training.dropout, seed=seed, tokenizer=tokenizer
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


def _blend(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    odds = [logit(np.clip(one, CERTAIN, 1 - CERTAIN)) for one in (first, second)]
    blended: np.ndarray = expit((1 - share) * odds[0] + share * odds[1])
    return blended


def save_encoder(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str, output: Path
) -> None:
    """The student without its head, in the shape that it began in."""
    whole = AutoModelForPreTraining.from_pretrained(source, dtype=torch.float32)
    whole.base_model.load_state_dict(model.base_model.state_dict())
    with directory_at_once(output) as scratch:
        whole.save_pretrained(scratch)
        save_tokenizer(tokenizer, scratch)


if __name__ == "__main__":
    sys.exit(run_command(SelfTrainingSettings, main, "Learn from reviews without labels."))
