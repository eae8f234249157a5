"""What comparisons train and ask: an encoder with a head, or a linear model of characters."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import hstack
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lab.benchmarks.quality.tasks import Comparison, Rows
from lab.benchmarks.robustness.perturbations import PERTURBATIONS
from malmoi.devices import choose_device
from malmoi.finetune.data.folds import strata_of
from malmoi.finetune.evaluation.scores import (
    choose_thresholds,
    decide,
    score,
    score_multi,
    score_regression,
    score_task,
)
from malmoi.finetune.plan import plan_training
from malmoi.finetune.settings import TrainSettings
from malmoi.finetune.training.encoders import load_encoder_tokenizer, load_for_classification
from malmoi.finetune.training.fit import TrainingData, hidden_size, train
from malmoi.inference.batching import tokenize_all
from malmoi.inference.linear.cross_fitting import fit_linear as fit_linear_part
from malmoi.inference.linear.fitting import CountedTexts, count_texts, fit_part, inputs_of
from malmoi.inference.linear.stacking import learn_stack
from malmoi.inference.tasks import Task, has_values
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.transformers_models import longest_input

# Test texts that are spoilt in all ways.
SPOILT = 10_000
# Regularisation of the linear support vector machine; not searched.
_LINEAR_C = 0.3
_LINEAR_FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class FittedEncoder:
    """A classifier that was trained, and how long that took.

    Attributes:
        thresholds: [K] of `multi`, else None.
        max_length: tokens of a text that were learnt, and of a window that is asked about.
        seconds: of training alone.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    thresholds: np.ndarray | None
    max_length: int
    seconds: float


