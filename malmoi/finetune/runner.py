"""A whole run of fine-tuning: k-fold, then once more on all the data, and what is written of it."""

import json
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.command_line import raise_if_stopped
from malmoi.files import directory_at_once
from malmoi.finetune.baselines.baseline import Baseline
from malmoi.finetune.baselines.compare import compare, measure_learning_curve
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.folds import absent_kinds
from malmoi.finetune.evaluation.learning_curve import CurvePoint
from malmoi.finetune.evaluation.scores import score
from malmoi.finetune.preparing import Prepared, prepare
from malmoi.finetune.report.files import check_free, fold_table, write_predictions, write_report
from malmoi.finetune.report.remarks import remarks
from malmoi.finetune.report.write import (
    Measured,
    calibrate,
    report_of,
    save_temperature,
    write_page,
)
from malmoi.finetune.run_config import KfoldConfig
from malmoi.finetune.training.beginning import describe_beginning
from malmoi.finetune.training.cross_validation import (
    MODEL,
    CrossValidation,
    Experiment,
    FoldResult,
    model_facts,
    result_path,
)
from malmoi.finetune.training.fold_processes import run_jobs
from malmoi.finetune.training.linear_folds import TRAINED, Added, add_linear
from malmoi.inference.learnt_texts import text_keys, write_learnt
from malmoi.inference.tasks import Task, main_score, score_name
from malmoi.labels.database import LabelDatabase
from malmoi.model_folders import LINEAR, LINEAR_WEIGHTS
from malmoi.paths import runs
from malmoi.progress import shown_progress
from malmoi.work_folder import work_folder, worth_keeping

# With 50 texts --quick was ahead on three of four tasks, with 200 on none (docs/scores.md).
_FEW_TEXTS = 100
# Rows that are named one by one.
_SHOWN = 5


