"""The console command `malmoi COMMAND`; `python -m malmoi` is the same."""

import sys
from collections.abc import Sequence

from malmoi.command_line import run_one_of
from malmoi.commands.registry import COMMANDS, TOKENIZER_COMMANDS

# Of these, the model may also stand by itself: `malmoi serve MODEL`.
_MODEL_FIRST = ("serve", "export", "push")
_WITHOUT_VALUE = ("-h", "--help", "--private", "--no-private")


def _with_model_flag(given: Sequence[str]) -> Sequence[str]:
    """`serve MODEL` as `serve --model MODEL`: the first word that is no flag and no flag's."""
    place = 1
    while place < len(given) and given[place].startswith("-"):
        place += 1 if "=" in given[place] or given[place] in _WITHOUT_VALUE else 2
    named = any(each.partition("=")[0] == "--model" for each in given)
    if not given or given[0] not in _MODEL_FIRST or named or place >= len(given):
        return given
    return [*given[:place], "--model", *given[place:]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command with these arguments, or those of the process; returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return run_one_of(
        "malmoi", COMMANDS, _with_model_flag(given), {"tokenizer": TOKENIZER_COMMANDS}
    )


if __name__ == "__main__":
    sys.exit(main())
