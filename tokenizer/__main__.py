"""`python -m tokenizer COMMAND ...`: train a tokenizer, or compare some."""

import sys
from importlib import import_module

from corpora.command_line import run_command

# Imported only when called: comparing needs matplotlib, training does not.
COMMANDS = {"train": "tokenizer.train", "evaluate": "tokenizer.evaluation"}


def main() -> int:
    """Run the command that the first argument names.

    Returns:
        The exit code, as `run_command`; 2 for an unknown command.
    """
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    known = ", ".join(COMMANDS)
    if name in ("-h", "--help"):
        print(f"usage: python -m tokenizer COMMAND ...  ({known}; COMMAND --help shows its flags)")
        return 0
    if name not in COMMANDS:
        found = f"found {name}" if name else "found none"
        print(f"error: expected a command ({known}), {found}", file=sys.stderr)
        return 2
    command = import_module(COMMANDS[name])
    sys.argv[:2] = [f"python -m tokenizer {name}"]
    return run_command(command.Settings, command.main, command.ABOUT)


if __name__ == "__main__":
    sys.exit(main())
