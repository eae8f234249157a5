"""A whole run of pre-training: inputs, networks, steps, and what is written at the end."""

import resource
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import ElectraForMaskedLM, PreTrainedTokenizerFast

from malmoi.command_line import Stopped, full_disk_line, is_full_disk
from malmoi.devices import attention_for, keep_freed_memory, matrix_dtype
from malmoi.errors import InputError
from malmoi.files import full_disk_as_oserror
from malmoi.model_folders import check_generator_files, discriminator_folder
from malmoi.tokenizer_folders import save_tokenizer, tokenizer_hash
from pretrain.config.objective import Sharing
from pretrain.config.settings import (
    PRESETS,
    Preset,
    PretrainSettings,
    batch_tokens,
    peak_learning_rate,
)
from pretrain.data.corpus import prepare_corpus, unknown_fraction
from pretrain.data.tokenized import TokenizedCorpus, open_tokenized
from pretrain.engine.checkpoint import TrainerState, load_state, save_state
from pretrain.engine.loop import (
    Trainer,
    collect_signals,
    compile_mode,
    compile_networks,
    make_objective,
    packs_rows,
    planned_steps,
    planned_tokens,
)
from pretrain.engine.monitor import Monitor
from pretrain.engine.optimizer import Optimizers
from pretrain.engine.processes import (
    Processes,
    join_processes,
    leave_processes,
    speaks_for_machine,
)
from pretrain.engine.run_directory import (
    as_it_was,
    changes,
    hold,
    known_sharing,
    learnt_with_generator,
    new_directory,
    recorded_replacements,
    resumed_directory,
    settings_as_json,
    write_networks,
    write_record,
)
from pretrain.model.cost import matrix_seconds, parameter_counts
from pretrain.model.init import (
    check_positions,
    preset_of,
    starting_directory,
    starting_sha256,
)
from pretrain.model.networks import (
    ElectraPair,
    PairShape,
    build_pair,
    check_generator_size,
    load_network,
    load_pair,
)
from pretrain.model.word_vectors import warm_start_embeddings
from pretrain.objectives.cost import matrix_shapes, paper_flops_per_token
from pretrain.objectives.registry import resolve_recipe
from tokenizer.loading import load_pretraining_tokenizer


def pretrain(settings: PretrainSettings) -> None:
    """Prepare the corpus, build or load the networks, train, write the run.

    Raises:
        InputError: a flag, an input or the loss is not as it should be.
        Stopped: a signal ended the run after a checkpoint.
        SystemExit: the same, in all but one of several processes, so that it is said once.
    """
    try:
        _run_in_processes(settings)
    except (InputError, Stopped) as error:
        if speaks_for_machine():
            raise
        code = 128 + error.number if isinstance(error, Stopped) else 2
        raise SystemExit(code) from None


def _run_in_processes(settings: PretrainSettings) -> None:
    settings.check()
    processes = join_processes(settings.device)
    started = time.perf_counter()
    prepared = None
    try:
        # Everything that can be wrong with the flags comes before the long work.
        settings = _with_preset(settings)
        compile_mode(settings, processes.device)
        prepared = processes.in_main(lambda: _prepare(settings, processes))
        told = processes.from_main((prepared.directory, prepared.record) if prepared else None)
        if prepared is None:
            prepared = _prepared_by_main(settings, *told)
        # What comes before the first step and after the last is short: signals wait for it.
        with prepared.hold, collect_signals() as received:
            _run(settings, prepared, processes, started, received)
    except OSError as error:
        # Run again without --resume, the command would begin another run.
        if prepared is None or not is_full_disk(error):
            raise
        raise InputError(full_disk_line(error, "go on with --resume")) from error
    finally:
        leave_processes()


@dataclass(kw_only=True)
class _Prepared:
    """What a process needs to begin: the inputs, and the networks as they start."""

    directory: Path
    tokenizer: PreTrainedTokenizerFast
    corpus: TokenizedCorpus
    pair: ElectraPair
    record: dict[str, Any]
    hold: AbstractContextManager[Any]


