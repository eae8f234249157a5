"""How good is an encoder? Fine-tuned on whole training files, scored once on the test files.

    python -m lab.benchmarks.quality.score --model runs/pretrain/NAME --tasks nsmc,three
    python -m lab.benchmarks.quality.score --model runs/pretrain/NAME --random-weights
    python -m lab.benchmarks.quality.score --linear
    python -m lab.benchmarks.quality.score --model NAME --with-linear --tasks nsmc,hate

Learning rate and epochs are chosen on a part of the training file, or on the dev file where there
is one, with one seed; only then is the whole training file learnt, with every seed, and the test
file scored, once for each. What is done is kept in the results, so that no second look at a test
file can choose anything (one was taken, by hand: rows of part "test, first look",
lab/log); rows belong to an encoder's weights, not to its folder's name, and
to one setting of each task. Of NSMC's test texts 10,000 are scored once more with typos, without
spaces, drawn out, in NFD and after CP949.
The memos and the written reviews have no test file but five folds; the choice has seen a part of
all of them. Their rows belong to the texts as they are, which the project writes and mends itself.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.data import DataSettings
from lab.benchmarks.quality.downstream import (
    Results,
    encoder_name,
    identity_of,
    mean_and_spread,
    numbers_of,
)
from lab.benchmarks.quality.tasks import TASKS, Comparison, Rows
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import file_sha256
from malmoi.finetune.settings import TrainSettings

RESULTS = Path(__file__).parents[1] / "results" / "quality.json"
FOLDS = 5
LINEAR = "characters, linear SVM"
# Part of the training file that says how much an encoder and its linear part count.
HELD_OUT = 10
# Tasks whose test texts are scored once more, spoilt in all ways.
SPOILT_TASKS = ("nsmc",)
# What is chosen on a part of the training file.
CHOSEN = ("epochs", "learning_rate", "layer_decay")


@dataclass(kw_only=True)
class QualitySettings(DataSettings):
    """Which encoder, which tasks, how often."""

    model: str | None = None
    """Encoder: directory, pre-training run or Hub id; by default the newest finished run."""
    name: str | None = None
    """What it is called in the results; by default the name of its folder."""
    random_weights: bool = False
    """Start from random weights of the same shape instead."""
    linear: bool = False
    """Character n-grams and a linear model instead of an encoder."""
    with_linear: bool = False
    """Add the linear part that kfold.py adds (one label a text, with a test file); a tenth of the
    training file is kept from the encoder to say how much each counts."""
    tasks: str = ",".join(name for name in TASKS if name != "three-all")
    """Comma-separated tasks; three-all (all rated reviews) takes hours on a CPU and is left out."""
    seeds: int = 3
    """Fine-tuning runs on each whole training file; 0: only choose."""
    epochs: str = "3"
    """Comma-separated numbers of passes to choose from."""
    learning_rates: str = "1e-4,3e-4"
    """Comma-separated learning rates to choose from."""
    layer_decays: str | None = None
    """Comma-separated layer decays to choose from; by default that of the encoder's size."""
    dev_train_size: int = 20_000
    """Rows of the training file that a choice is trained on, at most four fifths of it, or all of
    it where there is a dev file."""
    dev_size: int = 10_000
    """Other rows of it that a choice is scored on, at most a fifth of it; a dev file is scored
    whole."""
    keep: Path | None = None
    """Folder in which the classifiers that score a test file now are kept, as ENCODER-TASK-SEED;
    of tasks in folds none."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: QualitySettings) -> None:
    """Choose, train, score what is missing, then print the table."""
    _check(settings)
    names = settings.tasks.split(",")
    if unknown := [name for name in names if name not in TASKS]:
        raise InputError(f"expected --tasks of {', '.join(TASKS)}, found {unknown[0]}")
    results = Results(settings.output)
    recorded = results.rows
    encoder, identity = _name(settings), _identity(settings)
    for file in (file for name in names for file in TASKS[name].needs):
        file.find(settings.folder)
    for name in names:
        if settings.linear:
            _measure_linear(name, results, settings.folder)
        else:
            _measure(name, encoder, identity, settings, results)
    for name in names:
        metric = TASKS[name].metric
        for one, whose in ({encoder: identity} | {LINEAR: {}}).items():
            key = {"task": name, "encoder": one, "part": "test", **_texts(TASKS[name])}
            rows = _rows_of(whose, results, **key)
            if rows:
                old = sum(row in recorded for row in rows)
                known = f" ({old} recorded before in {settings.output.name})" if old else ""
                scores = mean_and_spread([row[metric] for row in rows])
                print(f"{name:9} {metric:9} {scores}  {one}{known}")


def _name(settings: QualitySettings) -> str:
    if settings.linear:
        return LINEAR
    name = settings.name or encoder_name(_source(settings))
    if settings.with_linear:
        name += " + linear"
    return f"{name}, random weights" if settings.random_weights else name


def _source(settings: QualitySettings) -> str:
    from malmoi.model_folders import encoder_source, find_encoder

    return encoder_source(settings.model or find_encoder())


def _check(settings: QualitySettings) -> None:
    """Refuse, before the first look at a test file, what would waste it.

    Raises:
        InputError: a number is out of bounds, or a flag has no effect.
    """
    for choice in _choices(settings):
        TrainSettings(**choice).check()
    for flag, number, low in (
        ("seeds", settings.seeds, 0),
        ("dev-train-size", settings.dev_train_size, 1),
        ("dev-size", settings.dev_size, 1),
    ):
        if number < low:
            raise InputError(f"expected --{flag} of at least {low}, found {number}")
    if settings.linear:
        for flag in ("model", "name", "random_weights", "with_linear", "keep"):
            if getattr(settings, flag):
                raise InputError(
                    f"--linear has no encoder, so --{flag.replace('_', '-')} has no effect; leave "
                    "it out"
                )
    unfit = [name for name in settings.tasks.split(",") if not _takes_linear(name)]
    if settings.with_linear and settings.keep:
        raise InputError(
            "--keep keeps encoders with their heads, found --with-linear; leave it out"
        )
    if settings.with_linear and unfit:
        raise InputError(
            f"--with-linear is for one label a text and a test file, found {unfit[0]}; leave it out"
        )
    if settings.random_weights and settings.layer_decays is not None:
        raise InputError(
            "--random-weights has nothing that a smaller rate in lower layers would keep, found "
            "--layer-decays; leave it out"
        )


def _takes_linear(name: str) -> bool:
    comparison = TASKS.get(name)
    return comparison is None or (comparison.task == "single" and comparison.test is not None)


def _choices(settings: QualitySettings) -> list[dict[str, Any]]:
    """Keyword arguments of `TrainSettings` to choose from."""
    epochs = numbers_of("epochs", settings.epochs)
    if parts := [number for number in epochs if number % 1]:
        raise InputError(f"expected --epochs of whole numbers, found {parts[0]:g}")
    decays: list[float | None] = [1.0 if settings.random_weights else None]
    if settings.layer_decays is not None:
        decays = [*numbers_of("layer-decays", settings.layer_decays)]
    return [
        {"epochs": int(number), "learning_rate": rate, "layer_decay": decay}
        for number in epochs
        for rate in numbers_of("learning-rates", settings.learning_rates)
        for decay in decays
    ]


def _identity(settings: QualitySettings) -> dict[str, str]:
    """What rows of this encoder, or of random weights in its shape, are told by."""
    if settings.linear:
        return {}
    return identity_of(_source(settings), random_weights=settings.random_weights)


def _texts(comparison: Comparison) -> dict[str, str]:
    """What the project's own texts are told by; public files stay as they are."""
    if comparison.own is None:
        return {}
    return {"texts_sha256": file_sha256(comparison.own)}


