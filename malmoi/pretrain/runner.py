"""A whole run of pre-training: inputs, networks, steps, and what is written at the end."""

import resource
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from malmoi.command_line import Stopped, full_disk_error, is_full_disk
from malmoi.devices import attention_for, keep_freed_memory, matrix_dtype, prefers_bf16
from malmoi.errors import InputError
from malmoi.files import full_disk_as_oserror
from malmoi.model_folders import check_generator_files
from malmoi.pretrain.config.defaults import PRESETS
from malmoi.pretrain.config.run_config import RunConfig
from malmoi.pretrain.config.run_plan import RunPlan
from malmoi.pretrain.config.stacking import mean_part
from malmoi.pretrain.data.corpus import prepare_corpus, unknown_fraction
from malmoi.pretrain.data.tokenized import TokenizedCorpus, is_tokenized, open_tokenized
from malmoi.pretrain.engine.checkpoint import TrainerState, load_state, progress_found, save_state
from malmoi.pretrain.engine.loop import Trainer, collect_signals, compile_networks, make_objective
from malmoi.pretrain.engine.monitor import Monitor
from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.engine.processes import (
    Processes,
    join_processes,
    leave_processes,
    speaks_for_machine,
)
from malmoi.pretrain.engine.run_directory import (
    Resumed,
    hold,
    new_directory,
    resumed_directory,
    trained_length,
    write_networks,
    write_record,
)
from malmoi.pretrain.model.cost import matrix_seconds, parameter_counts
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.model.starting_checkpoint import starting_sha256
from malmoi.pretrain.objectives.cost import matrix_shapes, paper_flops_per_token
from malmoi.pretrain.objectives.registry import resolve_recipe
from malmoi.pretrain.plan import (
    Checkpoint,
    Machine,
    plan,
    plan_corpus,
    plan_execution,
    plan_rows,
    preset_of_run,
)
from malmoi.pretrain.resuming import changes, check_not_passed, go_on
from malmoi.pretrain.start import find_start, make_networks
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.transformers_models import save_tokenizer, tokenizer_hash

_SAME_INPUTS = ("corpus_sha256", "tokenizer_hash", "corpus_tokens")


def pretrain(config: RunConfig) -> None:
    """Prepare the corpus, build or load the networks, train, write the run.

    Raises:
        InputError: a flag, an input or the loss is not as it should be.
        Stopped: a signal ended the run after a checkpoint.
        SystemExit: the same, in all but one of several processes, so that it is said once.
    """
    try:
        _run_in_processes(config)
    except (InputError, Stopped) as error:
        if speaks_for_machine():
            raise
        code = 128 + error.number if isinstance(error, Stopped) else 2
        raise SystemExit(code) from None


def _run_in_processes(config: RunConfig) -> None:
    processes = join_processes(config.flags.device)
    started = time.perf_counter()
    prepared = None
    try:
        prepared = processes.in_main(lambda: _prepare(config, processes))
        ours = (prepared.directory, prepared.plan, prepared.record) if prepared else None
        told = processes.from_main(ours)
        if prepared is None:
            prepared = _prepared_by_main(*told)
        # What comes before the first step and after the last is short: signals wait for it.
        with prepared.hold, collect_signals() as received:
            _run(prepared, processes, started, received)
    except OSError as error:
        # Run again without --resume, the command would begin another run.
        if prepared is None or not is_full_disk(error):
            raise
        raise full_disk_error(error, "go on with --resume") from error
    finally:
        leave_processes()


@dataclass(kw_only=True)
class _Prepared:
    """What a process needs to begin: the plan, the inputs, and the networks as they start."""

    directory: Path
    plan: RunPlan
    record: dict[str, Any]
    tokenizer: PreTrainedTokenizerFast
    corpus: TokenizedCorpus
    pair: ElectraPair
    hold: AbstractContextManager[Any]


