"""`python tokenizer/train.py --corpus PATH --output DIR`: train a WordPiece tokenizer."""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from corpora.atomic import directory_at_once
from corpora.clean_corpus import iter_clean_texts, write_clean_corpus
from corpora.cleaning import CleaningSettings
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
    records = iter_records(settings.corpus, text_column=settings.text_column)
    with directory_at_once(settings.output) as scratch:
        with tempfile.TemporaryDirectory() as folder:
            clean = Path(folder) / "clean"
            report = write_clean_corpus(records, clean, CleaningSettings())
            trained = train_tokenizer(
                iter_clean_texts(clean),
                vocab_size=settings.vocab_size,
                min_frequency=settings.min_frequency,
            )
        trained.save_pretrained(scratch)
    print(f"{len(trained):,} entries from {report.kept:,} texts -> {settings.output}")


if __name__ == "__main__":
    sys.exit(
        run_command(TokenizerSettings, main, "Train a WordPiece tokenizer on any Korean corpus.")
    )
