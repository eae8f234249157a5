"""`python pretrain/run.py --corpus PATH`: pre-train an ELECTRA on Korean text."""

import dataclasses
import hashlib
import json
import resource
import shutil
import sys
import time
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast

from corpora.clean_corpus import corpus_hash, iter_clean_texts, write_clean_corpus
from corpora.cleaning import CleaningSettings
from corpora.command_line import run_command
from corpora.errors import InputError
from corpora.reading import iter_records
from pretrain.checkpoint import Progress, has_state, load_state, save_state
from pretrain.devices import choose_device, has_native_bf16
from pretrain.loop import make_optimizer, peak_learning_rate, planned_steps, train
from pretrain.monitor import Monitor
from pretrain.networks import ElectraPair, build_pair, load_pair
from pretrain.settings import PRESETS, PretrainSettings
from pretrain.tokenized import TokenizedCorpus, tokenize_corpus
from pretrain.warm_start import warm_start_embeddings
from tokenizer.training import load_tokenizer, save_tokenizer, tokenizer_hash, train_tokenizer

RUNS = Path("runs/pretrain")
CACHE = Path("runs/cache")
# Settings that may differ between a run and its --resume: they say when it ends, not what it is.
_FREE_ON_RESUME = {"output", "resume", "max_steps", "max_minutes", "epochs", "device", "log_steps"}
# More text no longer changes a vocabulary, but takes memory (tokenizers#316).
_TOKENIZER_SAMPLE_TEXTS = 2_000_000


def main(settings: PretrainSettings) -> None:
    """Prepare the corpus, build or load the networks, train, write the run."""
    settings.check()
    device = choose_device(settings.device)
    started = time.perf_counter()
    directory = _resumed_directory(settings) if settings.resume else _new_directory(settings)
    source_hash = corpus_hash(settings.corpus)
    clean_directory = _prepare_clean_corpus(settings, source_hash)
    tokenizer = _prepare_tokenizer(settings, clean_directory, directory)
    print("tokenizing the corpus" if not settings.resume else "opening the corpus", flush=True)
    corpus = tokenize_corpus(
        clean_directory, tokenizer, max_length=settings.max_length, cache=CACHE / "tokenized"
    )
    torch.manual_seed(settings.seed)
    pair = _prepare_networks(settings, tokenizer, corpus)
    pair.to(device)
    optimizer = make_optimizer(pair, settings)
    progress = Progress()
    directory.mkdir(parents=True, exist_ok=True)
    save_tokenizer(tokenizer, directory / "state" / "tokenizer")
    if settings.resume:
        progress = load_state(directory / "state", pair, optimizer, print)
        print(f"resumed at step {progress.step:,} of {directory}")
    record = _describe(settings, source_hash, clean_directory, tokenizer, corpus, pair, device)
    _write_record(directory, record | {"status": "running"})
    if not settings.resume:
        save_state(directory / "state", pair, optimizer, progress)
    _announce(settings, corpus, pair, device)
    with Monitor(directory, log_steps=settings.log_steps, first_step=progress.step) as monitor:
        finished = train(
            pair, optimizer, corpus, tokenizer, settings, progress, directory, device, monitor
        )
    if not finished:
        return
    save_state(directory / "state", pair, optimizer, progress)
    _save_networks(directory, pair, tokenizer)
    record |= {
        "status": "finished",
        "progress": dataclasses.asdict(progress),
        "final_metrics": monitor.last,
        "warnings": monitor.warnings,
        # Kilobytes on Linux; of the process, mapped files included.
        "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "finished_at": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    _write_record(directory, record)
    print(
        f"{progress.tokens:,} tokens in {progress.step:,} steps, "
        f"{time.perf_counter() - started:,.0f} s in all -> {directory}/discriminator"
    )


def _new_directory(settings: PretrainSettings) -> Path:
    if settings.output is not None:
        directory = settings.output
    else:
        name = settings.corpus.name.split(".")[0]
        directory = RUNS / f"{name}-{settings.preset}-{datetime.now():%Y%m%d-%H%M%S}"
    if directory.exists() and any(directory.iterdir()):
        raise InputError(
            f"expected a new directory for --output, found {directory} in use; "
            "go on with --resume, or name another"
        )
    return directory


def _resumed_directory(settings: PretrainSettings) -> Path:
    """The unfinished run to go on with, after checking that it is the same run."""
    if settings.output is not None:
        candidates = [settings.output]
    else:
        candidates = sorted(
            (path.parent for path in RUNS.glob("*/run.json")),
            key=lambda path: (path / "run.json").stat().st_mtime,
            reverse=True,
        )
    for directory in candidates:
        record_file = directory / "run.json"
        if not record_file.is_file() or not has_state(directory / "state"):
            continue
        record = json.loads(record_file.read_text())
        if record["status"] == "finished":
            if settings.output is not None:
                raise InputError(
                    f"expected an unfinished run to resume, found {directory} complete; "
                    f"go on from its weights with --init {directory}"
                )
            continue
        if settings.output is None and record["settings"]["corpus"] != str(settings.corpus):
            continue
        for name, value in _as_json(settings).items():
            before = record["settings"].get(name)
            if name not in _FREE_ON_RESUME and before != value:
                raise InputError(
                    f"expected the settings of {directory} for --resume, found "
                    f"--{name.replace('_', '-')} {value} where the run has {before}; "
                    "give the same flags, or start a new run"
                )
        return directory
    where = settings.output or f"{RUNS} for --corpus {settings.corpus}"
    raise InputError(
        f"expected an unfinished run to resume, found none in {where}; run without --resume"
    )


def _prepare_clean_corpus(settings: PretrainSettings, source_hash: str) -> Path:
    cleaning = CleaningSettings()
    key = json.dumps([source_hash, settings.text_column, dataclasses.asdict(cleaning)])
    directory = CACHE / "clean" / hashlib.sha256(key.encode()).hexdigest()[:16]
    if not directory.is_dir():
        print(f"reading and cleaning {settings.corpus}", flush=True)
        records = iter_records(settings.corpus, text_column=settings.text_column)
        write_clean_corpus(records, directory, cleaning)
    report = json.loads((directory / "report.json").read_text())
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in report["dropped"].items())
    print(f"{report['kept']:,} of {report['read']:,} texts kept (dropped: {dropped or 'none'})")
    return directory