def _prepare(config: RunConfig, processes: Processes) -> _Prepared:
    """In the main process: clean, tokenise, build, and write what the others will read."""
    machine = Machine(
        device=processes.device.type,
        prefers_bf16=prefers_bf16(processes.device),
        processes=processes.world_size,
        threads=torch.get_num_threads(),
    )
    if config.flags.resume:
        return _prepare_resumed(config, resumed_directory(config), machine, processes)
    # Everything that can be wrong with what is given comes before the long work.
    plan_execution(config, plan_rows(config, machine), machine, stacked=config.keys.model.stacked)
    start = find_start(config)
    preset = preset_of_run(config, start.checkpoint)
    directory = new_directory(config.flags.output, config.flags.corpus, preset)
    tokenized = is_tokenized(config.flags.corpus)
    what = plan_corpus(config, is_tokenized=tokenized)
    engine = config.keys.execution.cluster or "local"
    corpus, tokenizer = prepare_corpus(what, start.tokenizer, engine)
    planned = plan(
        config,
        lengths=corpus.lengths,
        checkpoint=start.checkpoint,
        machine=machine,
        is_tokenized=tokenized,
    )
    line = f"recipe {planned.start.recipe}, {planned.start.reason}"
    if 0 < (fading := planned.objective.unigram_fraction) < 1:
        line += ": replacements change from noise by word frequency to the generator's over the "
        line += f"first {fading:.0%} of the run"
    print(line, flush=True)
    if line := _preset_line(config, start.checkpoint):
        print(line, flush=True)
    pair = make_networks(planned, tokenizer, corpus)
    record: dict[str, Any] = {"plan": planned.as_json(), "given": config.as_json()}
    record |= _describe(planned, tokenizer, corpus, pair, processes)
    if start.directory is not None:
        record["init_sha256"] = starting_sha256(start.directory)
    holding = hold(directory, new=True)
    with full_disk_as_oserror(directory):
        save_tokenizer(tokenizer, directory / "state" / "tokenizer")
    write_record(directory, record | {"status": "running"})
    save_state(directory / "state", pair, Optimizers(pair, planned.optimizer), TrainerState())
    return _Prepared(
        directory=directory,
        plan=planned,
        record=record,
        tokenizer=tokenizer,
        corpus=corpus,
        pair=pair,
        hold=holding,
    )


def _prepare_resumed(
    config: RunConfig, resumed: Resumed, machine: Machine, processes: Processes
) -> _Prepared:
    """In the main process, of a run that goes on: the inputs that it had."""
    before, directory = resumed.plan, resumed.directory
    progress = progress_found(directory / "state") or TrainerState()
    # Refused before the long work.
    check_not_passed(before, go_on(config, before, lengths=None, machine=machine), progress)
    if before.start.generator is not None:
        check_generator_files(before.start.generator)
    tokenizer = load_pretraining_tokenizer(directory / "state" / "tokenizer")
    corpus, tokenizer = prepare_corpus(
        before.corpus, tokenizer, config.keys.execution.cluster or "local"
    )
    planned = go_on(config, before, lengths=corpus.lengths, machine=machine)
    check_not_passed(before, planned, progress)
    if changed := changes(before, planned):
        print(f"resuming {directory} with {', '.join(changed)}", flush=True)
    threads = before.execution.threads
    if machine.device == "cpu" and threads != machine.threads:
        print(
            f"warning: the run had {threads} threads, found {machine.threads}: sums come out "
            "otherwise in the last bits; for the same weights to the bit set "
            f"OMP_NUM_THREADS={threads}",
            file=sys.stderr,
            flush=True,
        )
    pair = make_networks(planned, tokenizer)
    record: dict[str, Any] = {"plan": planned.as_json(), "given": resumed.record.get("given", {})}
    record |= _describe(planned, tokenizer, corpus, pair, processes)
    if "init_sha256" in resumed.record:
        record["init_sha256"] = resumed.record["init_sha256"]
    for key in _SAME_INPUTS:
        if resumed.record.get(key) != record[key]:
            raise InputError(
                "cannot resume {directory}: its {key} is {before}, found {now}; the corpus has "
                "changed since, so start a new run",
                directory=directory,
                key=key,
                before=resumed.record.get(key),
                now=record[key],
            )
    holding = hold(directory, new=False)
    # Its next sitting goes on with what this one was given.
    write_record(directory, record | {"status": "running"})
    return _Prepared(
        directory=directory,
        plan=planned,
        record=record,
        tokenizer=tokenizer,
        corpus=corpus,
        pair=pair,
        hold=holding,
    )


def _prepared_by_main(directory: Path, planned: RunPlan, record: dict[str, Any]) -> _Prepared:
    """In the other processes: the same inputs, and networks for the checkpoint's weights."""
    corpus, tokenizer = open_tokenized(Path(record["tokenized_corpus"]))
    return _Prepared(
        directory=directory,
        plan=planned,
        record=record,
        tokenizer=tokenizer,
        corpus=corpus,
        pair=make_networks(planned, tokenizer),
        hold=nullcontext(),
    )


