"""What a plan begins with: the tokenizer and the networks, built or loaded."""

import time
from pathlib import Path
from typing import Any

import torch
from transformers import ElectraForMaskedLM, PreTrainedTokenizerFast

from malmoi.errors import InputError
from malmoi.model_folders import discriminator_folder
from malmoi.pretrain.config.run_config import RunConfig
from malmoi.pretrain.config.run_plan import RunPlan
from malmoi.pretrain.config.settings import FROM_NOTHING, PRESETS
from malmoi.pretrain.data.tokenized import TokenizedCorpus
from malmoi.pretrain.engine.run_directory import known_sharing, learnt_with_generator
from malmoi.pretrain.model.init import (
    check_positions,
    new_generator_size,
    preset_of,
    starting_directory,
)
from malmoi.pretrain.model.initializers import draw_as_papers_code
from malmoi.pretrain.model.networks import (
    ElectraPair,
    PairShape,
    build_pair,
    check_generator_size,
    load_network,
    load_pair,
)
from malmoi.pretrain.model.word_vectors import warm_start_embeddings
from malmoi.pretrain.objectives.registry import resolve_recipe
from malmoi.pretrain.plan import Checkpoint
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.tokenizer_folders import tokenizer_hash


def look_at_start(config: RunConfig) -> Checkpoint | None:
    """What is known of the networks to go on from, nothing loaded; None where there are none.

    Raises:
        InputError: they are not there, or the generator cannot have the size that is given.
    """
    preset = config.flags.preset or "tiny"
    start = starting_directory(config.init, config.flags.revision) if config.continues else None
    new_size = PRESETS[preset].generator_size if start is None else new_generator_size(start)
    shape = PairShape(
        sharing=config.sharing,
        generator_size=config.generator_size(new_size),
        generator_layers=config.keys.generator.layers,
        one_size=config.keys.objective.schedule == "two-stage",
    )
    if start is None:
        check_generator_size(PRESETS[preset], shape)
        return None
    check_generator_size(start, shape, asked=config.asks_for("generator.size"))
    preset = preset_of(start)
    check_positions(discriminator_folder(start), config.max_length)
    generator, own = start / "generator", config.keys.generator.init
    if config.objective.needs_generator and own is None and generator.is_dir():
        check_positions(generator, config.max_length)
    return Checkpoint(
        preset=preset,
        has_generator=generator.is_dir(),
        sharing=known_sharing(start),
        learnt_with_generator=learnt_with_generator(start),
        generator_size=new_size,
    )


def given_tokenizer(config: RunConfig) -> PreTrainedTokenizerFast | None:
    """The tokenizer of a new run, the flag's or the checkpoint's; None if one has to be trained.

    Raises:
        InputError: it cannot be read, or a frozen generator is of another one.
    """
    given, frozen = None, config.keys.generator.init
    if config.flags.tokenizer is not None:
        given = load_pretraining_tokenizer(config.flags.tokenizer)
    elif config.continues:
        start = starting_directory(config.init, config.flags.revision)
        given = load_pretraining_tokenizer(discriminator_folder(start))
    if frozen is None:
        return given
    check_positions(frozen / "generator", config.max_length)
    theirs = load_pretraining_tokenizer(frozen / "generator")
    if given is not None and tokenizer_hash(given) != tokenizer_hash(theirs):
        flag = "--tokenizer" if config.flags.tokenizer is not None else "--init"
        raise InputError(
            f"expected {flag} with the tokenizer of the generator in {frozen}, "
            f"found another one: its samples would be other words; leave {flag} out, or give a "
            "generator of the same tokenizer"
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
            f"expected the generator in {folder} with as many entries as the discriminator "
            f"has, {ours:,}, found {theirs:,}; resize its embeddings to {ours:,}"
        )


def _check_vocabulary(network: Any, tokenizer: PreTrainedTokenizerFast, source: str) -> None:
    known = network.config.vocab_size
    if known < len(tokenizer):
        raise InputError(
            f"expected a tokenizer of at most {known} entries in {source}, found "
            f"{len(tokenizer)}; its tokenizer belongs to another model"
        )
