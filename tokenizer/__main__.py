"""`python -m tokenizer COMMAND`: train a tokenizer, or compare some."""

import sys
from collections.abc import Sequence

from malmoi.command_line import run_one_of

COMMANDS = {
    "train": ("tokenizer.train", "train a WordPiece, unigram or BPE tokenizer on a corpus"),
    "evaluate": ("tokenizer.evaluate", "compare tokenizers on a corpus: table, JSON, plot"),
}


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns its exit code."""
    return run_one_of("python -m tokenizer", COMMANDS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