def fit_encoder(
    source: str,
    learn: Rows,
    training: TrainSettings,
    *,
    task: Task,
    labels: list[str],
    seed: int,
    random_weights: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> FittedEncoder:
    """Fine-tune an encoder on all rows.

    Args:
        source: directory or Hub id.
        learn: of `single` also with float32 [N, K] probabilities of the labels as targets.
        progress: called with (steps done, steps in all) after every step.

    Raises:
        InputError: the loss became infinite or NaN.
    """
    tokenizer = load_encoder_tokenizer(source)
    model = load_for_classification(
        source,
        labels,
        dropout=training.dropout,
        seed=seed,
        random_weights=random_weights,
        tokenizer=tokenizer,
        task=task,
    )
    planned = plan_training(
        training,
        hidden_size=hidden_size(model),
        longest_input=longest_input(model, tokenizer),
        texts=len(learn.texts),
        task=task,
        random_weights=random_weights,
    )
    is_soft = task == "single" and learn.targets.ndim == 2
    data = TrainingData(
        task=task,
        labels=labels,
        tokens=tokenize_all(tokenizer, learn.texts, planned.max_length, pairs=learn.pairs),
        targets=learn.targets,
        strata=learn.targets.argmax(axis=1) if is_soft else strata_of(task, learn.targets),
    )
    began = time.perf_counter()
    trained = train(model, data, np.arange(len(learn.texts)), planned, progress, seed=seed)
    return FittedEncoder(
        model=model,
        tokenizer=tokenizer,
        thresholds=trained.thresholds,
        max_length=planned.max_length,
        seconds=time.perf_counter() - began,
    )


def ask_encoder(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Rows,
    *,
    task: Task = "single",
    max_length: int = TrainSettings.max_length,
) -> np.ndarray:
    """What a classifier says of each text: probabilities [N, K], or values."""
    device = choose_device()
    tokens = tokenize_all(tokenizer, rows.texts, max_length, pairs=rows.pairs)
    places = np.arange(len(rows.texts))
    found: np.ndarray = predict_probabilities(
        model, DeviceTokens(tokens, device), places, task, device
    )
    return found


def score_encoder(fitted: FittedEncoder, comparison: Comparison, rows: Rows) -> dict[str, float]:
    """Scores in percent."""
    found = ask_encoder(
        fitted.model,
        fitted.tokenizer,
        rows,
        task=comparison.task,
        max_length=fitted.max_length,
    )
    return percent(
        score_task(comparison.task, rows.targets, found, comparison.labels, fitted.thresholds)
    )


def score_both(
    fitted: FittedEncoder, comparison: Comparison, learn: Rows, held: Rows, test: Rows
) -> dict[str, Any]:
    """Scores in percent of an encoder and a linear model beside it, added up as kfold.py does.

    Args:
        fitted: learnt from `learn`.
        comparison: of one label a text.
        learn: what both learn from.
        held: what they say of these says how much each counts; the linear model that is scored has
            learnt from these, too.
        test: what is scored.

    Returns:
        Those of both, and `alone`: the main score of the encoder and of the linear model.
    """
    balanced = comparison.class_weights == "balanced"
    counted = count_texts([*learn.texts, *held.texts])
    said = _ask_logits(fitted, held)
    linear = _say_of_rest(counted, learn, len(comparison.labels), balanced=balanced)
    of_test = _ask_logits(fitted, test)
    targets = np.concatenate([learn.targets, held.targets])

    def add_up(parts: dict[str, np.ndarray], encoder: str | None) -> np.ndarray:
        always = {encoder} if encoder else ()
        stack = learn_stack(parts, held.targets, always, balanced=balanced)
        print(", ".join(f"{name} {weight:.2f}" for name, weight in stack.weights.items()))
        part = fit_linear_part(
            counted, targets, comparison.labels, stack, encoder=encoder, balanced=balanced
        )
        own = part.logits(test.texts)
        return (part.added(of_test, own) if encoder else own).argmax(axis=1)

    predicted = {
        "encoder": of_test.argmax(axis=1),
        "linear": add_up(linear, None),
        "both": add_up({"encoder": said} | linear, "encoder"),
    }
    scores = {name: score_labels(comparison, test, one) for name, one in predicted.items()}
    both: dict[str, Any] = scores.pop("both")
    alone = {name: one[comparison.metric] for name, one in scores.items()}
    return both | {"alone": alone}


def _ask_logits(fitted: FittedEncoder, rows: Rows) -> np.ndarray:
    """Logarithms of the probabilities, float32 [N, K]."""
    found = ask_encoder(fitted.model, fitted.tokenizer, rows, max_length=fitted.max_length)
    return np.log(np.maximum(found, np.finfo(np.float32).tiny))


def _say_of_rest(
    texts: CountedTexts, learn: Rows, labels: int, *, balanced: bool
) -> dict[str, np.ndarray]:
    """What each linear part, learnt from the first of the texts, says of the others.

    By the part, float32 [n, K] of the n texts that are not in `learn`.
    """
    places = np.arange(len(learn.texts))
    rest = np.arange(len(learn.texts), texts.texts)
    return {
        str(part): fit_part(texts, part, places, learn.targets, labels, balanced=balanced).logits(
            inputs_of(texts, part, rest)
        )
        for part in texts.parts
    }


def score_spoilt(fitted: FittedEncoder, comparison: Comparison, test: Rows) -> dict[str, float]:
    """The main score of the first test texts "as written", and with each perturbation."""
    some = test.at(np.arange(min(SPOILT, len(test.texts))))
    scores = {"as written": score_encoder(fitted, comparison, some)[comparison.metric]}
    for name, perturb in PERTURBATIONS.items():
        draw = random.Random(0)
        texts = [clean_text(perturb(text, draw)) for text in some.texts]
        spoilt = Rows(texts=texts, targets=some.targets)
        scores[name] = score_encoder(fitted, comparison, spoilt)[comparison.metric]
    return scores


def percent(scores: dict[str, Any]) -> dict[str, float]:
    """Those of the scores that results have, in percent."""
    names = ("accuracy", "macro_f1", "micro_f1", "spearman", "pearson")
    return {name: 100 * scores[name] for name in names if name in scores}


def character_ngrams() -> TfidfVectorizer:
    """TF-IDF of 1 to 4 characters."""
    return TfidfVectorizer(
        analyzer="char", ngram_range=(1, 4), min_df=2, sublinear_tf=True, dtype=np.float32
    )


def fit_linear(comparison: Comparison, learn: Rows, test: Rows) -> dict[str, float]:
    """Scores in percent of TF-IDF and a linear model; of similar pairs only of their cosine."""
    vectorizer = character_ngrams()
    vectorizer.fit([*learn.texts, *(learn.pairs or [])])
    features = [_features(vectorizer, rows) for rows in (learn, test)]
    if has_values(comparison.task):
        # Rows of TF-IDF have length 1: the sum of the products is the cosine.
        half = features[1].shape[1] // 2
        cosine = np.asarray(features[1][:, half:].sum(axis=1)).ravel()
        return percent(score_regression(test.targets, cosine))
    weights = None if comparison.class_weights == "none" else comparison.class_weights
    model = LinearSVC(C=_LINEAR_C, random_state=0, class_weight=weights)
    if comparison.task == "multi":
        model = OneVsRestClassifier(model)
        # Rare labels hardly ever reach a margin of 0; the encoder has thresholds of its own too.
        out_of_fold = cross_val_predict(
            model,
            features[0],
            learn.targets,
            cv=KFold(_LINEAR_FOLDS, shuffle=True, random_state=0),
            method="decision_function",
        )
        thresholds = choose_thresholds(learn.targets, expit(out_of_fold))
        margins = model.fit(features[0], learn.targets).decision_function(features[1])
        predicted = decide("multi", expit(margins), thresholds)
        return percent(score_multi(test.targets, predicted, comparison.labels))
    model.fit(features[0], learn.targets)
    predicted = np.asarray(model.predict(features[1]))
    return score_labels(comparison, test, predicted)


def score_labels(comparison: Comparison, rows: Rows, predicted: np.ndarray) -> dict[str, float]:
    """Scores in percent of one label a text, given as its place among the labels, int64 [N]."""
    return percent(score(rows.targets.tolist(), predicted.tolist(), comparison.labels))


def _features(vectorizer: TfidfVectorizer, rows: Rows) -> Any:
    """TF-IDF; of a pair the differences and then the products of the two texts' weights."""
    first = vectorizer.transform(rows.texts)
    if rows.pairs is None:
        return first
    second = vectorizer.transform(rows.pairs)
    return hstack([abs(first - second), first.multiply(second)]).tocsr()
