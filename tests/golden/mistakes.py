"""What commands say for themselves: their help, and the line that answers a mistake."""

from pathlib import Path

from tests.golden import product
from tests.golden.entries import Golden

TABLE = "forms/table.csv"
# (name, command, flags): each ends with code 2 and one line, before anything is trained.
MISTAKES = [
    ("unknown-command", "malmoi", ["cleen"]),
    ("unknown-flag", "malmoi", ["clean", TABLE, "--output", "x", "--worker", "1"]),
    ("no-file", "malmoi", ["stats", "nowhere.csv"]),
    ("wrong-number", "malmoi", ["clean", TABLE, "--output", "x", "--near-threshold", "0.5"]),
    ("output-exists", "malmoi", ["clean", TABLE, "--output", "forms"]),
    ("wrong-column", "malmoi", ["stats", TABLE, "--text-column", "글"]),
    ("wrong-sheet", "malmoi", ["stats", "forms/book.xlsx", "--sheet", "3월"]),
    ("no-model", "malmoi", ["predict", TABLE, "--model", "nothing", "--output", "x.csv"]),
    ("no-classifier", "malmoi", ["explain", "글", "--model", "forms"]),
    ("no-database", "malmoi", ["labels", "list", "--database", "none.db"]),
    ("no-run", "malmoi", ["compare", "one", "other"]),
    ("kfold-labels", "kfold", ["--data", "memos.csv", "--labels", "꿈,현실"]),
    ("kfold-task", "kfold", ["--data", "memos.csv", "--task", "several"]),
    ("kfold-pairs", "kfold", ["--data", "memos.csv", "--task", "pair"]),
    ("kfold-folds", "kfold", ["--data", "memos.csv", "--folds", "1"]),
    ("kfold-key", "kfold", ["--data", "memos.csv", "--set", "training.rate=1"]),
    ("kfold-value", "kfold", ["--data", "memos.csv", "--set", "training.dropout=2"]),
    ("kfold-recipe", "kfold", ["--data", "memos.csv", "--recipe", "best"]),
    ("kfold-few", "kfold", ["--data", TABLE, "--folds", "5", "--quick"]),
    ("pretrain-corpus", "pretrain", []),
    ("pretrain-recipe", "pretrain", ["--corpus", "corpora/comments", "--recipe", "best"]),
    ("pretrain-key", "pretrain", ["--corpus", "corpora/comments", "--set", "objective.x=1"]),
    ("pretrain-limits", "pretrain", ["--corpus", TABLE, "--epochs", "1", "--max-steps", "2"]),
    ("pretrain-frozen", "pretrain", ["--corpus", TABLE, "--recipe", "frozen-generator"]),
    (
        "pretrain-together",
        "pretrain",
        ["--corpus", TABLE, "--recipe", "mlm", "--set", "objective.discriminator_weight=3"],
    ),
    ("pretrain-init", "pretrain", ["--corpus", TABLE, "--init", "nowhere"]),
    ("tokenizer-kind", "tokenizer", ["train", "--corpus", TABLE, "--output", "x", "--model", "a"]),
    (
        "tokenizer-size",
        "tokenizer",
        ["train", "--corpus", TABLE, "--output", "x"] + ["--vocab-size", "9"],
    ),
]
HELP = {
    "malmoi": ["list", "fetch", "clean", "stats", "predict", "serve", "explain", "compare"]
    + ["export", "push", "labels", "cache", "doctor", "sample"],
    "tokenizer": ["train", "evaluate"],
    "kfold": [],
    "pretrain": [],
}


def run(golden: Golden) -> None:
    """Every help page and every mistake; none leaves a file."""
    before = sorted(Path().iterdir())
    for name, command, flags in MISTAKES:
        said = product.COMMANDS[command](*flags)
        line = golden.without_volatile(said.error.strip())
        golden.add(f"mistake/{name}", said.out + said.error, code=said.code, line=line[:300])
    for command, parts in HELP.items():
        golden.add(f"help/{command}", product.COMMANDS[command]("--help").out)
        for part in parts:
            golden.add(f"help/{command}-{part}", product.COMMANDS[command](part, "--help").out)
    if left := sorted({*Path().iterdir()} - {*before}):
        raise RuntimeError(f"mistakes have left {', '.join(map(str, left))}")