def _run(
    prepared: _Prepared, processes: Processes, started: float, received: Sequence[int]
) -> None:
    """Train in a directory that is ours alone, and write the result."""
    planned, directory, pair = prepared.plan, prepared.directory, prepared.pair
    pair.to(processes.device)
    keep_freed_memory(processes.device)
    pair.set_attention(attention_for(processes.device))
    pair.set_dropout(planned.networks.dropout)
    resolve_recipe(planned.objective).schedule.begin(pair)
    optimizers = Optimizers(pair, planned.optimizer)
    # The main process first: it moves a damaged checkpoint away before the others look.
    state = directory / "state"
    loaded = processes.in_main(lambda: load_state(state, pair, optimizers, print))
    progress, average = loaded or load_state(
        state, pair, optimizers, lambda line: None, set_aside=False
    )
    clock = "since it was resumed" if progress.step else "in all"
    if processes.is_main:
        if progress.step:
            print(f"resumed at step {progress.step:,} of {directory}")
        _announce(planned, prepared.corpus, pair, processes)
    compiled = compile_networks(pair, planned.execution, planned.batching.rows)
    trainer = Trainer(
        pair,
        optimizers,
        make_objective(
            pair,
            prepared.corpus,
            prepared.tokenizer,
            planned.objective,
            processes,
            planned.networks.precision,
        ),
        planned,
        processes,
        progress,
        flops_per_token=prepared.record["paper_flops_per_token"],
        compiled=compiled,
    )
    trainer.average = average
    with Monitor(
        directory,
        log_steps=planned.execution.log_steps,
        first_step=progress.step,
        recipe=planned.objective,
        processes=processes,
        warnings=progress.warnings,
    ) as monitor:
        if not trainer.run(prepared.corpus, prepared.tokenizer, directory, monitor, received):
            # A process may have been told by another one.
            raise Stopped(received[0] if received else signal.SIGTERM)
        if not processes.is_main:
            return
        cost = _cost(planned, pair, trainer, processes)
        sizes = {
            f"{name}/{what}": number
            for name, counts in parameter_counts(pair).items()
            for what, number in counts.items()
        }
        monitor.add_cost(cost | {"parameters": pair.num_parameters()} | sizes)
    _write_result(prepared, progress, monitor, cost)
    print(
        f"{progress.tokens:,} tokens in {progress.step:,} steps, "
        f"{time.perf_counter() - started:,.0f} s {clock} -> {directory}/discriminator"
    )


def _write_result(
    prepared: _Prepared, progress: TrainerState, monitor: Monitor, cost: dict[str, float]
) -> None:
    positions = prepared.pair.discriminator.config.max_position_embeddings
    trained = trained_length(prepared.plan, prepared.tokenizer, positions)
    write_networks(prepared.directory, prepared.pair, prepared.tokenizer, trained)
    write_record(
        prepared.directory,
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


def _describe(
    planned: RunPlan,
    tokenizer: PreTrainedTokenizerFast,
    corpus: TokenizedCorpus,
    pair: ElectraPair,
    processes: Processes,
) -> dict[str, Any]:
    """What run.json says beside the plan before the run is finished."""
    device = processes.device
    counts = parameter_counts(pair)
    generator = None if pair.generator is None else pair.generator.config
    return {
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
            planned.objective,
            pair.discriminator.config,
            generator,
            float(corpus.lengths.mean()) + 2,
            mean_part() if planned.networks.stacked else 1.0,
        ),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "versions": {
            name: version(name) for name in ("torch", "transformers", "tokenizers", "scipy")
        },
    }


def _cost(
    planned: RunPlan, pair: ElectraPair, trainer: Trainer, processes: Processes
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
    # A run that was killed after its last step has no batch to ask.
    positions = trainer.last_positions or planned.batching.tokens_per_batch
    positions //= processes.world_size
    masked = max(1, round(positions * planned.objective.mask_fraction))
    dtype = matrix_dtype(processes.device, planned.networks.precision)
    shapes = matrix_shapes(pair, planned.objective, positions, masked)
    _, rate = matrix_seconds(shapes, processes.device, dtype)
    cost["matrix_flops_per_second"] = rate
    if progress.hardware_flops and progress.seconds:
        available = progress.seconds * rate * processes.world_size
        cost["model_flops_utilization"] = cost["hardware_flops"] / available
    return cost


def _preset_line(config: RunConfig, checkpoint: Checkpoint | None) -> str:
    """What --preset says beside a checkpoint of another size, and what it does not; else empty."""
    flags = config.flags
    if checkpoint is None or flags.preset in (None, checkpoint.preset):
        return ""
    preset = PRESETS[flags.preset]
    taken = []
    if flags.learning_rate is None:
        taken.append(f"the learning rate {preset.learning_rate:g}")
    if flags.tokens_per_batch is None:
        taken.append(f"{preset.tokens_per_batch:,} tokens a batch")
    return (
        f"from --preset {flags.preset}: {' and '.join(taken) or 'nothing'}; the sizes of the "
        f"networks are those in --init {config.init}, which are nearest to {checkpoint.preset}"
    )


def _announce(
    planned: RunPlan, corpus: TokenizedCorpus, pair: ElectraPair, processes: Processes
) -> None:
    length = planned.length
    shown = {
        "max_steps": f"{length.amount:,.0f} steps",
        "max_tokens": f"up to {length.amount:,.0f} tokens",
        "max_flops": f"up to {length.amount:.2e} operations",
        "max_minutes": f"{length.amount:g} minutes",
    }[length.limit]
    several = f" x {processes.world_size} processes" if processes.world_size > 1 else ""
    print(
        f"pre-training: {corpus.num_tokens:,} tokens in {len(corpus):,} sequences, "
        f"{pair.num_parameters() / 1e6:.1f}M parameters, {shown}, {processes.device.type}"
        f"{several} {planned.networks.precision}",
        flush=True,
    )