def _prepare_tokenizer(
    settings: PretrainSettings, clean_directory: Path, directory: Path
) -> PreTrainedTokenizerFast:
    if settings.resume:
        return load_tokenizer(directory / "state" / "tokenizer")
    if settings.tokenizer is not None:
        return load_tokenizer(settings.tokenizer)
    if _continues(settings):
        # Embeddings mean nothing without the tokenizer they were learnt with.
        return load_tokenizer(Path(settings.init) / "discriminator")
    print("training a tokenizer", flush=True)
    texts = (
        text
        for number, text in enumerate(iter_clean_texts(clean_directory))
        if number < _TOKENIZER_SAMPLE_TEXTS
    )
    return train_tokenizer(texts, vocab_size=settings.vocab_size)


def _continues(settings: PretrainSettings) -> bool:
    return settings.init not in ("random", "skip-gram")


def _prepare_networks(
    settings: PretrainSettings, tokenizer: PreTrainedTokenizerFast, corpus: TokenizedCorpus
) -> ElectraPair:
    if _continues(settings):
        pair = load_pair(settings.init)
        if pair.discriminator.config.vocab_size < len(tokenizer):
            raise InputError(
                f"expected a tokenizer of at most {pair.discriminator.config.vocab_size} entries "
                f"for --init {settings.init}, found {len(tokenizer)}; leave --tokenizer out"
            )
        return pair
    pair = build_pair(PRESETS[settings.preset], tokenizer)
    if settings.init == "skip-gram" and not settings.resume:
        began = time.perf_counter()
        count = warm_start_embeddings(
            pair, corpus, seed=settings.seed, report=lambda line: print(line, flush=True)
        )
        print(f"skip-gram: {count:,} word pieces in {time.perf_counter() - began:.0f} s")
    return pair


def _as_json(settings: PretrainSettings) -> dict[str, object]:
    values = dataclasses.asdict(settings)
    return {key: str(v) if isinstance(v, Path) else v for key, v in values.items()}


def _describe(
    settings: PretrainSettings,
    source_hash: str,
    clean_directory: Path,
    tokenizer: PreTrainedTokenizerFast,
    corpus: TokenizedCorpus,
    pair: ElectraPair,
    device: torch.device,
) -> dict[str, object]:
    """What run.json says of a run before it is finished."""
    return {
        "settings": _as_json(settings),
        "learning_rate": peak_learning_rate(settings),
        "planned_steps": planned_steps(settings, corpus),
        "corpus_sha256": source_hash,
        "cleaning": json.loads((clean_directory / "report.json").read_text()),
        "corpus_sequences": len(corpus),
        "corpus_tokens": corpus.num_tokens,
        "tokenizer_hash": tokenizer_hash(tokenizer),
        "vocab_size": len(tokenizer),
        "parameters": {
            "discriminator": pair.discriminator.num_parameters(),
            "generator": pair.generator.num_parameters(),
            "both_shared_counted_once": pair.num_parameters(),
        },
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "bf16": has_native_bf16(device),
        "versions": {
            name: version(name) for name in ("torch", "transformers", "tokenizers", "gensim")
        },
    }


def _announce(
    settings: PretrainSettings, corpus: TokenizedCorpus, pair: ElectraPair, device: torch.device
) -> None:
    steps = planned_steps(settings, corpus)
    length = f"{steps:,} steps" if steps is not None else f"{settings.max_minutes:g} minutes"
    print(
        f"pre-training: {corpus.num_tokens:,} tokens in {len(corpus):,} sequences, "
        f"{pair.num_parameters() / 1e6:.1f}M parameters, {length}, {device.type} "
        f"{'bf16' if has_native_bf16(device) else 'fp32'}",
        flush=True,
    )


def _save_networks(directory: Path, pair: ElectraPair, tokenizer: PreTrainedTokenizerFast) -> None:
    """Both networks under a temporary name, then two renames: no reader sees half a model."""
    scratch = directory / ".networks.tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        pair.save_networks(scratch, tokenizer)
        for name in ("generator", "discriminator"):
            shutil.rmtree(directory / name, ignore_errors=True)
            (scratch / name).rename(directory / name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_record(directory: Path, record: dict[str, object]) -> None:
    scratch = directory / ".run.json.tmp"
    scratch.write_text(json.dumps(record, ensure_ascii=False, indent=2), encoding="utf-8")
    scratch.rename(directory / "run.json")


if __name__ == "__main__":
    sys.exit(
        run_command(
            PretrainSettings,
            main,
            "Pre-train an ELECTRA from scratch on Korean text (replaced-token detection), "
            "or go on from a checkpoint with --init DIR.",
        )
    )