def _rows_of(identity: dict[str, str], results: Results, **key: object) -> list[dict[str, Any]]:
    """The rows of this encoder: another may have lain in a folder of the same name."""
    return [
        row
        for row in results.of(**key)
        if all(row.get(name) == identity.get(name) for name in ("weights_sha256", "shape"))
    ]


def _measure(
    name: str,
    encoder: str,
    identity: dict[str, str],
    settings: QualitySettings,
    results: Results,
) -> None:
    comparison = TASKS[name]
    key: dict[str, Any] = {"task": name, "encoder": encoder, **_texts(comparison), **identity}
    choices = _choices(settings)
    # Another setting must not come into the same mean, nor a second choice see the test file.
    scored = _rows_of(identity, results, **key, part="test")
    if scored:
        choices = [{one: scored[0][one] for one in CHOSEN}]
        print(
            f"{name}: {', '.join(f'{what} {value}' for what, value in choices[0].items())}, as its "
            "test rows so far; for another choice name another --output"
        )
    data = settings.folder
    learn = comparison.train(data)
    of_part = {name: value for name, value in _dev_part(comparison, settings).items() if value}
    part = {"part": "dev", "seed": 0, **of_part}
    for choice in choices if len(choices) > 1 else []:
        if not _dev_rows(comparison, identity, results, settings, **key, **choice):
            parts = _dev_split(comparison, learn, settings)
            scores = _fit(comparison, *parts, choice, 0, settings)
            results.add(key | choice | part | scores)
    best = max(
        choices,
        key=lambda choice: max(
            (
                row[comparison.metric]
                for row in _dev_rows(comparison, identity, results, settings, **key, **choice)
            ),
            default=0.0,
        ),
    )
    for seed in range(settings.seeds):
        if _rows_of(identity, results, **key, part="test", seed=seed):
            continue
        if comparison.test is not None:
            spoil = name in SPOILT_TASKS
            test = comparison.test(data)
            keep = settings.keep and settings.keep / f"{encoder}-{name}-{seed}"
            scores = _fit(comparison, learn, test, best, seed, settings, spoil=spoil, keep=keep)
        else:
            folds = _folds(comparison, learn, seed)
            each = [_fit(comparison, *fold, best, seed, settings) for fold in folds]
            scores = {key: float(np.mean([fold[key] for fold in each])) for key in each[0]}
        results.add(key | best | {"part": "test", "seed": seed} | scores)


