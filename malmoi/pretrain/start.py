"""What a plan begins with: the tokenizer and the networks, built or loaded."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import ElectraForMaskedLM, PreTrainedTokenizerFast

from malmoi.errors import InputError
from malmoi.model_folders import discriminator_folder
from malmoi.pretrain.config.defaults import FROM_NOTHING, PRESETS
from malmoi.pretrain.config.run_config import RunConfig
from malmoi.pretrain.config.run_plan import RunPlan
from malmoi.pretrain.data.tokenized import TokenizedCorpus
from malmoi.pretrain.engine.run_directory import known_sharing, learnt_with_generator
from malmoi.pretrain.model.initializers import draw_as_papers_code
from malmoi.pretrain.model.networks import (
    ElectraPair,
    PairShape,
    build_pair,
    check_generator_size,
    load_network,
    load_pair,
)
from malmoi.pretrain.model.starting_checkpoint import (
    check_positions,
    discriminator_config,
    new_generator_size,
    preset_of,
    starting_directory,
)
from malmoi.pretrain.model.word_vectors import warm_start_embeddings
from malmoi.pretrain.objectives.registry import resolve_recipe
from malmoi.pretrain.plan import Checkpoint
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.transformers_models import tokenizer_hash


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a new run begins with, found and looked at once; networks are not loaded yet."""

    directory: Path | None = None
    """Of the networks to go on from; None: they are new."""
    checkpoint: Checkpoint | None = None
    """What is known of these."""
    tokenizer: PreTrainedTokenizerFast | None
    """The flag's, the checkpoint's or the frozen generator's; None: one has to be trained."""


def find_start(config: RunConfig) -> Start:
    """Find what `--init`, `--tokenizer` and `generator.init` name.

    Raises:
        InputError: it is not there or cannot be read, the generator cannot have the size that is
            given, or a frozen generator is of another tokenizer.
    """
    if not config.continues:
        preset = PRESETS[config.flags.preset or "tiny"]
        check_generator_size(preset, _wanted_shape(config, preset.generator_size))
        given = config.flags.tokenizer
        known = None if given is None else load_pretraining_tokenizer(given)
        return Start(tokenizer=_tokenizer_of_both(config, known))
    directory = starting_directory(config.init, config.flags.revision)
    discriminator, generator = discriminator_config(directory), directory / "generator"
    size = new_generator_size(discriminator, has_generator=generator.is_dir())
    shape = _wanted_shape(config, size)
    check_generator_size(directory, shape, asked=config.asks_for("generator.size"))
    check_positions(discriminator_folder(directory), config.max_length)
    own = config.keys.generator.init
    if config.objective.needs_generator and own is None and generator.is_dir():
        check_positions(generator, config.max_length)
    known = load_pretraining_tokenizer(discriminator_folder(directory))
    return Start(
        directory=directory,
        checkpoint=Checkpoint(
            preset=preset_of(discriminator),
            has_generator=generator.is_dir(),
            sharing=known_sharing(directory),
            learnt_with_generator=learnt_with_generator(directory),
            generator_size=size,
        ),
        tokenizer=_tokenizer_of_both(config, known),
    )


def _wanted_shape(config: RunConfig, new_size: float) -> PairShape:
    return PairShape(
        sharing=config.sharing,
        generator_size=config.generator_size(new_size),
        generator_layers=config.keys.generator.layers,
        one_size=config.objective.schedule == "two-stage",
    )


def _tokenizer_of_both(
    config: RunConfig, given: PreTrainedTokenizerFast | None
) -> PreTrainedTokenizerFast | None:
    """The tokenizer that was given and that of a frozen generator, which have to be one."""
    frozen = config.keys.generator.init
    if frozen is None:
        return given
    check_positions(frozen / "generator", config.max_length)
    theirs = load_pretraining_tokenizer(frozen / "generator")
    if given is not None and tokenizer_hash(given) != tokenizer_hash(theirs):
        flag = "--tokenizer" if config.flags.tokenizer is not None else "--init"
        raise InputError(
            "expected {flag} with the tokenizer of the generator in {frozen}, found another one: "
            "its samples would be other words; leave {flag} out, or give a generator of the same "
            "tokenizer",
            flag=flag,
            frozen=frozen,
        )
    return theirs


def shape_of(plan: RunPlan) -> PairShape:
    """What the networks of a plan are built with."""
    return resolve_recipe(plan.objective).pair_shape(
        sharing=plan.networks.sharing,
        generator_size=plan.networks.generator_size,
        generator_layers=plan.networks.generator_layers,
    )


def make_networks(
    plan: RunPlan,
    tokenizer: PreTrainedTokenizerFast,
    corpus: TokenizedCorpus | None = None,
) -> ElectraPair:
    """The networks of a plan, as they begin under its seed.

    Args:
        corpus: to count word vectors on, where a run begins; None where the weights of a
            checkpoint will take their place.

    Raises:
        InputError: what the plan names is gone, or is of another vocabulary.
    """
    start = plan.start
    torch.manual_seed(start.seed)
    if start.init in FROM_NOTHING:
        pair = build_pair(plan.networks.sizes(), tokenizer, shape=shape_of(plan))
        if plan.networks.initializer == "truncated":
            draw_as_papers_code(pair)
    else:
        pair = load_pair(starting_directory(start.init, start.revision), shape_of(plan))
        _check_vocabulary(pair.discriminator, tokenizer, start.init)
    if corpus is not None:
        _begin(pair, plan, corpus)
    if start.generator is not None:  # last: a warm start must not change it
        _take_generator(pair, start.generator / "generator", tokenizer)
    return pair


def _begin(pair: ElectraPair, plan: RunPlan, corpus: TokenizedCorpus) -> None:
    init = plan.start.init
    if init == "word-vectors":
        began = time.perf_counter()
        count = warm_start_embeddings(pair, corpus, report=lambda line: print(line, flush=True))
        print(f"word vectors: {count:,} word pieces in {time.perf_counter() - began:.0f} s")
    elif init not in FROM_NOTHING and pair.generator and plan.networks.generator_size != 1:
        width = pair.generator.config.hidden_size
        if width == pair.discriminator.config.hidden_size:
            print(
                f"the generator in {init} is as wide as the discriminator ({width}); "
                "a copy of it without generator/ begins with a narrower, faster one",
                flush=True,
            )


def _take_generator(pair: ElectraPair, folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    pair.generator = load_network(folder, ElectraForMaskedLM)
    _check_vocabulary(pair.generator, tokenizer, str(folder))
    theirs, ours = (n.config.vocab_size for n in (pair.generator, pair.discriminator))
    if theirs != ours:
        raise InputError(
            "expected the generator in {folder} with as many entries as the discriminator has, "
            "{ours:,}, found {theirs:,}; resize its embeddings to {ours:,}",
            folder=folder,
            ours=ours,
            theirs=theirs,
        )


def _check_vocabulary(network: Any, tokenizer: PreTrainedTokenizerFast, source: str) -> None:
    known = network.config.vocab_size
    if known < len(tokenizer):
        raise InputError(
            "expected a tokenizer of at most {known} entries in {source}, found {entries}; its "
            "tokenizer belongs to another model",
            known=known,
            source=source,
            entries=len(tokenizer),
        )
