"""`python -m corpora COMMAND`: list, fetch, clean and look at corpora."""

import importlib
import sys
from collections.abc import Sequence

from corpora.command_line import run_command

# Imported only when called: `list` must not wait for what `clean` needs.
COMMANDS = {
    "list": ("corpora.commands.list_sources", "show the public sources and what is fetched"),
    "fetch": ("corpora.commands.fetch", "fetch a public source, verified"),
    "clean": ("corpora.commands.clean", "clean texts and drop duplicates"),
    "stats": ("corpora.commands.stats", "count what is in a corpus"),
    "sample": ("corpora.commands.sample", "show texts before and after cleaning"),
}


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit code, 2 for an unknown command."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        print("usage: python -m corpora COMMAND …   (COMMAND --help shows its flags)\n")
        print("\n".join(f"  {name:<8}{about}" for name, (_, about) in COMMANDS.items()))
        return 0
    if name not in COMMANDS:
        known = ", ".join(COMMANDS)
        print(f"error: expected a command of {known}, found {name!r}; see --help", file=sys.stderr)
        return 2
    command = importlib.import_module(COMMANDS[name][0])
    program = f"python -m corpora {name}"
    return run_command(
        command.Settings, command.main, command.ABOUT, arguments=rest, program=program
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
