"""`malmoi tokenizer train --corpus PATH --output DIR`: clean, sample, train, write."""

import dataclasses
import json
import shutil
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import tyro

from malmoi.errors import InputError
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources
from malmoi.tokenizer.kinds import MAX_SAMPLE_BYTES, ModelKind, check_training_settings
from malmoi.work_folder import only_run

_PACKAGES = ("malmoi", "tokenizers", "sentencepiece", "transformers")

ABOUT = "Train a WordPiece, unigram or BPE tokenizer on any Korean corpus."


@dataclass(kw_only=True)
class TrainTokenizerSettings:
    """What the tokenizer is trained on and how large it becomes."""

    corpus: Path
    """File or folder of texts (.txt .csv .tsv .jsonl .parquet .xlsx, plain, .gz or .zst)."""
    output: Path
    """Directory to write; must not exist yet."""
    model: ModelKind = "wordpiece"
    """wordpiece: BERT's; unigram or bpe: sentencepiece's, nothing is unknown to them."""
    vocab_size: int = 32_000
    """Vocabulary entries, rounded up to a multiple of 128."""
    morphemes: bool = False
    """Let no entry cross the end of a morpheme; Kiwi is needed for training only."""
    min_frequency: int = 2
    """Characters, and pieces of wordpiece, seen less often are left out."""
    max_sample_bytes: int = MAX_SAMPLE_BYTES
    """Text to train on, drawn evenly over the corpus; more hardly changes a vocabulary."""
    seed: int = 42
    """Seed of the draw."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""


def main(settings: TrainTokenizerSettings) -> None:
    """Clean the corpus, train, and write the directory in one rename."""
    check_training_settings(
        model=settings.model,
        vocab_size=settings.vocab_size,
        min_frequency=settings.min_frequency,
    )
    _refuse_existing(settings.output)
    if not settings.corpus.exists():
        find_sources(settings.corpus)
    with only_run(settings.output):
        _refuse_existing(settings.output)  # another run may have ended meanwhile
        entries = _train(settings)
    print(f"{entries:,} entries -> {settings.output}")


def _refuse_existing(output: Path) -> None:
    if output.exists():
        raise InputError(
            "expected a new directory for --output, found {output}; delete it or name another",
            output=output,
        )


def _train(settings: TrainTokenizerSettings) -> int:
    """Do all that `main` does but for its checks; the number of entries."""
    # These take seconds to import.
    from malmoi.files import directory_at_once
    from malmoi.text.cleaning.cleaner import CleaningSettings
    from malmoi.text.corpus.clean_corpus import corpus_hash, iter_clean_texts, write_clean_corpus
    from malmoi.text.corpus.clean_report import report_path
    from malmoi.text.morphemes import analyser_version
    from malmoi.text.reading.notes import ReadingNotes
    from malmoi.text.reading.records import iter_records
    from malmoi.tokenizer.sampling import mark_morphemes, sample_evenly
    from malmoi.tokenizer.training import train_tokenizer
    from malmoi.transformers_models import tokenizer_hash

    source_hash = corpus_hash(settings.corpus)
    with directory_at_once(settings.output) as scratch:
        clean = scratch / "clean"
        notes = ReadingNotes(say=lambda line: print(line, flush=True))
        records = iter_records(settings.corpus, options=settings.reading, notes=notes)
        write_clean_corpus(records, clean, CleaningSettings(), notes)
        cleaning = json.loads(report_path(clean).read_text(encoding="utf-8"))
        sample = sample_evenly(
            iter_clean_texts(clean), max_bytes=settings.max_sample_bytes, seed=settings.seed
        )
        shutil.rmtree(clean)
        if not sample.texts:
            raise InputError(
                "expected room for a text in --max-sample-bytes, found {max_sample_bytes}; raise "
                "it",
                max_sample_bytes=settings.max_sample_bytes,
            )
        texts, failed = sample.texts, 0
        if settings.morphemes:
            print(f"cutting {len(texts):,} texts by morphemes", flush=True)
            texts, failed = mark_morphemes(texts)
        print(f"training on {len(texts):,} of {sample.read:,} texts", flush=True)
        trained = train_tokenizer(
            texts,
            model=settings.model,
            vocab_size=settings.vocab_size,
            min_frequency=settings.min_frequency,
        )
        trained.save(scratch)
        flags, entries = dataclasses.asdict(settings).items(), trained.tokenizer.get_vocab()
        record = {
            "settings": {key: str(v) if isinstance(v, Path) else v for key, v in flags},
            "corpus_sha256": source_hash,
            "cleaning": cleaning,
            "sample": {
                "texts": len(sample.texts),
                "of_texts": sample.read,
                "bytes": sum(len(text.encode()) + 1 for text in sample.texts),
                "sha256": sample.sha256,
            },
            "tokenizer_hash": tokenizer_hash(trained.tokenizer),
            "analyser": analyser_version() if settings.morphemes else None,
            "analyser_failed_texts": failed,
            "entries": len(entries),
            "unused_entries": sum(token.startswith("[unused") for token in entries),
            "versions": {name: version(name) for name in _PACKAGES},
        }
        text = json.dumps(record, ensure_ascii=False, indent=2)
        (scratch / "training.json").write_text(text, encoding="utf-8")
    return len(trained.tokenizer)
