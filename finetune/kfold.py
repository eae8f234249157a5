"""Fine-tune a classifier and say how good it is: k-fold, then once more on all the data.

python finetune/kfold.py --labels 꿈,일기,일정,메모,오류
"""

import sys

from finetune.settings import KfoldSettings
from malmoi.command_line import run_command

ABOUT = """Measure an encoder and a linear model, added up, on labelled texts by stratified k-fold
(macro F1), then train on all of them and save the classifier to runs/finetune/. A run that was
stopped goes on from its finished folds when the same command is given again. Further settings are
keys of recipes: see finetune/recipes/default.toml."""


def main(settings: KfoldSettings) -> None:
    """Check everything, cross-validate, train on all texts, and save the run.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    given = settings.check()
    settings.check_places(given.values.start)
    # torch takes seconds to import. It comes first, for it fails in words where memory is short;
    # other libraries then fail in ways that nobody would know.
    import torch  # noqa: F401

    if settings.quick:
        from finetune.quick_run import run_quick

        run_quick(settings, given.values)
    else:
        from finetune.runner import cross_validate

        cross_validate(settings, given.values)


if __name__ == "__main__":
    sys.exit(run_command(KfoldSettings, main, ABOUT))