def _prepare(settings: PretrainSettings, processes: Processes) -> _Prepared:
    """In the main process: clean, tokenise, build, and write what the others will read."""
    directory, before = (
        resumed_directory(settings) if settings.resume else (new_directory(settings), {})
    )
    if settings.resume:
        settings = as_it_was(settings, before)
        if changed := changes(settings, before):
            print(f"resuming {directory} with {', '.join(changed)}", flush=True)
    corpus, tokenizer = prepare_corpus(settings, _given_tokenizer(settings, directory))
    torch.manual_seed(settings.seed)
    # [CLS] and [SEP] count as seen.
    tokens_an_epoch = corpus.num_tokens + 2 * len(corpus.lengths)
    planned = planned_tokens(settings, tokens_an_epoch, processes.device)
    start = starting_directory(settings.init, settings.revision)
    if settings.continues() and learnt_with_generator(start):
        planned = None  # it would forget what is hard
    decided = _as_recorded(settings, before).for_tokens(planned)
    if not before:
        decided = replace(decided, sharing=_sharing(decided))
    pair = _prepare_networks(decided, tokenizer, corpus)
    has_own = settings.continues() and (start / "generator").is_dir()
    if has_own and settings.schedule == "two-stage" and not before:
        print(
            f"the discriminator in {settings.init} will be replaced: after the first stage it "
            "starts from the generator beside it",
            flush=True,
        )
    record: dict[str, Any] = {"settings": settings_as_json(settings)}
    record |= _describe(decided, tokenizer, corpus, pair, processes)
    if settings.continues():  # of a resumed run, what it began with
        record["init_sha256"] = before.get("init_sha256") or starting_sha256(start)
    threads = before.get("threads", record["threads"])
    if processes.device.type == "cpu" and threads != record["threads"]:
        print(
            f"warning: the run had {threads} threads, found {record['threads']}: sums come out "
            "otherwise in the last bits; for the same weights to the bit set "
            f"OMP_NUM_THREADS={threads}",
            file=sys.stderr,
            flush=True,
        )
    for key in ("corpus_sha256", "tokenizer_hash", "corpus_tokens"):
        if before and before.get(key) != record[key]:
            raise InputError(
                f"cannot resume {directory}: its {key} is {before.get(key)}, found {record[key]}; "
                "the corpus has changed since, so start a new run"
            )
    holding = hold(directory, new=not settings.resume)
    if not settings.resume:
        with full_disk_as_oserror(directory):
            save_tokenizer(tokenizer, directory / "state" / "tokenizer")
    # Of a resumed run too: its next sitting goes on with what this one was given.
    write_record(directory, record | {"status": "running"})
    if not settings.resume:
        save_state(directory / "state", pair, Optimizers(pair, settings), TrainerState())
    return _Prepared(
        directory=directory,
        tokenizer=tokenizer,
        corpus=corpus,
        pair=pair,
        record=record,
        hold=holding,
    )


def _prepared_by_main(
    settings: PretrainSettings, directory: Path, record: dict[str, Any]
) -> _Prepared:
    """In the other processes: the same inputs, and networks for the checkpoint's weights."""
    corpus, tokenizer = open_tokenized(Path(record["tokenized_corpus"]))
    decided = replace(_as_recorded(settings, record), resume=True)
    return _Prepared(
        directory=directory,
        tokenizer=tokenizer,
        corpus=corpus,
        pair=_prepare_networks(decided, tokenizer, corpus),
        record=record,
        hold=nullcontext(),
    )


