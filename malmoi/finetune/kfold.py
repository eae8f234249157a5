"""Fine-tune a classifier and say how good it is: k-fold, then once more on all the data.

python finetune/kfold.py --labels 꿈,일기,일정,메모,오류
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from malmoi.command_line import run_command
from malmoi.finetune.run_config import KfoldConfig, check_places, read_config
from malmoi.finetune.settings import KfoldSettings

if TYPE_CHECKING:
    from malmoi.finetune.runner import FinishedRun

ABOUT = """Measure an encoder and a linear model, added up, on labelled texts by stratified k-fold
(macro F1), then train on all of them and save the classifier to runs/finetune/. A run that was
stopped goes on from its finished folds when the same command is given again. Further settings are
keys of recipes: see malmoi/finetune/recipes/default.toml."""


def main(settings: KfoldSettings) -> None:
    """Check everything, cross-validate, train on all texts, and save the run.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    run(read_config(settings))


def run(config: KfoldConfig) -> "FinishedRun":
    """The same for who has read the settings already."""
    check_places(config)
    if not config.flags.quick:
        # torch takes seconds to import. It comes first, for it fails in words where memory is
        # short; other libraries then fail in ways that nobody would know.
        import torch  # noqa: F401

    from malmoi.finetune.runner import cross_validate

    return cross_validate(config)


def command(arguments: Sequence[str] | None = None, program: str | None = None) -> int:
    """Run it with these flags, or those of the process; returns the exit code."""
    return run_command(KfoldSettings, main, ABOUT, arguments=arguments, program=program)


if __name__ == "__main__":
    sys.exit(command())
