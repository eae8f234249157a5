"""A whole run of fine-tuning: k-fold, then once more on all the data, and what is written of it."""

import hashlib
import json
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from corpora.atomic import directory_at_once
from corpora.errors import InputError
from corpora.near_duplicates import DEFAULT_THRESHOLD
from corpora.paths import runs
from corpora.work_folder import work_folder, worth_keeping
from finetune.baselines import Baseline
from finetune.batches import tokenize_all
from finetune.comparison import (
    calibrate,
    compare,
    measure_learning_curve,
    save_temperature,
    write_page,
)
from finetune.cross_validation import (
    MODEL,
    CrossValidation,
    Experiment,
    FoldResult,
    model_facts,
    result_path,
)
from finetune.encoders import (
    encoder_source,
    find_encoder,
    load_encoder_tokenizer,
    load_for_classification,
)
from finetune.examples import Examples, read_examples
from finetune.fold_processes import run_jobs
from finetune.folds import assign_folds, near_duplicate_groups, strata_of
from finetune.learning_curve import CurvePoint
from finetune.llm_baseline import check_llm
from finetune.model_files import longest_input
from finetune.output import (
    check_free,
    fold_table,
    package_versions,
    pooled_scores,
    write_predictions,
    write_report,
)
from finetune.progress import training_progress
from finetune.settings import KfoldSettings, TrainSettings
from finetune.subword_dropout import word_pieces_of
from finetune.tasks import REGRESSION_LABELS, main_score, score_name
from finetune.training import TrainingData
from pretrain.devices import choose_device

_RUNS = runs("finetune")