def _run(
    given: PretrainSettings,
    prepared: _Prepared,
    processes: Processes,
    started: float,
    received: Sequence[int],
) -> None:
    """Train in a directory that is ours alone, and write the result."""
    settings = _as_recorded(given, prepared.record)
    directory, pair, tokenizer = prepared.directory, prepared.pair, prepared.tokenizer
    device = processes.device
    pair.to(device)
    keep_freed_memory(device)
    pair.set_attention(attention_for(device))
    pair.set_dropout(settings.dropout)
    resolve_recipe(settings.recipe()).schedule.begin(pair)
    optimizers = Optimizers(pair, settings)
    # The main process first: it moves a damaged checkpoint away before the others look.
    state = directory / "state"
    loaded = processes.in_main(lambda: load_state(state, pair, optimizers, print))
    progress, average = loaded or load_state(
        state, pair, optimizers, lambda line: None, set_aside=False
    )
    steps = planned_steps(settings, prepared.corpus, device)
    clock = "since it was resumed" if progress.step else "in all"
    if processes.is_main:
        if progress.step:
            print(f"resumed at step {progress.step:,} of {directory}")
        _announce(settings, prepared.corpus, pair, processes, steps)
        if given.unigram_fraction is None and settings.unigram_fraction and not progress.step:
            print(
                "replacements: noise by word frequency, the default here; "
                "--unigram-fraction 0 trains a generator too, as the paper does",
                flush=True,
            )
    compiled = compile_networks(pair, settings, device)
    objective = make_objective(pair, prepared.corpus, tokenizer, settings, processes)
    trainer = Trainer(
        pair,
        optimizers,
        objective,
        settings,
        processes,
        progress,
        total_steps=steps,
        flops_per_token=prepared.record["paper_flops_per_token"],
        compiled=compiled,
    )
    trainer.average = average
    with Monitor(
        directory,
        log_steps=settings.log_steps,
        first_step=progress.step,
        recipe=settings.recipe(),
        processes=processes,
        warnings=progress.warnings,
    ) as monitor:
        if not trainer.run(prepared.corpus, tokenizer, directory, monitor, received):
            # Of several processes one may have been told by another.
            raise Stopped(received[0] if received else signal.SIGTERM)
        if not processes.is_main:
            return
        cost = _cost(settings, pair, trainer, processes)
        sizes = {
            f"{name}/{what}": number
            for name, counts in parameter_counts(pair).items()
            for what, number in counts.items()
        }
        monitor.add_cost(cost | {"parameters": pair.num_parameters()} | sizes)
    write_networks(directory, pair, tokenizer)
    write_record(
        directory,
        prepared.record
        | {
            "status": "finished",
            "progress": {k: v for k, v in asdict(progress).items() if k != "warnings"},
            "final_metrics": monitor.last,
            "cost": cost,
            "warnings": monitor.warnings,
            # Kilobytes on Linux; of the process, mapped files included.
            "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            "finished_at": datetime.now().astimezone().isoformat(timespec="seconds"),
        },
    )
    print(
        f"{progress.tokens:,} tokens in {progress.step:,} steps, "
        f"{time.perf_counter() - started:,.0f} s {clock} -> {directory}/discriminator"
    )


def _with_preset(settings: PretrainSettings) -> PretrainSettings:
    """Fill in the preset: that of the checkpoint to go on from, else tiny.

    Raises:
        InputError: the generator cannot have the size that the flags give it.
    """
    if not settings.continues():
        settings = replace(settings, preset=settings.preset or "tiny")
        check_generator_size(_preset(settings), _shape(settings))
        return settings
    if settings.tokenizer is not None:
        raise InputError(
            f"expected no --tokenizer with --init {settings.init}, found {settings.tokenizer}: "
            "embeddings mean nothing without the tokenizer they were learnt with"
        )
    start = starting_directory(settings.init, settings.revision)
    check_generator_size(start, _shape(settings))
    preset = preset_of(start)
    check_positions(discriminator_folder(start), settings.max_length)
    generator = start / "generator"
    if settings.recipe().needs_generator and not settings.generator_from and generator.is_dir():
        check_positions(generator, settings.max_length)
    # A checkpoint says how large it is; the flag still chooses learning rate and batch.
    return replace(settings, preset=settings.preset or preset)


def _as_recorded(settings: PretrainSettings, record: dict[str, Any]) -> PretrainSettings:
    """What a run has decided where no flag did: a resumed one must not decide otherwise.

    It may be on another device by then, or longer.
    """
    if not record:
        return settings
    if settings.resume:
        settings = as_it_was(settings, record)
    return replace(
        settings,
        batching="packed" if record["packed"] else "length",
        precision="bf16" if record["bf16"] else "fp32",
        sharing=record["sharing"],
        **recorded_replacements(record),
    )


