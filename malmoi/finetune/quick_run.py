"""`kfold.py --quick`: the linear model alone, measured in the same folds and kept."""

import time
from pathlib import Path

import numpy as np

from malmoi.devices import choose_device
from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.folds import assign_folds, strata_of
from malmoi.finetune.evaluation.scores import score_task
from malmoi.finetune.plan import DataPlan, QuickPlan, plan_quick
from malmoi.finetune.preparing import check_folds, groups_of, model_name, read_texts
from malmoi.finetune.report.files import check_free, fold_table, write_predictions, write_report
from malmoi.finetune.report.write import (
    Measured,
    calibrate,
    report_of,
    save_temperature,
    write_page,
)
from malmoi.finetune.run_config import KfoldConfig
from malmoi.finetune.runner import new_run, print_average, print_data, print_remarks
from malmoi.finetune.training.cross_validation import CrossValidation, FoldResult
from malmoi.finetune.training.encoders import encoder_source
from malmoi.inference.learnt_texts import text_keys, write_learnt
from malmoi.inference.linear.frozen_encoder import FrozenEncoder
from malmoi.inference.linear.quick import QuickResult, QuickTrainer
from malmoi.model_folders import better_read, find_encoder
from malmoi.progress import shown_progress
from malmoi.text.reading.notes import ReadingNotes


def run_quick(config: KfoldConfig) -> None:
    """Read, fit in folds and on all texts, and save the run.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    started = time.monotonic()
    notes = ReadingNotes(say=lambda line: print(line, flush=True))
    flags = config.flags
    output = flags.output or new_run(config.source.place)
    check_free(output)
    examples = read_texts(config, notes)
    place = _encoder(config)
    name = None if place is None else model_name(flags.model or "", str(place))
    data = DataPlan(
        path=str(examples.path),
        sha256=examples.sha256,
        texts=len(examples.texts),
        task=flags.task,
        labels=tuple(examples.labels),
    )
    plan = plan_quick(config, data, name, choose_device(flags.device).type)
    fold_of = _folds(plan, examples)
    print(f"model: linear, beside it the encoder {name}, not trained" if name else "model: linear")
    encoder = None if place is None else FrozenEncoder.load(place)
    print(f"reading the texts and fitting in {flags.folds} folds, then on all texts", flush=True)
    with shown_progress("fits") as progress:
        found = QuickTrainer(encoder, kiwi=plan.linear.kiwi).fit(
            examples.texts,
            [examples.labels[label] for label in examples.targets],
            fold_of=fold_of,
            label_names=examples.labels,
            balanced=plan.linear.balanced,
            seed=flags.seed,
            progress=progress,
        )
    result = _as_cross_validation(found, examples, plan, time.monotonic() - started)
    weights = ", ".join(f"{part} {weight:.2f}" for part, weight in found.weights.items())
    print(f"parts and their weights: {weights}")
    print_average(result)
    print(fold_table(result), flush=True)
    print_remarks(result, weighted=plan.weighted)
    measured = Measured(calibration=calibrate(result))
    report = report_of(
        plan,
        examples,
        result,
        measured,
        learnt=0,
        cut=0,
        reading=notes.as_json(),
        final_training={"weights": found.weights},
    )
    report["seconds"] = round(time.monotonic() - started, 3)
    with directory_at_once(output) as scratch:
        write_predictions(scratch / "predictions.csv", examples, result)
        write_report(scratch / "report.json", report)
        write_page(scratch / "report.html", plan, examples, result, measured)
        found.save(scratch / "model")
        assert measured.calibration is not None
        save_temperature(scratch / "model", measured.calibration.temperature)
        write_learnt(scratch / "model", text_keys(examples.texts, examples.pairs), None)
    print(f"report: {output / 'report.html'}")
    print(f"classifier: {output / 'model'} ({time.monotonic() - started:.0f} s)", flush=True)


def _encoder(config: KfoldConfig) -> Path | None:
    """What `--model` names, else the newest encoder; None where there is or shall be none."""
    if not config.keys.linear.frozen_encoder:
        if config.flags.model is not None:
            raise InputError(
                "--model names an encoder, and linear.frozen_encoder=false goes without; leave "
                "one out"
            )
        return None
    found = config.flags.model
    if found is None:
        try:
            newest = find_encoder()
        except InputError:
            return None
        found = str(newest)
        if advice := better_read(newest):
            print(advice)
    return Path(encoder_source(found, config.keys.start.revision))


def _folds(plan: QuickPlan, examples: Examples) -> np.ndarray:
    """The fold of each text, int64 [N] from 1: those that an encoder would have."""
    strata = strata_of(examples.task, examples.targets)
    groups = groups_of(examples, plan.folds)
    seed = plan.folds.seeds[0]
    fold_of = np.array(assign_folds(strata, plan.folds.folds, seed, groups))
    check_folds({seed: fold_of}, strata, examples)
    print_data(examples, groups)
    return fold_of


def _as_cross_validation(
    found: QuickResult, examples: Examples, plan: QuickPlan, seconds: float
) -> CrossValidation:
    results = []
    for fold in range(1, plan.folds.folds + 1):
        places = np.flatnonzero(found.fold_of == fold)
        probabilities = found.probabilities[places]
        results.append(
            FoldResult(
                seed=plan.folds.seeds[0],
                fold=fold,
                places=places,
                probabilities=probabilities,
                thresholds=None,
                scores=score_task(
                    "single", examples.targets[places], probabilities, examples.labels, None
                ),
                epochs=0,
                best_epoch=0,
                seconds=seconds / plan.folds.folds,
            )
        )
    return CrossValidation(
        task="single",
        labels=examples.labels,
        targets=examples.targets,
        folds=plan.folds.folds,
        seeds=plan.folds.seeds,
        results=results,
    )