def cross_validate(config: KfoldConfig) -> None:
    """Cross-validate, train on all texts, and save the run.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    started = time.monotonic()
    if config.flags.output is not None:
        check_free(config.flags.output)
    prepared = prepare(config)
    _print_header(prepared)
    identity = prepared.identity
    output = config.flags.output or _unfinished(identity) or new_run(prepared.source.place)
    check_free(output)
    raise_if_stopped()
    with work_folder(output, identity) as work:
        whose = "encoder, " if prepared.plan.linear.enabled else ""
        encoder = _train(prepared.experiment, work, prepared.plan.execution.jobs, whose)
        with worth_keeping():
            added = _add_linear(prepared, encoder, work)
            result = encoder if added is None else added.both
            print_average(result)
            print(fold_table(result), flush=True)
            print_remarks(result, weighted=prepared.plan.weighted)
            measured = _measure(prepared, result, added, work)
            report = report_of(
                prepared.plan,
                prepared.examples,
                result,
                measured,
                learnt=prepared.left_out,
                cut=prepared.experiment.data.tokens.beginnings().cut,
                reading=prepared.notes.as_json(),
                final_training=model_facts(work),
            )
            report["seconds"] = round(time.monotonic() - started, 3)
            _write(prepared, result, measured, report, work, output)
    if measured.calibration is not None:
        print(f"report: {output / 'report.html'}")
    print(f"classifier: {output / 'model'} ({time.monotonic() - started:.0f} s)", flush=True)


def new_run(data: Path | LabelDatabase) -> Path:
    """A folder of its own in runs/finetune/, named for the data and the time; not made yet."""
    place = data if isinstance(data, LabelDatabase) else data.resolve()
    name = f"{place.name.split('.')[0]}-{time.strftime('%Y%m%d-%H%M%S')}"
    run = runs("finetune") / name
    number = 1
    # If two runs begin in one second, the later must not take the other's folds for its own.
    while run.exists() or run.with_name(f".{run.name}.work").exists():
        number += 1
        run = runs("finetune") / f"{name}-{number}"
    return run


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


def _measure(
    prepared: Prepared, result: CrossValidation, added: Added | None, work: Path
) -> Measured:
    """What the plan wants beside the folds."""
    wanted, examples, experiment = prepared.plan.compared, prepared.examples, prepared.experiment
    rows: list[Baseline] = []
    summaries: list[dict[str, Any]] = []
    curve: list[CurvePoint] = []
    encoder, both = (result, None) if added is None else (added.encoder, added.both)
    if wanted.baselines:
        rows, summaries = compare(examples, experiment, encoder, work, prepared.llm, both)
    if wanted.learning_curve:
        print("learning curve of the first fold", flush=True)
        curve = measure_learning_curve(experiment, encoder, work)
    return Measured(
        added=added,
        baselines=rows,
        summaries=summaries,
        curve=curve,
        calibration=calibrate(result) if examples.task == "single" else None,
    )


def _write(
    prepared: Prepared,
    result: CrossValidation,
    measured: Measured,
    report: dict[str, Any],
    work: Path,
    output: Path,
) -> None:
    """Make the folder of the run, whole or not at all."""
    examples = prepared.examples
    with directory_at_once(output) as scratch:
        alone = {} if measured.added is None else measured.added.alone()
        write_predictions(scratch / "predictions.csv", examples, result, alone)
        write_report(scratch / "report.json", report)
        if measured.calibration is not None:
            write_page(scratch / "report.html", prepared.plan, examples, result, measured)
            save_temperature(work / MODEL, measured.calibration.temperature)
        keys = text_keys(examples.texts, examples.pairs)
        write_learnt(work / MODEL, keys, prepared.beginning.learnt)
        check_free(output)  # hours have passed
        (work / MODEL).rename(scratch / "model")


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


def print_data(examples: Examples, groups: np.ndarray | None, cut: str = "") -> None:
    """Say what is learnt from: how many texts of what, and what was left out.

    Args:
        examples: the texts.
        groups: what stays in one fold, int64 [N], or None.
        cut: a line on texts that are too long; none where it is empty.
    """
    counts = ", ".join(f"{label} {count:,}" for label, count in examples.counts.items())
    what = "texts" if examples.pairs is None else "pairs"
    shown = f" ({counts})" if counts else ""
    print(f"data: {examples.path}, {len(examples.texts):,} {what}{shown}")
    if examples.label_columns:
        print(f"labels: the columns of 0 and 1, {', '.join(examples.label_columns)}")
    for reason, count in (
        ("left out {:,} rows without a label", examples.unlabelled),
        (f"left out {{:,}} repeated {what}", examples.repeats),
        (f"left out {{:,}} {what} that are empty after cleaning", examples.empty),
        (f"{{:,}} {what} have no label, which is learnt, too", examples.without_label),
    ):
        if count:
            print(reason.format(count))
    if examples.contradictions:
        print(_contradictions(examples))
    if cut:
        print(cut)
    if groups is not None:
        sizes = np.bincount(groups)
        alike = (
            "near duplicates" if examples.pairs is None else "pairs alike or the other way round"
        )
        print(
            f"{alike if examples.groups is None else 'groups'}: "
            f"{sizes[sizes > 1].sum():,} {what} in {(sizes > 1).sum():,} groups of several, each "
            "in one fold"
        )


def _contradictions(examples: Examples) -> str:
    """Which rows say something else of a text than the one that is learnt."""
    shown = [
        f"{one.id} {one.label or 'none'} ({one.kept_id} {one.kept_label or 'none'})"
        for one in examples.contradicting[:_SHOWN]
    ]
    rest = examples.contradictions - len(shown)
    return (
        f"warning: left out {examples.contradictions:,} rows that give a text another label than "
        f"its first row, which is learnt: {', '.join(shown)}"
        + (f" and {rest:,} more, see data.contradicting in report.json" if rest else "")
    )


def _print_header(prepared: Prepared) -> None:
    examples, experiment, plan = prepared.examples, prepared.experiment, prepared.plan
    what = "texts" if examples.pairs is None else "pairs"
    cut = experiment.data.tokens.beginnings().cut
    rest = (
        "learnt from their beginning, predicted in windows"
        if examples.pairs is None
        else "the rest of them is cut off"
    )
    line = f"{cut:,} {what} are longer than {plan.training.max_length} tokens; {rest}"
    print_data(examples, experiment.data.groups, line if cut else "")
    for line in _absent_labels(experiment, examples):
        print(line)
    weights = ", random weights" if plan.encoder.random_weights else ""
    millions = prepared.parameters / 1e6
    print(f"model: {plan.encoder.model} ({millions:.1f} million parameters{weights})")
    shown = ", ".join(f"{name} {value}" for name, value in asdict(plan.training).items())
    print(f"settings: folds {plan.folds.folds}, {shown}", flush=True)
    if plan.execution.jobs > 1:
        print(f"up to {plan.execution.jobs} trainings side by side (--jobs)", flush=True)
    for line in describe_beginning(prepared.beginning, examples, prepared.left_out):
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
        print(f"{whose}{_fold_line(fold, task)}", flush=True)

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
    return result


def _fold_line(fold: FoldResult, task: Task) -> str:
    return f"{score_name(task)} for fold {fold.fold}: {fold.scores[main_score(task)]:.4f}"


def print_average(result: CrossValidation) -> None:
    """Say what the folds come to."""
    print(
        f"Average {score_name(result.task)}: {result.summary.mean:.4f} "
        f"(standard deviation {result.summary.sd:.4f})",
        flush=True,
    )


def print_remarks(result: CrossValidation, *, weighted: bool) -> None:
    """Say what the scores do not, of one label a text or pair; of several seeds the first."""
    if result.task not in ("single", "pair"):
        return
    predicted = result.predicted(result.seeds[0])
    scores = score(result.targets.tolist(), predicted.tolist(), result.labels)
    for one in remarks(scores, weighted=weighted):
        print(one.english, flush=True)


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
        print(_fold_line(fold, encoder.task), flush=True)
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
