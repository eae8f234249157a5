"""`python pretrain/run.py --corpus PATH`: pre-train an ELECTRA on Korean text."""

import os
import sys
from collections.abc import Sequence

from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.pretrain.config.run_config import check_places, read_config
from malmoi.pretrain.config.settings import PretrainSettings

ABOUT = (
    "Pre-train an ELECTRA from scratch on Korean text (replaced-token detection), or go on from a "
    "checkpoint with --init."
)


def main(settings: PretrainSettings) -> None:
    """Prepare the corpus, build or load the networks, train, write the run.

    Raises:
        InputError: a flag, an input or the loss is not as it should be.
        Stopped: Ctrl-C or SIGTERM ended the run after a checkpoint.
        SystemExit: as InputError, in all but one of several processes, so that it is said once.
    """
    try:
        config = read_config(settings)
        check_places(config)
    except InputError:
        # Several processes on a machine all fail alike: the first speaks.
        if int(os.environ.get("LOCAL_RANK", "0")) == 0:
            raise
        raise SystemExit(2) from None
    # torch takes seconds to import.
    from malmoi.pretrain.runner import pretrain

    pretrain(config)


def command(arguments: Sequence[str] | None = None, program: str | None = None) -> int:
    """Run it with these flags, or those of the process; returns the exit code."""
    return run_command(PretrainSettings, main, ABOUT, arguments=arguments, program=program)


if __name__ == "__main__":
    sys.exit(command())
