"""A whole run of fine-tuning: k-fold, then once more on all the data, and what is written of it."""

import hashlib
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from finetune.baselines.classic import Baseline
from finetune.baselines.compare import (
    calibrate,
    compare,
    measure_learning_curve,
    save_temperature,
    write_page,
)
from finetune.baselines.llm import check_llm
from finetune.data.examples import Examples, read_examples
from finetune.data.folds import (
    absent_kinds,
    assign_folds,
    joined_groups,
    near_duplicate_groups,
    strata_of,
)
from finetune.data.learnt_texts import text_keys, write_learnt
from finetune.evaluation.learning_curve import CurvePoint
from finetune.report.files import (
    check_free,
    fold_table,
    package_versions,
    pooled_scores,
    write_predictions,
    write_report,
)
from finetune.settings import KfoldSettings, TrainSettings
from finetune.training.beginning import (
    Beginning,
    describe_beginning,
    find_beginning,
    without_learnt,
)
from finetune.training.cross_validation import (
    MODEL,
    CrossValidation,
    Experiment,
    FoldResult,
    model_facts,
    result_path,
)
from finetune.training.encoders import ENCODER, load_encoder_tokenizer, load_for_classification
from finetune.training.fit import TrainingData
from finetune.training.fitness import tokenizer_warnings
from finetune.training.fold_processes import run_jobs
from finetune.training.subword_dropout import word_pieces_of
from malmoi.devices import choose_device
from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.inference.batching import tokenize_all
from malmoi.inference.tasks import REGRESSION_LABELS, main_score, score_name
from malmoi.model_folders import is_hub_id
from malmoi.model_loading import longest_input, takes_token_types
from malmoi.paths import runs
from malmoi.progress import shown_progress
from malmoi.text.duplicates.near import DEFAULT_THRESHOLD
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import read_options
from malmoi.work_folder import work_folder, worth_keeping

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
    beginning = find_beginning(settings)
    notes = ReadingNotes(say=lambda line: print(line, flush=True))
    found = read_examples(
        path,
        labels,
        reading=read_options(settings),
        notes=notes,
        label_column=settings.label_column,
        per_label=settings.folds,
        task=settings.task,
        pair_column=settings.pair_column,
        label_separator=settings.label_separator,
        ignore_ids=settings.ignore_ids,
        group_column=settings.group_column,
    )
    examples = without_learnt(found, beginning, settings.folds)
    left_out = len(found.texts) - len(examples.texts)
    if settings.llm.model is not None:
        check_llm(settings.llm, examples.labels)
    experiment, untrained = _prepare(examples, beginning, settings)
    _print_header(examples, experiment, untrained, settings)
    for line in describe_beginning(beginning, examples, left_out):
        print(line, flush=True)
    plan = _plan(examples, experiment, untrained, settings, device.type)
    del untrained
    output = settings.output or _unfinished(plan) or _new_run(path)
    check_free(output)
    with work_folder(output, plan) as work:
        result = _train(experiment, work, settings.jobs)
        with worth_keeping():
            print(fold_table(result), flush=True)
            report = _report(examples, result, experiment, settings, model_facts(work))
            report["data"]["left_out"]["learnt"] = left_out
            report["data"]["reading"] = notes.as_json()
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
                        settings=report["settings"] | {"model": report["model"]},
                        environment=package_versions() | {"device": device.type},
                    )
                    save_temperature(work / MODEL, calibration.temperature)
                keys = text_keys(examples.texts, examples.pairs)
                write_learnt(work / MODEL, keys, beginning.learnt)
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


def _prepare(
    examples: Examples, beginning: Beginning, settings: KfoldSettings
) -> tuple[Experiment, PreTrainedModel]:
    """Everything that the trainings share, and an untrained model of the first seed."""
    source = beginning.source
    tokenizer = load_encoder_tokenizer(source)
    model = load_for_classification(
        source,
        examples.labels,
        dropout=settings.dropout,
        seed=settings.seed,
        random_weights=settings.random_weights,
        tokenizer=tokenizer,
        task=settings.task,
        keep_head=beginning.keep_head,
    )
    own = {field.name: getattr(settings, field.name) for field in fields(TrainSettings)}
    training = TrainSettings(**own).resolved(
        int(getattr(model.config, "hidden_size", 0)), random_weights=settings.random_weights
    )
    training.max_length = min(training.max_length, longest_input(model, tokenizer))
    # The tokenizer remembers the length for later predictions.
    tokenizer.model_max_length = training.max_length
    for warning in tokenizer_warnings(tokenizer, examples.texts):
        print(f"warning: {warning}", file=sys.stderr, flush=True)
    tokens = tokenize_all(tokenizer, examples.texts, training.max_length, pairs=examples.pairs)
    if not takes_token_types(model):
        tokens = replace(tokens, second_from=None)
        # So that nobody who loads the classifier gives it any.
        tokenizer.model_input_names = [
            name for name in tokenizer.model_input_names if name != "token_type_ids"
        ]
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
        keep_head=beginning.keep_head,
    )
    _check_folds(experiment, examples)
    return experiment, model