def _sharing(settings: PretrainSettings) -> Sharing:
    """The flag, else what the networks to go on from have shared, else the default.

    A generator with embeddings of its own would lose them to the default.
    """
    default = settings.resolved_sharing()
    start = starting_directory(settings.init, settings.revision)
    has_own = settings.recipe().needs_generator and (start / "generator").is_dir()
    if settings.sharing is not None or default == "none" or not (settings.continues() and has_own):
        return default
    before = known_sharing(start)
    if before not in ("none", "word", "gdes"):
        return default  # "all" has left both the same embeddings
    return before if replace(settings, sharing=before).is_allowed() else "none"


def _given_tokenizer(settings: PretrainSettings, directory: Path) -> PreTrainedTokenizerFast | None:
    """The tokenizer of the run, the flag or the checkpoint; None if one has to be trained.

    Raises:
        InputError: it cannot be read, or a frozen generator is of another one.
    """
    if settings.generator_from is not None:  # a resumed run reads it, too
        check_generator_files(settings.generator_from)
    if settings.resume:
        return load_pretraining_tokenizer(directory / "state" / "tokenizer")
    given = None
    if settings.tokenizer is not None:
        given = load_pretraining_tokenizer(settings.tokenizer)
    elif settings.continues():
        given = load_pretraining_tokenizer(
            discriminator_folder(starting_directory(settings.init, settings.revision))
        )
    if settings.generator_from is None:
        return given
    check_positions(settings.generator_from / "generator", settings.max_length)
    theirs = load_pretraining_tokenizer(settings.generator_from / "generator")
    if given is not None and tokenizer_hash(given) != tokenizer_hash(theirs):
        flag = "--tokenizer" if settings.tokenizer is not None else "--init"
        raise InputError(
            f"expected {flag} with the tokenizer of the generator in {settings.generator_from}, "
            f"found another one: its samples would be other words; leave {flag} out, or give a "
            "generator of the same tokenizer"
        )
    return theirs


def _preset(settings: PretrainSettings) -> Preset:
    preset = PRESETS[settings.preset or "tiny"]
    if settings.initializer_range is None:
        return preset
    return replace(preset, initializer_range=settings.initializer_range)


def _shape(settings: PretrainSettings) -> PairShape:
    return resolve_recipe(settings.recipe()).pair_shape(
        sharing=settings.resolved_sharing(),
        generator_size=settings.generator_size,
        generator_layers=settings.generator_layers,
    )


def _prepare_networks(
    settings: PretrainSettings, tokenizer: PreTrainedTokenizerFast, corpus: TokenizedCorpus
) -> ElectraPair:
    shape = _shape(settings)
    if settings.continues():
        pair = load_pair(starting_directory(settings.init, settings.revision), shape)
        _check_vocabulary(pair.discriminator, tokenizer, settings.init)
        if pair.generator is not None and settings.generator_size != 1 and not settings.resume:
            width = pair.generator.config.hidden_size
            if width == pair.discriminator.config.hidden_size:
                print(
                    f"the generator in {settings.init} is as wide as the discriminator ({width}); "
                    "a copy of it without generator/ begins with a narrower, faster one",
                    flush=True,
                )
    else:
        pair = build_pair(_preset(settings), tokenizer, shape=shape)
    if settings.init == "word-vectors" and not settings.resume:
        began = time.perf_counter()
        count = warm_start_embeddings(pair, corpus, report=lambda line: print(line, flush=True))
        print(f"word vectors: {count:,} word pieces in {time.perf_counter() - began:.0f} s")
    if settings.generator_from is not None:
        folder = settings.generator_from / "generator"
        pair.generator = load_network(folder, ElectraForMaskedLM)
        _check_vocabulary(pair.generator, tokenizer, str(folder))
        theirs, ours = (n.config.vocab_size for n in (pair.generator, pair.discriminator))
        if theirs != ours:
            raise InputError(
                f"expected the generator in {folder} with as many entries as the discriminator "
                f"has, {ours:,}, found {theirs:,}; resize its embeddings to {ours:,}"
            )
    return pair


def _check_vocabulary(network: Any, tokenizer: PreTrainedTokenizerFast, source: str) -> None:
    known = network.config.vocab_size
    if known < len(tokenizer):
        raise InputError(
            f"expected a tokenizer of at most {known} entries in {source}, found "
            f"{len(tokenizer)}; its tokenizer belongs to another model"
        )


