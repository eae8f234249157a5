"""A whole run of fine-tuning: k-fold, then once more on all the data, and what is written of it.

There are two ways to fit: an encoder in each fold with a linear model beside it, or (`--quick`) the
linear model alone. What comes before and after is the same.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from malmoi.command_line import raise_if_stopped
from malmoi.devices import choose_device
from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.finetune.baselines.baseline import Baseline
from malmoi.finetune.baselines.comparison import compare, measure_learning_curve
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.source import DataPlace
from malmoi.finetune.evaluation.learning_curve import CurvePoint
from malmoi.finetune.plan import plan_quick
from malmoi.finetune.preparing import (
    Prepared,
    data_plan,
    model_name,
    prepare,
    read_texts,
    split_texts,
)
from malmoi.finetune.report.files import check_free
from malmoi.finetune.report.terminal import (
    print_absent_labels,
    print_data,
    print_fold,
    print_scores,
)
from malmoi.finetune.report.write import Measured, complete_model, write_run
from malmoi.finetune.run_config import KfoldConfig
from malmoi.finetune.scoring import (
    Evaluation,
    evaluate,
    print_evaluation,
    write_evaluation,
)
from malmoi.finetune.training.cross_validation import (
    MODEL,
    CrossValidation,
    Experiment,
    FoldResult,
    model_facts,
    result_path,
)
from malmoi.finetune.training.encoders import encoder_source
from malmoi.finetune.training.fold_processes import run_jobs
from malmoi.finetune.training.linear_folds import TRAINED, Added, add_linear
from malmoi.finetune.training.starting_model import describe_starting_model
from malmoi.inference.classifier import Classifier
from malmoi.inference.learnt_texts import read_learnt
from malmoi.inference.linear.frozen_encoder import FrozenEncoder, encoders_at_hand
from malmoi.inference.linear.quick import QuickTrainer
from malmoi.inference.vectors.sentence_encoder import find_sentence_encoder
from malmoi.model_folders import LINEAR, LINEAR_WEIGHTS
from malmoi.paths import runs
from malmoi.progress import shown_progress
from malmoi.work_folder import work_folder, worth_keeping

# With 50 texts --quick was ahead on three of four tasks, with 200 on none (docs/scores.md).
_FEW_TEXTS = 200
# 5,149 memos: macro F1 91.9 with sentence vectors and 91.5 without, in 3.5 times the time.
_MOST_WITH_VECTORS = 3_000


@dataclass(frozen=True, kw_only=True)
class _Fitted:
    """A run that only has to be written.

    Attributes:
        output: the folder to make.
        measured: what it found out.
        put_model: makes the folder of the classifier at a place.
    """

    output: Path
    measured: Measured
    put_model: Callable[[Path], object]


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run that was written.

    Attributes:
        folder: where.
        measured: what it found out.
        tested: what the classifier says of a test of its own, where there is one.
    """

    folder: Path
    measured: Measured
    tested: Evaluation | None