def cross_validate(settings: KfoldSettings) -> None:
    """Check everything, cross-validate, train on all texts, and save the run.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    started = time.monotonic()
    settings.check()
    device = choose_device(settings.device)
    labels, path = settings.label_names(), settings.data_path()
    if settings.output is not None:
        check_free(settings.output)
    examples = read_examples(
        path,
        labels,
        text_column=settings.text_column,
        label_column=settings.label_column,
        per_label=settings.folds,
        task=settings.task,
        pair_column=settings.pair_column,
        label_separator=settings.label_separator,
        ignore_ids=settings.ignore_ids,
    )
    if settings.llm.model is not None:
        check_llm(settings.llm, examples.labels)
    experiment, untrained = _prepare(examples, settings)
    _print_header(examples, experiment, untrained, settings)
    plan = _plan(examples, experiment, untrained, settings, device.type)
    del untrained
    output = settings.output or _unfinished(plan) or _new_run(path)
    check_free(output)
    with work_folder(output, plan) as work:
        result = _train(experiment, work, settings.jobs)
        with worth_keeping():
            print(fold_table(result), flush=True)
            report = _report(examples, result, experiment, settings, model_facts(work))
            baselines: list[Baseline] = []
            curve: list[CurvePoint] = []
            if settings.baselines:
                baselines, summaries = compare(examples, experiment, result, work, settings.llm)
                report["baselines"] = summaries
            if settings.learning_curve:
                print("learning curve of the first fold", flush=True)
                curve = measure_learning_curve(experiment, result, work)
                report["learning_curve"] = [asdict(point) for point in curve]
            calibration = calibrate(result) if settings.task == "single" else None
            if calibration is not None:
                report["calibration"] = calibration.describe()
            with directory_at_once(output) as scratch:
                write_predictions(scratch / "predictions.csv", examples, result)
                report["seconds"] = round(time.monotonic() - started, 1)
                write_report(scratch / "report.json", report)
                if calibration is not None:
                    write_page(
                        scratch / "report.html",
                        examples,
                        result,
                        baselines=baselines,
                        curve=curve,
                        settings=report["settings"] | {"model": experiment.source},
                        environment=package_versions() | {"device": device.type},
                    )
                    save_temperature(work / MODEL, calibration.temperature)
                check_free(output)  # hours have passed
                (work / MODEL).rename(scratch / "model")
    if calibration is not None:
        print(f"report: {output / 'report.html'}")
    print(f"classifier: {output / 'model'} ({time.monotonic() - started:.0f} s)", flush=True)


def _new_run(data: Path) -> Path:
    name = f"{data.resolve().name.split('.')[0]}-{time.strftime('%Y%m%d-%H%M%S')}"
    run = _RUNS / name
    number = 1
    # Of two runs that begin in one second, the later must not take the other's folds for its own.
    while run.exists() or run.with_name(f".{run.name}.work").exists():
        number += 1
        run = _RUNS / f"{name}-{number}"
    return run


def _unfinished(plan: dict[str, Any]) -> Path | None:
    """The output of a run with the very same plan that was stopped."""
    for work in sorted(_RUNS.glob(".*.work")):
        try:
            found = json.loads((work / "plan.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if found == json.loads(json.dumps(plan)):
            return work.with_name(work.name.removeprefix(".").removesuffix(".work"))
    return None


def _prepare(examples: Examples, settings: KfoldSettings) -> tuple[Experiment, PreTrainedModel]:
    """Everything that the trainings share, and an untrained model of the first seed."""
    source = encoder_source(settings.model or find_encoder())
    tokenizer = load_encoder_tokenizer(source)
    model = load_for_classification(
        source,
        examples.labels,
        dropout=settings.dropout,
        seed=settings.seed,
        random_weights=settings.random_weights,
        tokenizer=tokenizer,
        task=settings.task,
    )
    own = {field.name: getattr(settings, field.name) for field in fields(TrainSettings)}
    training = TrainSettings(**own).resolved(
        int(getattr(model.config, "hidden_size", 0)), random_weights=settings.random_weights
    )
    training.max_length = min(training.max_length, longest_input(model, tokenizer))
    # The tokenizer remembers the length for later predictions.
    tokenizer.model_max_length = training.max_length
    tokens = tokenize_all(tokenizer, examples.texts, training.max_length, pairs=examples.pairs)
    strata = strata_of(examples.task, examples.targets)
    groups = _groups(examples, settings)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    experiment = Experiment(
        source=source,
        random_weights=settings.random_weights,
        tokenizer=tokenizer,
        data=TrainingData(
            task=settings.task,
            labels=examples.labels,
            tokens=tokens,
            targets=examples.targets,
            strata=strata,
            groups=groups,
            word_pieces=word_pieces_of(tokenizer) if training.subword_dropout else None,
        ),
        settings=training,
        folds=settings.folds,
        fold_of={
            seed: np.array(assign_folds(strata, settings.folds, seed, groups)) for seed in seeds
        },
    )
    _check_folds(experiment, examples)
    return experiment, model


def _groups(examples: Examples, settings: KfoldSettings) -> np.ndarray | None:
    if not settings.group_near_duplicates:
        return None
    texts = examples.texts
    if examples.pairs is not None:
        texts = [f"{text} {pair}" for text, pair in zip(texts, examples.pairs, strict=True)]
    threshold = settings.near_duplicate_threshold
    return near_duplicate_groups(texts, DEFAULT_THRESHOLD if threshold is None else threshold)


def _check_folds(experiment: Experiment, examples: Examples) -> None:
    """Refuse folds that groups leave without texts, or without a label to train on."""
    strata = experiment.data.strata
    for fold_of in experiment.fold_of.values():
        for fold in range(1, experiment.folds + 1):
            rest = strata[fold_of != fold]
            if len(rest) == len(strata) or (
                examples.task in ("single", "pair") and len(np.unique(rest)) < len(examples.labels)
            ):
                raise InputError(
                    f"the near duplicates of {examples.path} form groups too large for "
                    f"{experiment.folds} folds: fold {fold} would leave nothing to predict or a "
                    "label without training texts; lower --folds, raise "
                    "--near-duplicate-threshold or remove the copies"
                )


def _print_header(
    examples: Examples, experiment: Experiment, model: PreTrainedModel, settings: KfoldSettings
) -> None:
    counts = ", ".join(f"{label} {count:,}" for label, count in examples.counts.items())
    what = "texts" if examples.pairs is None else "pairs"
    shown = f" ({counts})" if counts else ""
    print(f"data: {examples.path}, {len(examples.texts):,} {what}{shown}")
    training = experiment.settings
    for reason, count in (
        (f"left out {{:,}} repeated {what}", examples.repeats),
        (f"left out {{:,}} {what} that are empty after cleaning", examples.empty),
        (
            f"warning: left out {{:,}} {what} with another label than before",
            examples.contradictions,
        ),
        (
            f"{{:,}} {what} are longer than {training.max_length} tokens; the rest of them is cut "
            "off",
            experiment.data.tokens.cut,
        ),
    ):
        if count:
            print(reason.format(count))
    groups = experiment.data.groups
    if groups is not None:
        sizes = np.bincount(groups)
        print(
            f"near duplicates: {sizes[sizes > 1].sum():,} {what} in {(sizes > 1).sum():,} groups, "
            "each in one fold"
        )
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    weights = ", random weights" if settings.random_weights else ""
    print(f"model: {experiment.source} ({millions:.1f} million parameters{weights})")
    shown = ", ".join(f"{name} {value}" for name, value in asdict(training).items())
    print(f"settings: folds {settings.folds}, {shown}", flush=True)


def _plan(
    examples: Examples,
    experiment: Experiment,
    untrained: PreTrainedModel,
    settings: KfoldSettings,
    device: str,
) -> dict[str, Any]:
    """All that the numbers depend on; finished folds of a run with an equal plan are kept."""
    weights = hashlib.sha256()
    for name, value in sorted(untrained.state_dict().items()):
        weights.update(name.encode())
        weights.update(value.contiguous().numpy().data)
    folds = hashlib.sha256(b"".join(part.tobytes() for part in experiment.fold_of.values()))
    training = asdict(experiment.settings) | {"device": device}
    return {
        "data": examples.sha256,
        "labels": examples.labels,
        "task": settings.task,
        "weights": weights.hexdigest(),
        "random_weights": settings.random_weights,
        "tokens": hashlib.sha256(experiment.data.tokens.flat.data).hexdigest(),
        "folds": folds.hexdigest(),
        "seeds": list(experiment.fold_of),
        "grouped": settings.group_near_duplicates,
        "settings": training,
        "versions": package_versions(),
    }


def _train(experiment: Experiment, work: Path, jobs: int) -> CrossValidation:
    """Do what is left to do of all trainings, and say how each fold went."""
    task = experiment.data.task
    several = len(experiment.fold_of) > 1
    finished = sum(result_path(work, *job).exists() for job in experiment.jobs)
    if finished:
        print(
            f"going on with a run that was stopped: {finished} of {len(experiment.jobs)} trainings "
            "are done",
            flush=True,
        )

    def on_fold(fold: FoldResult) -> None:
        if several and fold.fold == 1:
            print(f"seed {fold.seed}:")
        print(
            f"{score_name(task)} for fold {fold.fold}: {fold.scores[main_score(task)]:.4f}",
            flush=True,
        )

    with training_progress(sum(experiment.steps(*job) for job in experiment.jobs)) as advance:

        def count(seed: int, fold: int, steps: int) -> None:
            name = f"fold {fold}" if fold else "all texts"
            advance(f"seed {seed}, {name}" if several and fold else name, steps)

        results = run_jobs(experiment, work, jobs=jobs, on_fold=on_fold, advance=count)
    result = CrossValidation(
        task=task,
        labels=experiment.data.labels,
        targets=experiment.data.targets,
        folds=experiment.folds,
        seeds=tuple(experiment.fold_of),
        results=results,
    )
    print(
        f"Average {score_name(task)}: {result.summary.mean:.4f} "
        f"(standard deviation {result.summary.sd:.4f})",
        flush=True,
    )
    return result


def _report(
    examples: Examples,
    result: CrossValidation,
    experiment: Experiment,
    settings: KfoldSettings,
    facts: dict[str, Any],
) -> dict[str, Any]:
    score = "spearman" if examples.task == "pair-regression" else "f1"
    return {
        "task": examples.task,
        "labels": [] if examples.labels == REGRESSION_LABELS else examples.labels,
        "data": {
            "path": str(examples.path),
            "sha256": examples.sha256,
            "texts": len(examples.texts),
            "per_label": examples.counts,
            "left_out": {
                "repeated": examples.repeats,
                "contradicting": examples.contradictions,
                "empty": examples.empty,
            },
            "cut_to_max_length": experiment.data.tokens.cut,
        },
        "model": experiment.source,
        "random_weights": settings.random_weights,
        "settings": {
            "folds": settings.folds,
            "seeds": list(result.seeds),
            "group_near_duplicates": settings.group_near_duplicates,
            "near_duplicate_threshold": settings.near_duplicate_threshold,
            "jobs": settings.jobs,
            **asdict(experiment.settings),
        },
        f"mean_{score}": result.summary.mean,
        f"sd_{score}": result.summary.sd,
        "interval_95": [result.summary.low, result.summary.high],
        "folds": [
            {
                "seed": fold.seed,
                "fold": fold.fold,
                "texts": len(fold.places),
                "epochs": fold.epochs,
                "best_epoch": fold.best_epoch,
                "seconds": round(fold.seconds, 1),
                **fold.scores,
            }
            for fold in result.results
        ],
        "pooled": pooled_scores(result),
        "final_training": facts,
    }