def _describe(
    settings: PretrainSettings,
    tokenizer: PreTrainedTokenizerFast,
    corpus: TokenizedCorpus,
    pair: ElectraPair,
    processes: Processes,
) -> dict[str, Any]:
    """What run.json says of a run before it is finished."""
    device = processes.device
    counts = parameter_counts(pair)
    generator = None if pair.generator is None else pair.generator.config
    return {
        "sharing": settings.resolved_sharing(),
        "unigram_fraction": settings.unigram_fraction,
        "bag_weight": settings.bag_weight,
        "correction_weight": settings.correction_weight,
        "learning_rate": peak_learning_rate(settings),
        "tokens_per_batch": batch_tokens(settings),
        "planned_steps": planned_steps(settings, corpus, device),
        "packed": packs_rows(settings, device),
        "corpus_sha256": corpus.facts["corpus_sha256"],
        "cleaning": corpus.facts["cleaning"],
        "corpus_sequences": len(corpus),
        "corpus_tokens": corpus.num_tokens,
        "tokenized_corpus": str(corpus.directory),
        "unknown_fraction": unknown_fraction(corpus, tokenizer),
        "tokenizer_hash": tokenizer_hash(tokenizer),
        "vocab_size": len(tokenizer),
        "networks": {
            name: {
                "num_hidden_layers": network.config.num_hidden_layers,
                "hidden_size": network.config.hidden_size,
                "embedding_size": network.config.embedding_size,
            }
            | counts[name]
            for name, network in pair.networks().items()
        },
        "parameters_shared_counted_once": pair.num_parameters(),
        "paper_flops_per_token": paper_flops_per_token(
            settings.recipe(),
            pair.discriminator.config,
            generator,
            float(corpus.lengths.mean()) + 2,
        ),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "processes": processes.world_size,
        "threads": torch.get_num_threads(),
        "bf16": matrix_dtype(device, settings.precision) == torch.bfloat16,
        "versions": {
            name: version(name) for name in ("torch", "transformers", "tokenizers", "scipy")
        },
    }


def _cost(
    settings: PretrainSettings, pair: ElectraPair, trainer: Trainer, processes: Processes
) -> dict[str, float]:
    """What the run cost, and how much of what the machine can do it used.

    The utilisation is operations in matrix products over those that the machine would do in the
    training time at the rate of the networks' own shapes, measured now.
    """
    progress = trainer.progress
    cost = {
        "paper_flops": progress.flops,
        "hardware_flops": progress.hardware_flops,
    }
    if progress.step == 0:
        return cost
    # Of a run that was killed after its last step there is no batch to ask.
    positions = (trainer.last_positions or batch_tokens(settings)) // processes.world_size
    masked = max(1, round(positions * settings.mask_fraction))
    dtype = matrix_dtype(processes.device, settings.precision)
    shapes = matrix_shapes(pair, settings.recipe(), positions, masked)
    _, rate = matrix_seconds(shapes, processes.device, dtype)
    cost["matrix_flops_per_second"] = rate
    if progress.hardware_flops and progress.seconds:
        available = progress.seconds * rate * processes.world_size
        cost["model_flops_utilization"] = cost["hardware_flops"] / available
    return cost


def _announce(
    settings: PretrainSettings,
    corpus: TokenizedCorpus,
    pair: ElectraPair,
    processes: Processes,
    steps: int | None,
) -> None:
    if steps is not None:
        length = f"{steps:,} steps"
    elif settings.max_tokens is not None:
        length = f"up to {settings.max_tokens:,.0f} tokens"
    elif settings.max_flops is not None:
        length = f"up to {settings.max_flops:.2e} operations"
    else:
        length = f"{settings.max_minutes:g} minutes"
    several = f" x {processes.world_size} processes" if processes.world_size > 1 else ""
    print(
        f"pre-training: {corpus.num_tokens:,} tokens in {len(corpus):,} sequences, "
        f"{pair.num_parameters() / 1e6:.1f}M parameters, {length}, {processes.device.type}"
        f"{several} {settings.precision}",
        flush=True,
    )
