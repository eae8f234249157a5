"""`malmoi tokenizer evaluate DIR... --corpus PATH...`: tokenizers side by side."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from malmoi.errors import InputError
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources

ABOUT = (
    "Compare tokenizers on texts: unknown tokens, length, agreement with Kiwi's morphemes, share "
    "of the vocabulary used, speed."
)


@dataclass(kw_only=True)
class EvaluateSettings:
    """What is compared, on what."""

    tokenizers: tyro.conf.Positional[tuple[Path, ...]]
    """Tokenizer directories, and BERT vocabularies (vocab.txt, one entry a line)."""
    corpus: tuple[Path, ...]
    """Files or folders of texts, each with rows of its own; texts are cleaned first."""
    output: Path | None = None
    """JSON file to write, with a plot (.png) beside it if the extra `plots` is installed."""
    max_sample_bytes: int = 5_000_000
    """Text of each corpus to measure on, drawn evenly."""
    morpheme_texts: int = 5_000
    """Texts of each corpus that Kiwi cuts."""
    seed: int = 42
    """Seed of the draw."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""


def main(settings: EvaluateSettings) -> None:
    """Measure, print the table, write JSON and plot."""
    if not settings.tokenizers:
        raise InputError("expected tokenizer directories or vocabularies, found none; name some")
    if settings.output is not None and settings.output.suffix != ".json":
        raise InputError(
            "expected a .json file for --output, found {output}", output=settings.output
        )
    for path in settings.corpus:
        find_sources(path)  # one that is missing is said before the others are read
    # These take seconds to import.
    from malmoi.files import write_at_once
    from malmoi.text.reading.notes import ReadingNotes
    from malmoi.text.reading.records import iter_records
    from malmoi.tokenizer.evaluation import as_json, can_plot, compare, format_table, write_plot

    notes = ReadingNotes(say=lambda line: print(line, flush=True))
    corpora = {
        str(path): (
            record.text for record in iter_records(path, options=settings.reading, notes=notes)
        )
        for path in settings.corpus
    }
    tokenizers = {str(path): path for path in settings.tokenizers}
    rows, about = compare(
        tokenizers,
        corpora,
        max_sample_bytes=settings.max_sample_bytes,
        morpheme_texts=settings.morpheme_texts,
        seed=settings.seed,
    )
    print(format_table(rows))
    if settings.output is not None:
        write_at_once(settings.output, as_json(rows, about))
        if can_plot():
            write_plot(rows, settings.output.with_suffix(".png"))
            print(f"written to {settings.output} and {settings.output.with_suffix('.png')}")
        else:
            print(
                f"written to {settings.output}; for a plot too: "
                "pip install -c constraints.txt -e '.[plots]'"
            )
