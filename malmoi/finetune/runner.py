"""A whole run of fine-tuning: k-fold, then once more on all the data, and what is written of it.

There are two ways to fit: an encoder in each fold with a linear model beside it (`encoder_run`), or
with `--quick` the linear model alone (`quick_run`). What comes before and after is the same.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from malmoi.files import directory_at_once
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.source import DataPlace
from malmoi.finetune.report.files import check_free
from malmoi.finetune.report.write import Measured, write_run
from malmoi.finetune.run_config import KfoldConfig
from malmoi.finetune.scoring import (
    Evaluation,
    evaluate,
    print_evaluation,
    write_evaluation,
)
from malmoi.inference.classifier import Classifier
from malmoi.paths import runs


@dataclass(frozen=True, kw_only=True)
class FittedRun:
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
    with _way(config)(config) as fitted, directory_at_once(fitted.output) as scratch:
        fitted.put_model(scratch / "model")
        tested = _test(scratch, fitted.measured.examples, fitted.output.name)
        write_run(scratch, fitted.measured, started, tested)
    output = fitted.output
    if (output / "report.html").exists():
        print(f"report: {output / 'report.html'}")
    print(f"classifier: {output / 'model'} ({time.monotonic() - started:.0f} s)", flush=True)
    return FinishedRun(folder=output, measured=fitted.measured, tested=tested)


def _way(config: KfoldConfig) -> Callable[[KfoldConfig], AbstractContextManager[FittedRun]]:
    if config.flags.quick:
        from malmoi.finetune.quick_run import fit_linear_alone

        return fit_linear_alone
    from malmoi.finetune.encoder_run import fit_encoder_and_linear  # seconds: torch

    return fit_encoder_and_linear


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


def new_run(data: DataPlace) -> Path:
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
