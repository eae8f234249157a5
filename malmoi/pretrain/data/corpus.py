"""What a run learns from: its texts cleaned and tokenised, once, and the tokenizer."""

import hashlib
import json
import shutil
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from malmoi.cache import CACHE, bound, mark_used
from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.inference.tokenizing import MANY_UNKNOWN
from malmoi.pretrain.config.run_plan import CorpusPlan
from malmoi.pretrain.data.tokenized import (
    TokenizedCorpus,
    is_tokenized,
    open_tokenized,
    tokenize_corpus,
)
from malmoi.text.cleaning.cleaner import CLEANER_VERSION, CleaningSettings
from malmoi.text.corpus.clean_corpus import (
    CleaningMeans,
    corpus_hash,
    is_whole,
    iter_clean_texts,
    write_clean_corpus,
)
from malmoi.text.corpus.clean_report import CleaningReport
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.records import READER_VERSION, iter_records
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.tokenizer.sampling import sample_evenly
from malmoi.tokenizer.training import TRAINING_VERSION, train_tokenizer
from malmoi.transformers_models import tokenizer_hash
from malmoi.workers.engines import Engine

_UNKNOWN = "[UNK]"
_DAY = 86_400.0


def prepare_corpus(
    plan: CorpusPlan, tokenizer: PreTrainedTokenizerFast | None, engine: Engine = "local"
) -> tuple[TokenizedCorpus, PreTrainedTokenizerFast]:
    """Clean and tokenise the texts, or open what an earlier run has made of them.

    Args:
        tokenizer: that of the run, if it has one; else one is trained on the texts.
        engine: what cleans and tokenises; the arrays do not depend on it.

    Raises:
        InputError: the texts cannot be read, or the arrays do not go with the flags.
    """
    if is_tokenized(plan.path):
        return _open_corpus(plan, tokenizer)
    source_hash = corpus_hash(plan.path)
    clean_directory = _prepare_clean_corpus(plan, source_hash, engine)
    mark_used(clean_directory)
    if tokenizer is None:
        assert plan.vocab_size is not None
        tokenizer = _trained_tokenizer(clean_directory, plan.vocab_size)
    print("tokenizing the corpus", flush=True)
    corpus = tokenize_corpus(
        clean_directory,
        tokenizer,
        corpus_sha256=source_hash,
        max_length=plan.max_length,
        cache=CACHE / "tokenized",
        engine=engine,
    )
    in_use = [clean_directory, corpus.directory]
    for path in in_use:
        mark_used(path)
    if removed := bound(CACHE, keep=in_use, spare_seconds=_DAY):
        print(f"{CACHE} had grown large: removed {removed / 2**30:.1f} GiB not used for long")
    return corpus, tokenizer


def unknown_fraction(corpus: TokenizedCorpus, tokenizer: PreTrainedTokenizerFast) -> float:
    """Part of the corpus's tokens that are [UNK]; of 5% or more it warns.

    An unfit tokenizer shows nowhere else: a network learns to guess [UNK] very well.
    """
    counts = corpus.token_counts()
    unknown = tokenizer.get_vocab()[_UNKNOWN]  # there, whether or not it has the role
    share = float(counts[unknown] / corpus.num_tokens) if unknown < len(counts) else 0.0
    if share >= MANY_UNKNOWN:
        print(
            f"warning: {share:.0%} of the corpus's tokens are {_UNKNOWN}, words that "
            "the tokenizer has no entries for: is it of this language, and are its "
            "do_lower_case and strip_accents false?",
            file=sys.stderr,
            flush=True,
        )
    return share


def _trained_tokenizer(clean_directory: Path, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a tokenizer, or load that of an earlier run on the same texts, if it is whole."""
    key = json.dumps([clean_directory.name, vocab_size, TRAINING_VERSION, version("tokenizers")])
    directory = CACHE / "tokenizers" / hashlib.sha256(key.encode()).hexdigest()[:16]
    if directory.is_dir():
        try:
            mark_used(directory)
            return load_pretraining_tokenizer(directory)
        except InputError as error:
            print(f"warning: {error}; doing so", file=sys.stderr, flush=True)
            shutil.rmtree(directory)
    print("training a tokenizer", flush=True)
    texts = sample_evenly(iter_clean_texts(clean_directory)).texts
    trained = train_tokenizer(texts, vocab_size=vocab_size)
    with directory_at_once(directory, shared=True) as scratch:
        trained.save(scratch)
    return trained.tokenizer


def _open_corpus(
    plan: CorpusPlan, tokenizer: PreTrainedTokenizerFast | None
) -> tuple[TokenizedCorpus, PreTrainedTokenizerFast]:
    corpus, own = open_tokenized(plan.path)
    if tokenizer is not None and tokenizer_hash(tokenizer) != tokenizer_hash(own):
        raise InputError(
            "expected the tokenizer that {path} was tokenized with, found another one given by "
            "--tokenizer, --init, generator.init or --resume; give the texts themselves as "
            "--corpus",
            path=plan.path,
        )
    longest = corpus.facts["max_length"]
    if plan.max_length < longest:
        raise InputError(
            "expected --max-length of at least {longest}, at which {path} was cut, found "
            "{max_length}; give the texts themselves as --corpus",
            longest=longest,
            path=plan.path,
            max_length=plan.max_length,
        )
    print(CleaningReport.from_json(corpus.facts["cleaning"]).summary())
    return corpus, own


def _prepare_clean_corpus(plan: CorpusPlan, source_hash: str, engine: Engine) -> Path:
    cleaning = CleaningSettings()
    options = plan.reading()
    key = [source_hash, asdict(options), READER_VERSION, asdict(cleaning), CLEANER_VERSION]
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    directory = CACHE / "clean" / name
    if directory.is_dir() and not is_whole(directory):
        print(f"warning: {directory} is damaged; made again", file=sys.stderr, flush=True)
        shutil.rmtree(directory, ignore_errors=True)  # two runs may find it at once
    if not directory.is_dir():
        print(f"reading and cleaning {plan.path}", flush=True)
        notes = ReadingNotes(say=lambda line: print(line, flush=True))
        records = iter_records(plan.path, options=options, notes=notes)
        write_clean_corpus(records, directory, cleaning, notes, means=CleaningMeans(engine=engine))
    print(CleaningReport.read_from(directory).summary())
    return directory