def cross_validate(config: KfoldConfig) -> FinishedRun:
    """Cross-validate, train on all texts, and save the run.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    started = time.monotonic()
    if config.flags.output is not None:
        check_free(config.flags.output)
    fit = _linear_alone if config.flags.quick else _encoder_and_linear
    with fit(config) as fitted, directory_at_once(fitted.output) as scratch:
        fitted.put_model(scratch / "model")
        tested = _test(scratch, fitted.measured.examples, fitted.output.name)
        write_run(scratch, fitted.measured, started, tested)
    output = fitted.output
    if (output / "report.html").exists():
        print(f"report: {output / 'report.html'}")
    print(f"classifier: {output / 'model'} ({time.monotonic() - started:.0f} s)", flush=True)
    return FinishedRun(folder=output, measured=fitted.measured, tested=tested)


def _test(run: Path, examples: Examples, name: str) -> Evaluation | None:
    """Ask the classifier of a run, of this name, about its own test, where there is one."""
    if examples.own_test is None:
        return None
    model = run / "model"
    classifier = Classifier.load(model, "torch-fp32", say=lambda line: None)
    classifier.name = name
    found = evaluate(classifier, examples.own_test.examples)
    print_evaluation(found)
    folder = run / "test"
    folder.mkdir()
    write_evaluation(folder, found)
    return found


@contextmanager
def _encoder_and_linear(config: KfoldConfig) -> Iterator[_Fitted]:
    """Train an encoder in each fold, and add a linear model; folds once done are kept."""
    prepared = prepare(config)
    _print_header(prepared)
    plan, examples, experiment = prepared.plan, prepared.examples, prepared.experiment
    identity = prepared.identity
    output = config.flags.output or _unfinished(identity) or _new_run(config.source.place)
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

            yield _Fitted(output=output, measured=measured, put_model=put_model)


@contextmanager
def _linear_alone(config: KfoldConfig) -> Iterator[_Fitted]:
    """Fit the linear model in each fold, and train no encoder: that takes seconds."""
    started = time.monotonic()
    flags = config.flags
    output = flags.output or _new_run(config.source.place)
    check_free(output)
    examples, notes = read_texts(config)
    encoders = _frozen_encoders(config)
    device = choose_device(flags.device).type
    plan = plan_quick(config, data_plan(examples), device=device)
    split = split_texts(examples, plan.folds)
    print_data(examples, split)
    print_absent_labels(split, examples)
    at_hand = "an encoder" if len(encoders) == 1 else f"the best of {len(encoders)} encoders"
    print(f"model: linear, beside it {at_hand}, not trained" if encoders else "model: linear")
    # Of more texts they say little that the others do not, and take longer than all else.
    has_few = len(examples.texts) <= _MOST_WITH_VECTORS
    wanted = config.keys.linear.frozen_encoder and has_few
    sentences = find_sentence_encoder() if wanted else None
    print(f"reading the texts and fitting in {flags.folds} folds, then on all texts", flush=True)
    with shown_progress("fits") as progress:
        found = QuickTrainer(encoders, sentences=sentences, morphemes=plan.linear.morphemes).fit(
            examples.texts,
            [examples.labels[label] for label in examples.targets],
            fold_of=split.fold_of[flags.seed],
            label_names=examples.labels,
            balanced=plan.linear.balanced,
            seed=flags.seed,
            progress=progress,
        )
    seconds = (time.monotonic() - started) / flags.folds
    result = CrossValidation.of_one_fit(
        examples.labels, examples.targets, flags.seed, found.fold_of, found.probabilities, seconds
    )
    chosen = None
    if found.encoder is not None:
        chosen = model_name(flags.model or "", str(found.encoder.source))
        print(f"encoder: {chosen}")
    plan = replace(plan, encoder=chosen)
    weights = ", ".join(f"{part} {weight:.2f}" for part, weight in found.weights.items())
    print(f"parts and their weights: {weights}")
    print_scores(result, weighted=plan.weighted)
    measured = Measured(
        plan=plan,
        examples=examples,
        split=split,
        reading=notes.as_json(),
        result=result,
        final_training={"weights": found.weights},
    )

    def put_model(place: Path) -> None:
        found.save(place)
        before = None if found.encoder is None else read_learnt(found.encoder.source)
        complete_model(place, measured, before)

    yield _Fitted(output=output, measured=measured, put_model=put_model)


def _frozen_encoders(config: KfoldConfig) -> list[FrozenEncoder]:
    """What `--model` names, else those at hand; [] where there is or shall be none."""
    named, keys = config.flags.model, config.keys
    if keys.linear.frozen_encoder:
        if named is None:
            return encoders_at_hand()
        return [FrozenEncoder.load(Path(encoder_source(named, keys.start.revision)))]
    if named is not None:
        raise InputError(
            "--model names an encoder, and linear.frozen_encoder=false goes without; leave one out"
        )
    return []


def _new_run(data: DataPlace) -> Path:
    """A folder of its own in runs/finetune/, named for the data and the time; not made yet."""
    place = data.resolve() if isinstance(data, Path) else data
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
