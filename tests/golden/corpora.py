"""Raw text to a clean corpus and its tokenizer: clean, stats, sample, `tokenizer train`."""

import json
from itertools import islice
from pathlib import Path

import pandas as pd

from tests.golden import product
from tests.golden.entries import Golden


def run(golden: Golden) -> None:
    """Each command once on the sample comments, and on labelled reviews with near duplicates."""
    for name, source, flags in (
        ("comments", "corpora/comments", []),
        ("reviews", "reviews.csv", ["--near-duplicates", "--max-repeats", "0"]),
    ):
        output, rejects = f"clean-{name}", f"rejects-{name}.jsonl"
        product.run_malmoi(
            *("clean", source, "--output", output, "--rejects", rejects, "--workers", "1", *flags)
        ).done()
        report = json.loads((Path(output) / "_report.json").read_text(encoding="utf-8"))
        golden.add(f"clean/{name}/_report.json", report, kept=report["kept"])
        kept = pd.concat(map(pd.read_parquet, sorted(Path(output).rglob("*.parquet"))))
        golden.add(f"clean/{name}/texts", kept.to_dict("records"), texts=len(kept))
        dropped = Path(rejects).read_text(encoding="utf-8")
        golden.add(f"clean/{name}/rejects", dropped, texts=dropped.count("\n"))
        for about, path in ((f"{name}", source), (f"clean-{name}", output)):
            counted = product.run_malmoi("stats", path, "--json").done()
            golden.add(f"stats/{about}", json.loads(counted.out))
    golden.add("stats/lines", product.run_malmoi("stats", "reviews.csv").done().out)
    shown = product.run_malmoi("sample", "corpora/comments", "--size", "20", "--changed-only")
    golden.add("sample/comments", shown.done().out)
    for model in ("wordpiece", "unigram", "bpe"):
        make_tokenizer(model)
        made = json.loads((Path(f"tokenizer-{model}") / "tokenizer.json").read_text("utf-8"))
        entries = made["model"]["vocab"]
        golden.add(f"tokenizer/{model}/vocabulary", entries, entries=len(entries))
        golden.add(f"tokenizer/{model}/tokenizer.json", made)
        record = json.loads((Path(f"tokenizer-{model}") / "training.json").read_text("utf-8"))
        golden.add(f"tokenizer/{model}/training.json", record)


def make_tokenizer(model: str = "wordpiece") -> Path:
    """A vocabulary of the first comments about games, made once."""
    output = Path(f"tokenizer-{model}")
    if not output.is_dir():
        product.run_tokenizer(
            *("train", "--corpus", str(few_comments()), "--output", str(output)),
            *("--model", model, "--vocab-size", "1500"),
        ).done()
    return output


def few_comments() -> Path:
    """The first 300 comments about games."""
    return first_lines(Path("corpora/comments/games.txt"), 300, Path("comments.txt"))


def first_lines(source: Path, number: int, to: Path) -> Path:
    """A file with the first lines of another."""
    with source.open(encoding="utf-8") as lines:
        to.write_text("".join(islice(lines, number)), encoding="utf-8")
    return to
