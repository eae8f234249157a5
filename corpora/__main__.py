"""`python -m corpora COMMAND ...`: the commands about texts, each loaded only when it is called."""

import sys
from importlib import import_module

from corpora.command_line import run_command

COMMANDS = {"clean": "corpora.commands.clean"}


def main() -> int:
    """Run the command that the first argument names.

    Returns:
        The exit code, as `run_command`; 2 for an unknown command.
    """
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        found = f"found {name}" if name else "found none"
        print(f"error: expected a command ({', '.join(COMMANDS)}), {found}", file=sys.stderr)
        return 2
    command = import_module(COMMANDS[name])
    sys.argv[:2] = [f"{sys.argv[0]} {name}"]
    return run_command(command.Settings, command.main, command.ABOUT)


if __name__ == "__main__":
    sys.exit(main())
