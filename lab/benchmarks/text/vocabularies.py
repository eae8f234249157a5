"""Which tokenizer cuts Korean best? Ours, trained here, beside the published vocabularies.

    python -m lab.benchmarks.text.vocabularies

Trains WordPiece, unigram and BPE, with and without a cut by morphemes, at 32,000 entries on movie
reviews, petitions and everyday sentences, and measures them with the published
vocabularies on reviews and petitions kept out of training and on news comments, of which none was
in it. Published vocabularies are files of one entry a line, `vocabs/NAME.txt` below the folder of
public texts. Also counts on 100,000 raw texts how often the converted tokenizers and sentencepiece
itself give different ids.
"""

import hashlib
import json
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import sentencepiece

from lab.benchmarks.data import (
    CHATBOT,
    NEWS_COMMENTS,
    PETITIONS,
    RATED_REVIEWS,
    DataFile,
    DataSettings,
)
from malmoi.command_line import run_command
from malmoi.files import write_at_once
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records
from malmoi.tokenizer.evaluation import as_json, compare, format_table, write_plot
from malmoi.tokenizer.kinds import ModelKind
from malmoi.tokenizer.sampling import iter_batches, mark_morphemes, sample_evenly
from malmoi.tokenizer.training import TrainedTokenizer, train_tokenizer

RESULTS = Path(__file__).parents[1] / "results" / "vocabularies.json"
KINDS: tuple[ModelKind, ...] = ("wordpiece", "unigram", "bpe")
# One review of 30 is kept out: about 20,000.
HELD_OUT_OF = 30
HELD_OUT_PETITIONS = PETITIONS["2019-08"]


@dataclass(kw_only=True)
class VocabulariesSettings(DataSettings):
    """How much to train on and where to write."""

    vocab_size: int = 32_000
    """Vocabulary entries of each tokenizer."""
    max_texts: int | None = None
    """Train on so many texts, drawn evenly, for a quick look; all of them by default."""
    equal_texts: int = 100_000
    """Raw texts on which ids are compared with sentencepiece's."""
    plain_only: bool = False
    """Leave out the cuts by morphemes: Kiwi takes some ten minutes for all texts."""
    keep: Path | None = None
    """Folder to keep the tokenizers in; those that are there already are not trained again."""
    output: Path = RESULTS
    """JSON file of the results; the plot goes beside it."""


def main(settings: VocabulariesSettings) -> None:
    """Train, compare, write."""
    data = settings.folder
    for needed in (RATED_REVIEWS, NEWS_COMMENTS, CHATBOT, *PETITIONS.values()):
        needed.find(data)
    train = [text for text in map(clean_text, training_texts(data)) if text]
    if settings.max_texts is not None:
        train = train[:: max(1, len(train) // settings.max_texts)]
    sample = sample_evenly(train)
    print(f"training on {len(sample.texts):,} texts", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = settings.keep or Path(scratch)
        tokenizers: dict[str, Path] = {}
        training: dict[str, object] = {}
        for cut in [""] if settings.plain_only else ["", "morphemes"]:
            marked: tuple[list[str], int] | None = None
            for kind in KINDS:
                name = f"{kind} {cut}".strip()
                tokenizers[name] = folder / name.replace(" ", "-")
                record_file = tokenizers[name] / "record.json"
                if not record_file.is_file():
                    if marked is None:
                        marked = mark_morphemes(sample.texts) if cut else (sample.texts, 0)
                    record = train_one(kind, *marked, tokenizers[name], settings)
                    write_at_once(record_file, json.dumps(record))
                training[name] = json.loads(record_file.read_text(encoding="utf-8"))
                print(name, json.dumps(training[name]), flush=True)
        for file in sorted((data / "vocabs").glob("*.txt")):
            tokenizers[file.stem] = file
        rows, about = compare(
            tokenizers,
            {
                "held-out reviews": held_out_reviews(data),
                "comments": texts_of(data, NEWS_COMMENTS),
                "held-out petitions": texts_of(data, HELD_OUT_PETITIONS),
            },
            max_sample_bytes=5_000_000,
            morpheme_texts=5_000,
            seed=42,
        )
    about["training"] = training
    about["training_texts"] = {"texts": len(sample.texts), "sha256": sample.sha256}
    print(format_table(rows))
    write_at_once(settings.output, as_json(rows, about))
    write_plot(rows, settings.output.with_suffix(".png"))


def train_one(
    kind: ModelKind, texts: list[str], failed: int, directory: Path, settings: VocabulariesSettings
) -> dict[str, object]:
    """Train a tokenizer into a directory; returns what there is to say about it."""
    started = time.perf_counter()
    trained = train_tokenizer(texts, model=kind, vocab_size=settings.vocab_size)
    record: dict[str, object] = {
        "seconds": round(time.perf_counter() - started, 1),
        "kiwi_failed_texts": failed,
    }
    if trained.sentencepiece_model is not None:
        record["texts_compared"] = settings.equal_texts
        record["texts_with_other_ids"] = count_different(
            trained, islice(raw_texts(settings.folder), settings.equal_texts)
        )
    trained.save(directory)
    return record


def texts_of(data: Path, file: DataFile, text_column: str | None = None) -> Iterator[str]:
    """The raw texts of a public file below a folder."""
    return (record.text for record in iter_records(file.find(data), text_column=text_column))


def is_held_out(text: str) -> bool:
    """Decided by the text itself, so that a review that occurs twice stays on one side."""
    digest = hashlib.sha256(clean_text(text).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT_OF == 0


def held_out_reviews(data: Path) -> Iterator[str]:
    """Each once."""
    reviews = (text for text in texts_of(data, RATED_REVIEWS) if is_held_out(text))
    return iter(dict.fromkeys(reviews))


def training_texts(data: Path) -> Iterator[str]:
    """Reviews, petitions and everyday sentences, without what is held out."""
    for text in texts_of(data, RATED_REVIEWS):
        if not is_held_out(text):
            yield text
    for file in PETITIONS.values():
        if file != HELD_OUT_PETITIONS:
            yield from texts_of(data, file)
    for column in ("Q", "A"):
        yield from texts_of(data, CHATBOT, column)


def raw_texts(data: Path) -> Iterator[str]:
    """Texts as they were written, the oddest first: comments, petitions, then reviews."""
    yield from texts_of(data, NEWS_COMMENTS)
    yield from texts_of(data, HELD_OUT_PETITIONS)
    yield from texts_of(data, RATED_REVIEWS)


def count_different(trained: TrainedTokenizer, texts: Iterator[str]) -> int:
    """On how many texts the tokenizer's ids are not those of its sentencepiece model."""
    original = sentencepiece.SentencePieceProcessor(model_proto=trained.sentencepiece_model)
    converted = trained.tokenizer.backend_tokenizer
    different = 0
    for batch in iter_batches(texts, 5_000):
        encodings = converted.encode_batch_fast(batch, add_special_tokens=False)
        for text, encoding in zip(batch, encodings, strict=True):
            ids = original.encode(unicodedata.normalize("NFC", text))
            different += ids != encoding.ids
    return different


if __name__ == "__main__":
    sys.exit(
        run_command(
            VocabulariesSettings, main, "Train tokenizers and compare them with published ones."
        )
    )
