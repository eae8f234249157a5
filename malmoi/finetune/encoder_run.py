"""A run that trains an encoder in each fold, and adds a linear model."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from malmoi.command_line import raise_if_stopped
from malmoi.finetune.baselines.baseline import Baseline
from malmoi.finetune.baselines.comparison import compare, measure_learning_curve
from malmoi.finetune.evaluation.fold_results import CrossValidation, FoldResult
from malmoi.finetune.evaluation.learning_curve import CurvePoint
from malmoi.finetune.preparing import Prepared, prepare
from malmoi.finetune.report.files import check_free
from malmoi.finetune.report.terminal import (
    print_absent_labels,
    print_data,
    print_fold,
    print_scores,
)
from malmoi.finetune.report.write import Measured, complete_model
from malmoi.finetune.run_config import KfoldConfig
from malmoi.finetune.runner import FittedRun, new_run
from malmoi.finetune.training.cross_validation import (
    MODEL,
    Experiment,
    model_facts,
    result_path,
)
from malmoi.finetune.training.fold_processes import run_jobs
from malmoi.finetune.training.linear_folds import TRAINED, Added, add_linear
from malmoi.finetune.training.starting_model import describe_starting_model
from malmoi.model_folders import LINEAR, LINEAR_WEIGHTS
from malmoi.paths import runs
from malmoi.progress import shown_progress
from malmoi.work_folder import work_folder, worth_keeping

# With 50 texts --quick was ahead on three of four tasks, with 200 on none (docs/scores.md).
_FEW_TEXTS = 200


@contextmanager
def fit_encoder_and_linear(config: KfoldConfig) -> Iterator[FittedRun]:
    """Train an encoder in each fold, and add a linear model; folds once done are kept."""
    prepared = prepare(config)
    _print_header(prepared)
    plan, examples, experiment = prepared.plan, prepared.examples, prepared.experiment
    identity = prepared.identity
    output = config.flags.output or _unfinished(identity) or new_run(config.source.place)
    check_free(output)
    raise_if_stopped()
    with work_folder(output, identity) as work:
        whose = "encoder, " if plan.linear.enabled else ""
        encoder = _train(experiment, work, plan.execution.jobs, whose)
        with worth_keeping():
            added = _add_linear(prepared, encoder, work)
            result = encoder if added is None else added.both
            print_scores(result, weighted=plan.weighted)
            rows: list[Baseline] = []
            summaries: list[dict[str, Any]] = []
            curve: list[CurvePoint] = []
            if plan.compared.baselines:
                both = None if added is None else added.both
                rows, summaries = compare(examples, experiment, encoder, work, prepared.llm, both)
            if plan.compared.learning_curve:
                print("learning curve of the first fold", flush=True)
                curve = measure_learning_curve(experiment, encoder, work)
            measured = Measured(
                plan=plan,
                examples=examples,
                split=prepared.split,
                reading=prepared.notes.as_json(),
                result=result,
                final_training=model_facts(work),
                learnt=prepared.left_out,
                cut=experiment.data.tokens.beginnings().cut,
                added=added,
                baselines=rows,
                summaries=summaries,
                curve=curve,
            )

            def put_model(place: Path) -> None:
                complete_model(work / MODEL, measured, prepared.starting.learnt)
                check_free(output)  # hours have passed
                (work / MODEL).rename(place)

            yield FittedRun(output=output, measured=measured, put_model=put_model)


def _unfinished(identity: dict[str, Any]) -> Path | None:
    """The output of a run with the very same numbers that was stopped."""
    for work in sorted(runs("finetune").glob(".*.work")):
        try:
            found = json.loads((work / "plan.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if found == json.loads(json.dumps(identity)):
            return work.with_name(work.name.removeprefix(".").removesuffix(".work"))
    return None


def _print_header(prepared: Prepared) -> None:
    """Say what is learnt from, by what, and how."""
    examples, experiment, plan = prepared.examples, prepared.experiment, prepared.plan
    cut = experiment.data.tokens.beginnings().cut
    rest = (
        "learnt from their beginning, predicted in windows"
        if examples.pairs is None
        else "the rest of them is cut off"
    )
    line = f"{cut:,} {examples.what} are longer than {plan.training.max_length} tokens; {rest}"
    print_data(examples, prepared.split, line if cut else "")
    print_absent_labels(prepared.split, examples)
    weights = ", random weights" if plan.encoder.random_weights else ""
    millions = prepared.parameters / 1e6
    print(f"model: {plan.encoder.model} ({millions:.1f} million parameters{weights})")
    shown = ", ".join(f"{name} {value}" for name, value in asdict(plan.training).items())
    print(f"settings: folds {plan.folds.folds}, {shown}", flush=True)
    if plan.execution.jobs > 1:
        print(f"up to {plan.execution.jobs} trainings side by side (--jobs)", flush=True)
    for line in describe_starting_model(prepared.starting, examples, prepared.left_out):
        print(line, flush=True)
    if plan.linear.enabled and len(examples.texts) < _FEW_TEXTS:
        print(
            f"{len(examples.texts)} texts are few to train an encoder on: --quick is often better "
            "with so few, and takes seconds (docs/scores.md, Few labels)",
            flush=True,
        )


def _train(experiment: Experiment, work: Path, jobs: int, whose: str) -> CrossValidation:
    """Do what is left to do of all trainings, and say how each fold went.

    Args:
        whose: begins each line of a fold.
    """
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
        print_fold(fold, task, whose)

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
    return CrossValidation(
        task=task,
        labels=experiment.data.labels,
        targets=experiment.data.targets,
        folds=experiment.folds,
        seeds=tuple(experiment.fold_of),
        results=results,
    )


def _add_linear(prepared: Prepared, encoder: CrossValidation, work: Path) -> Added | None:
    """Fit the linear model, keep it beside the weights, and say what it brings."""
    plan = prepared.plan.linear
    if not plan.enabled:
        if encoder.task != "single":
            print("no linear model beside the encoder: it is for one label a text", flush=True)
        return None
    print("fitting a linear model in the same folds", flush=True)
    with shown_progress("fits") as progress:
        added = add_linear(prepared.examples.texts, encoder, plan, progress)
    print(added.table())
    for fold in added.both.results:
        print_fold(fold, encoder.task)
    for file in (LINEAR, LINEAR_WEIGHTS):
        (work / MODEL / file).unlink(missing_ok=True)
    if added.part is None:
        print("the linear model does not help and is left out", flush=True)
    else:
        if TRAINED not in added.stack.weights:
            print("the encoder does not help; --quick fits the linear model alone")
        elif advice := added.better_alone():
            print(advice)
        added.part.save(work / MODEL, {"macro_f1": added.describe()})
    return added
