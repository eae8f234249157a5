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
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from corpora.clean_corpus import corpus_hash, iter_clean_texts, write_clean_corpus
from corpora.clean_report import CleaningReport
from corpora.cleaning import CLEANER_VERSION, CleaningSettings
from corpora.command_line import run_command
from corpora.errors import InputError
from corpora.reading import iter_records
from pretrain.checkpoint import Progress, load_state, save_state
from pretrain.devices import attention_for, choose_device, has_native_bf16
from pretrain.loop import batch_tokens, make_optimizer, peak_learning_rate, planned_steps, train
from pretrain.monitor import Monitor
from pretrain.networks import ElectraPair, build_pair, load_pair, preset_of
from pretrain.run_directory import (
    hold,
    new_directory,
    resumed_directory,
    settings_as_json,
    write_record,
)
from pretrain.settings import PRESETS, PretrainSettings
from pretrain.tokenized import TokenizedCorpus, tokenize_corpus
from pretrain.warm_start import warm_start_embeddings
from tokenizer.sampling import sample_evenly
from tokenizer.training import load_tokenizer, tokenizer_hash, train_tokenizer

CACHE = Path("runs/cache")


def main(settings: PretrainSettings) -> None:
    """Prepare the corpus, build or load the networks, train, write the run."""
    settings.check()
    device = choose_device(settings.device)
    started = time.perf_counter()
    # Everything that can be wrong with the flags comes before the long work.
    settings = _with_preset(settings)
    directory, before = (
        resumed_directory(settings) if settings.resume else (new_directory(settings), {})
    )
    tokenizer = _given_tokenizer(settings, directory)
    source_hash = corpus_hash(settings.corpus)
    clean_directory = _prepare_clean_corpus(settings, source_hash)
    if tokenizer is None:
        print("training a tokenizer", flush=True)
        tokenizer = train_tokenizer(
            sample_evenly(iter_clean_texts(clean_directory)).texts, vocab_size=settings.vocab_size
        ).tokenizer
    print("tokenizing the corpus", flush=True)
    corpus = tokenize_corpus(
        clean_directory, tokenizer, max_length=settings.max_length, cache=CACHE / "tokenized"
    )
    torch.manual_seed(settings.seed)
    pair = _prepare_networks(settings, tokenizer, corpus).to(device)
    pair.set_attention(attention_for(device))
    record = _describe(settings, source_hash, clean_directory, tokenizer, corpus, pair, device)
    for key in ("corpus_sha256", "tokenizer_hash", "corpus_tokens"):
        if before and before.get(key) != record[key]:
            raise InputError(
                f"cannot resume {directory}: its {key} is {before.get(key)}, found {record[key]}; "
                "the corpus has changed since, so start a new run"
            )
    with hold(directory, new=not settings.resume):
        _run(settings, directory, record, pair, corpus, tokenizer, device, started)


def _run(
    settings: PretrainSettings,
    directory: Path,
    record: dict[str, Any],
    pair: ElectraPair,
    corpus: TokenizedCorpus,
    tokenizer: PreTrainedTokenizerFast,
    device: torch.device,
    started: float,
) -> None:
    """Train in a directory that is ours alone, and write the result."""
    optimizer = make_optimizer(pair, settings)
    progress = Progress()
    if settings.resume:
        progress = load_state(directory / "state", pair, optimizer, print)
        print(f"resumed at step {progress.step:,} of {directory}")
    else:
        tokenizer.save_pretrained(directory / "state" / "tokenizer")
        write_record(directory, record | {"status": "running"})
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
    write_record(directory, record)
    print(
        f"{progress.tokens:,} tokens in {progress.step:,} steps, "
        f"{time.perf_counter() - started:,.0f} s in all -> {directory}/discriminator"
    )


def _continues(settings: PretrainSettings) -> bool:
    return settings.init not in ("random", "skip-gram")


