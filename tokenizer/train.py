"""`python tokenizer/train.py --corpus PATH --output DIR`: train a WordPiece tokenizer."""

import sys
from dataclasses import dataclass
from pathlib import Path

from corpora.atomic import directory_at_once
from corpora.cleaning import Cleaner, CleaningSettings
from corpora.command_line import run_command
from corpora.errors import InputError
from corpora.reading import iter_records
from tokenizer.training import train_tokenizer


@dataclass(kw_only=True)
class TokenizerSettings:
    """What the tokenizer is trained on and how large it becomes."""

    corpus: Path
    """File or folder of texts (.txt .csv .tsv .jsonl .parquet .xlsx, plain, .gz or .zst)."""
    output: Path
    """Directory to write; must not exist yet."""
    vocab_size: int = 16_000
    """Vocabulary entries, rounded up to a multiple of 128."""
    min_frequency: int = 2
    """Word pieces seen less often than this are not made."""
    text_column: str | None = None
    """Column that holds the text; found by its usual name when not given."""


def main(settings: TokenizerSettings) -> None:
    """Clean the corpus, train, and write the directory in one rename."""
    if settings.output.exists():
        raise InputError(
            f"expected a new directory for --output, found {settings.output}; "
            "delete it or name another"
        )
    cleaner = Cleaner(CleaningSettings())
    records = iter_records(settings.corpus, text_column=settings.text_column)
    trained = train_tokenizer(
        (record.text for record in cleaner.clean(records)),
        vocab_size=settings.vocab_size,
        min_frequency=settings.min_frequency,
    )
    if cleaner.report.kept == 0:
        raise InputError(
            f"expected texts to train on, found none left of {cleaner.report.read} in "
            f"{settings.corpus} after cleaning"
        )
    with directory_at_once(settings.output) as scratch:
        trained.save_pretrained(scratch)
    print(f"{len(trained):,} entries from {cleaner.report.kept:,} texts -> {settings.output}")


if __name__ == "__main__":
    sys.exit(
        run_command(TokenizerSettings, main, "Train a WordPiece tokenizer on any Korean corpus.")
    )
