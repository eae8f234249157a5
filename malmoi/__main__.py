"""The console command `malmoi COMMAND`; `python -m malmoi` is the same."""

import sys
from collections.abc import Sequence

from malmoi.command_line import run_one_of

COMMANDS = {
    "list": ("malmoi.commands.list_sources", "show the public sources and what is fetched"),
    "fetch": ("malmoi.commands.fetch", "fetch a public source, verified"),
    "clean": ("malmoi.commands.clean", "clean texts and drop duplicates"),
    "stats": ("malmoi.commands.stats", "count what is in a corpus"),
    "predict": ("malmoi.commands.predict", "label the texts of files, or of a pipe"),
    "serve": ("malmoi.commands.serve", "answer HTTP requests with a classifier"),
    "explain": ("malmoi.commands.explain", "show which words carried a decision"),
    "compare": ("malmoi.commands.compare", "say which of two runs is better, text by text"),
    "export": ("malmoi.commands.export", "write a classifier into a folder for others"),
    "push": ("malmoi.commands.push", "send a classifier to the Hugging Face Hub"),
    "labels": (
        "malmoi.commands.labels",
        "list, import, export or back up labels of the app",
    ),
    "models": ("malmoi.commands.models", "fetch a released model, or show which there are"),
    "cache": ("malmoi.commands.cache", "show or remove the copies that runs keep"),
    "doctor": ("malmoi.commands.doctor", "say what is installed, found and missing"),
    "tokenizer": ("", "train a tokenizer, or compare some"),
    "pretrain": ("malmoi.pretrain.run", "pre-train an encoder on texts"),
    "kfold": ("malmoi.finetune.kfold", "measure and train a classifier on labelled texts"),
    "app": ("malmoi.commands.app", "start the labelling app"),
    "sample": ("malmoi.commands.sample", "show texts before and after cleaning"),
}
# The same as of tokenizer/train.py and tokenizer/evaluate.py.
TOKENIZER_COMMANDS = {
    "train": ("malmoi.tokenizer.train", "train a WordPiece, unigram or BPE tokenizer on a corpus"),
    "evaluate": ("malmoi.tokenizer.evaluate", "compare tokenizers on a corpus: table, JSON, plot"),
}


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
