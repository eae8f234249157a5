"""`python -m corpora COMMAND`: list, fetch, clean and look at corpora."""

import sys
from collections.abc import Sequence

from corpora.command_line import run_one_of

COMMANDS = {
    "list": ("corpora.commands.list_sources", "show the public sources and what is fetched"),
    "fetch": ("corpora.commands.fetch", "fetch a public source, verified"),
    "clean": ("corpora.commands.clean", "clean texts and drop duplicates"),
    "stats": ("corpora.commands.stats", "count what is in a corpus"),
    "cache": ("corpora.commands.cache", "show or remove the copies that runs keep"),
    "sample": ("corpora.commands.sample", "show texts before and after cleaning"),
}


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns its exit code."""
    return run_one_of("python -m corpora", COMMANDS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