def _model_name(settings: KfoldSettings, experiment: Experiment) -> str:
    """The directory, or the Hub id with the commit that was taken."""
    given = settings.continue_from or settings.model or ""
    if not is_hub_id(given):
        return experiment.source
    place = Path(experiment.source)
    commit = place.parent.name if place.name == ENCODER else place.name
    return f"{given}@{commit}"


def _groups(examples: Examples, settings: KfoldSettings) -> np.ndarray | None:
    if not settings.group_near_duplicates:
        return examples.groups
    texts = examples.texts
    if examples.pairs is not None:
        texts = [f"{text} {pair}" for text, pair in zip(texts, examples.pairs, strict=True)]
    threshold = settings.near_duplicate_threshold
    alike = near_duplicate_groups(texts, DEFAULT_THRESHOLD if threshold is None else threshold)
    return joined_groups(alike, examples.groups)


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
                    f"texts of {examples.path} that belong together form groups too large for "
                    f"{experiment.folds} folds: fold {fold} would leave nothing to predict or a "
                    "label without training texts; lower --folds, add texts of other groups, "
                    "raise --near-duplicate-threshold or leave out the column of groups"
                )


def _absent_labels(experiment: Experiment, examples: Examples) -> list[str]:
    """A line for each label that groups keep out of a fold, where labels are what is spread."""
    groups = experiment.data.groups
    if groups is None or examples.task not in ("single", "pair"):
        return []
    strata = experiment.data.strata
    without = Counter(
        label
        for fold_of in experiment.fold_of.values()
        for _, label in absent_kinds(strata, fold_of, experiment.folds)
    )
    folds = experiment.folds * len(experiment.fold_of)
    return [
        f"the texts of {examples.labels[label]} are in {len(np.unique(groups[strata == label])):,} "
        f"groups: {count} of {folds} folds are without it and scored by the other labels"
        for label, count in without.items()
    ]


def _print_header(
    examples: Examples, experiment: Experiment, model: PreTrainedModel, settings: KfoldSettings
) -> None:
    counts = ", ".join(f"{label} {count:,}" for label, count in examples.counts.items())
    what = "texts" if examples.pairs is None else "pairs"
    shown = f" ({counts})" if counts else ""
    print(f"data: {examples.path}, {len(examples.texts):,} {what}{shown}")
    if examples.label_columns:
        print(f"labels: the columns of 0 and 1, {', '.join(examples.label_columns)}")
    training = experiment.settings
    for reason, count in (
        (f"left out {{:,}} repeated {what}", examples.repeats),
        (f"left out {{:,}} {what} that are empty after cleaning", examples.empty),
        (
            f"warning: left out {{:,}} {what} with another label than before",
            examples.contradictions,
        ),
        (f"{{:,}} {what} have no label, which is learnt, too", examples.without_label),
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
            f"{'near duplicates' if examples.groups is None else 'groups'}: "
            f"{sizes[sizes > 1].sum():,} {what} in {(sizes > 1).sum():,} groups of several, each "
            "in one fold"
        )
    for line in _absent_labels(experiment, examples):
        print(line)
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    weights = ", random weights" if settings.random_weights else ""
    print(
        f"model: {_model_name(settings, experiment)} ({millions:.1f} million parameters{weights})"
    )
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

    total = sum(experiment.steps(*job) for job in experiment.jobs)
    done = skipped = 0
    with shown_progress("steps") as progress:

        def count(seed: int, fold: int, steps: int) -> None:
            nonlocal done, skipped
            done += steps
            skipped += steps if steps > 1 else 0  # by an earlier run, or saved by early stopping
            name = f"fold {fold}" if fold else "all texts"
            part = f"seed {seed}, {name}" if several and fold else name
            progress(part, done, total, skipped=skipped)

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
        "model": _model_name(settings, experiment),
        "random_weights": settings.random_weights,
        "head": "kept" if experiment.keep_head else "new",
        "settings": {
            "folds": settings.folds,
            "seeds": list(result.seeds),
            "group_near_duplicates": settings.group_near_duplicates,
            "near_duplicate_threshold": settings.near_duplicate_threshold,
            "group_column": settings.group_column,
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