def _dev_part(comparison: Comparison, settings: QualitySettings) -> dict[str, int | None]:
    """What rows of a choice are told by: whether it was made on a dev file, and unusual sizes."""
    sizes = {
        name: None if size == getattr(QualitySettings, name) else size
        for name, size in (
            ("dev_train_size", settings.dev_train_size),
            ("dev_size", settings.dev_size),
        )
    }
    if comparison.dev is None:
        return sizes | {"dev_file": None}
    return sizes | {"dev_file": True, "dev_size": None}


def _dev_rows(
    comparison: Comparison,
    identity: dict[str, str],
    results: Results,
    settings: QualitySettings,
    **key: object,
) -> list[dict[str, Any]]:
    """Rows on this dev part: scores on another do not compare."""
    part = _dev_part(comparison, settings)
    return [
        row
        for row in _rows_of(identity, results, **key, part="dev")
        if all(row.get(name) == value for name, value in part.items())
    ]


def _dev_split(comparison: Comparison, learn: Rows, settings: QualitySettings) -> tuple[Rows, Rows]:
    """A part to train on and one to choose by: the dev file, else rows of the training file.

    Of these no text is in both (of pairs, no first text: a second one may be).
    """
    order = np.random.default_rng(0).permutation(len(learn.texts))
    if comparison.dev is not None:
        return learn.at(np.sort(order[: settings.dev_train_size])), comparison.dev(settings.folder)
    dev_size = min(settings.dev_size, len(order) // 5)
    rest = order[: min(settings.dev_train_size, len(order) - dev_size)]
    known = {learn.texts[place] for place in rest}
    dev = [place for place in order[len(rest) :] if learn.texts[place] not in known]
    return learn.at(np.sort(rest)), learn.at(np.array(dev[:dev_size]))


def _hold_out(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    """Nine tenths to learn from, and of the last tenth those whose texts are not among them."""
    order = np.random.default_rng(seed).permutation(len(rows.texts))
    tenth = len(order) // HELD_OUT
    learn = rows.at(np.sort(order[tenth:]))
    known = {*learn.texts}
    held = [place for place in np.sort(order[:tenth]) if rows.texts[place] not in known]
    return learn, rows.at(np.array(held))


def _folds(comparison: Comparison, rows: Rows, seed: int) -> list[tuple[Rows, Rows]]:
    from malmoi.finetune.data.folds import assign_folds, strata_of

    strata = strata_of(comparison.task, rows.targets)
    fold_of = np.array(assign_folds(strata, FOLDS, seed))
    return [
        (rows.at(np.flatnonzero(fold_of != fold)), rows.at(np.flatnonzero(fold_of == fold)))
        for fold in range(1, FOLDS + 1)
    ]


def _fit(
    comparison: Comparison,
    learn: Rows,
    test: Rows,
    choice: dict[str, Any],
    seed: int,
    settings: QualitySettings,
    *,
    spoil: bool = False,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Train on the one, score the other; scores in percent, and the seconds of training.

    With `spoil` also `spoilt`: for each perturbation the main score of the first test texts with
    it, beside theirs without ("as written").
    """
    from lab.benchmarks.quality.fitting import fit_encoder, score_both, score_encoder, score_spoilt
    from malmoi.transformers_models import save_model

    # Random weights have nothing that a smaller rate in lower layers would keep.
    if settings.random_weights:
        choice = choice | {"layer_decay": 1.0}
    if settings.with_linear:
        learn, held = _hold_out(learn, seed)
    fitted = fit_encoder(
        _source(settings),
        learn,
        TrainSettings(**choice, class_weights=comparison.class_weights),
        task=comparison.task,
        labels=comparison.labels,
        seed=seed,
        random_weights=settings.random_weights,
    )
    if keep is not None:
        if fitted.thresholds is not None:
            fitted.model.config.thresholds = fitted.thresholds.tolist()
        save_model(fitted.model, fitted.tokenizer, keep)
    if settings.with_linear:
        scores = score_both(fitted, comparison, learn, held, test)
    else:
        scores = score_encoder(fitted, comparison, test)
    scores["seconds"] = round(fitted.seconds, 1)
    if spoil and not settings.with_linear:
        scores["spoilt"] = score_spoilt(fitted, comparison, test)
    return scores


def _measure_linear(name: str, results: Results, data: Path) -> None:
    from lab.benchmarks.quality.fitting import fit_linear

    comparison = TASKS[name]
    key = {"task": name, "encoder": LINEAR, "part": "test", "seed": 0, **_texts(comparison)}
    if results.of(**key):
        return
    learn = comparison.train(data)
    if comparison.test is not None:
        scores = fit_linear(comparison, learn, comparison.test(data))
    else:
        each = [fit_linear(comparison, *fold) for fold in _folds(comparison, learn, 0)]
        scores = {metric: float(np.mean([fold[metric] for fold in each])) for metric in each[0]}
    results.add(key | scores)


if __name__ == "__main__":
    sys.exit(run_command(QualitySettings, main, "Fine-tune on whole files, score test files once."))