def _with_preset(settings: PretrainSettings) -> PretrainSettings:
    """Fill in the preset: that of the checkpoint to go on from, else tiny."""
    if not _continues(settings):
        return dataclasses.replace(settings, preset=settings.preset or "tiny")
    if settings.tokenizer is not None:
        raise InputError(
            f"expected no --tokenizer with --init {settings.init}, found {settings.tokenizer}: "
            "embeddings mean nothing without the tokenizer they were learnt with"
        )
    # A checkpoint says how large it is; the flag still chooses learning rate and batch.
    return dataclasses.replace(settings, preset=settings.preset or preset_of(settings.init))


def _given_tokenizer(settings: PretrainSettings, directory: Path) -> PreTrainedTokenizerFast | None:
    """The tokenizer of the run, the flag or the checkpoint; None if one has to be trained."""
    if settings.resume:
        return load_tokenizer(directory / "state" / "tokenizer")
    if settings.tokenizer is not None:
        return load_tokenizer(settings.tokenizer)
    if _continues(settings):
        return load_tokenizer(Path(settings.init) / "discriminator")
    return None


def _prepare_clean_corpus(settings: PretrainSettings, source_hash: str) -> Path:
    cleaning = CleaningSettings()
    key = [source_hash, settings.text_column, dataclasses.asdict(cleaning), CLEANER_VERSION]
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    directory = CACHE / "clean" / name
    if not directory.is_dir():
        print(f"reading and cleaning {settings.corpus}", flush=True)
        records = iter_records(settings.corpus, text_column=settings.text_column)
        write_clean_corpus(records, directory, cleaning)
    print(CleaningReport.read_from(directory).summary())
    return directory


def _prepare_networks(
    settings: PretrainSettings, tokenizer: PreTrainedTokenizerFast, corpus: TokenizedCorpus
) -> ElectraPair:
    if _continues(settings):
        pair = load_pair(settings.init)
        known = pair.discriminator.config.vocab_size
        if known < len(tokenizer):
            raise InputError(
                f"expected a tokenizer of at most {known} entries in {settings.init}, found "
                f"{len(tokenizer)}; its tokenizer belongs to another model"
            )
        return pair
    pair = build_pair(PRESETS[settings.preset or "tiny"], tokenizer, dropout=settings.dropout)
    if settings.init == "skip-gram" and not settings.resume:
        began = time.perf_counter()
        count = warm_start_embeddings(
            pair, corpus, seed=settings.seed, report=lambda line: print(line, flush=True)
        )
        print(f"skip-gram: {count:,} word pieces in {time.perf_counter() - began:.0f} s")
    return pair


def _describe(
    settings: PretrainSettings,
    source_hash: str,
    clean_directory: Path,
    tokenizer: PreTrainedTokenizerFast,
    corpus: TokenizedCorpus,
    pair: ElectraPair,
    device: torch.device,
) -> dict[str, Any]:
    """What run.json says of a run before it is finished."""
    report = (clean_directory / "report.json").read_text(encoding="utf-8")
    return {
        "settings": settings_as_json(settings),
        "learning_rate": peak_learning_rate(settings),
        "tokens_per_batch": batch_tokens(settings),
        "planned_steps": planned_steps(settings, corpus),
        "corpus_sha256": source_hash,
        "cleaning": json.loads(report),
        "corpus_sequences": len(corpus),
        "corpus_tokens": corpus.num_tokens,
        "tokenizer_hash": tokenizer_hash(tokenizer),
        "vocab_size": len(tokenizer),
        "networks": {
            name: {
                "num_hidden_layers": network.config.num_hidden_layers,
                "hidden_size": network.config.hidden_size,
                "embedding_size": network.config.embedding_size,
                "parameters": network.num_parameters(),
            }
            for name, network in (
                ("discriminator", pair.discriminator),
                ("generator", pair.generator),
            )
        },
        "parameters_shared_counted_once": pair.num_parameters(),
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


if __name__ == "__main__":
    sys.exit(
        run_command(
            PretrainSettings,
            main,
            "Pre-train an ELECTRA from scratch on Korean text (replaced-token detection), "
            "or go on from a checkpoint with --init DIR.",
        )
    )
