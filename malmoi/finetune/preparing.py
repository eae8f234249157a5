"""From the flags to what all trainings of a run share, and to its plan."""

import hashlib
import sys
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import PreTrainedModel

from malmoi.devices import choose_device
from malmoi.finetune.baselines.llm import check_llm
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.folds import SplitTexts
from malmoi.finetune.data.rare_labels import LEAST_KEPT
from malmoi.finetune.plan import Found, KfoldPlan, plan, plan_folds
from malmoi.finetune.report.files import package_versions
from malmoi.finetune.run_config import KfoldConfig
from malmoi.finetune.run_texts import data_plan, model_name, read_texts, split_texts
from malmoi.finetune.settings import LlmSettings, TrainSettings
from malmoi.finetune.training.cross_validation import Experiment
from malmoi.finetune.training.encoders import load_encoder_tokenizer, load_for_classification
from malmoi.finetune.training.fit import TrainingData, hidden_size
from malmoi.finetune.training.starting_model import (
    StartingModel,
    find_starting_model,
    without_learnt,
)
from malmoi.finetune.training.subword_dropout import word_pieces_of
from malmoi.finetune.training.tokenizer_warnings import tokenizer_warnings
from malmoi.inference.batching import tokenize_all
from malmoi.text.reading.notes import ReadingNotes
from malmoi.transformers_models import longest_input, takes_token_types
from malmoi.workers.local import machine_memory


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run that can begin.

    Attributes:
        plan: every number of it.
        examples: the texts.
        llm: the chat model to compare with, with the task's prompt where none was given.
        left_out: how many were not taken because the classifier to begin with has learnt them.
        notes: how the files were read.
        starting: what the trainings start from.
        split: which texts are in which fold.
        experiment: what they share.
        parameters: of the model.
        identity: all that the numbers depend on, as JSON; equal identities, equal folds.
    """

    plan: KfoldPlan
    examples: Examples
    llm: LlmSettings
    left_out: int
    notes: ReadingNotes
    starting: StartingModel
    split: SplitTexts
    experiment: Experiment
    parameters: int
    identity: dict[str, Any]


def prepare(config: KfoldConfig) -> Prepared:
    """Read texts and encoder, plan, tokenize and make the folds.

    Raises:
        InputError: what was given cannot be used.
    """
    flags, keys = config.flags, config.keys
    device = choose_device(flags.device)
    found, notes = read_texts(config)
    starting = find_starting_model(flags.model, keys.start, len(found.texts))
    kept = min(flags.folds, LEAST_KEPT) if flags.rare == "keep" else flags.folds
    examples = without_learnt(found, starting, kept)
    split = split_texts(examples, plan_folds(config))
    llm = replace(keys.llm, prompt=config.source.prompt(keys.llm.prompt))
    if llm.model is not None:
        check_llm(llm, examples.labels)
    tokenizer = load_encoder_tokenizer(starting.source)
    untrained = load_for_classification(
        starting.source,
        examples.labels,
        dropout=keys.training.dropout,
        seed=flags.seed,
        random_weights=keys.start.random_weights,
        tokenizer=tokenizer,
        task=flags.task,
        keep_head=starting.keep_head,
    )
    parameters = sum(parameter.numel() for parameter in untrained.parameters())
    decided = plan(
        config,
        Found(
            data=data_plan(examples),
            model=model_name(keys.start.continue_from or flags.model or "", starting.source),
            keep_head=starting.keep_head,
            hidden_size=hidden_size(untrained),
            longest_input=longest_input(untrained, tokenizer),
            parameters=parameters,
            device=device.type,
            threads=torch.get_num_threads(),
            memory=machine_memory(),
        ),
    )
    read, asked = decided.training.max_length, keys.training.max_length
    if asked > max(read, TrainSettings.max_length):
        print(
            f"warning: {decided.encoder.model} reads {read} tokens, not the {asked} of "
            "--max-length: behind them it has learnt no positions; longer texts are predicted in "
            "windows",
            file=sys.stderr,
            flush=True,
        )
    experiment = _experiment(
        *(decided, examples, split, starting, tokenizer, untrained), device=flags.device
    )
    return Prepared(
        plan=decided,
        examples=examples,
        llm=llm,
        left_out=len(found.texts) - len(examples.texts),
        notes=notes,
        starting=starting,
        split=split,
        experiment=experiment,
        parameters=parameters,
        identity=_identity(decided, experiment, untrained),
    )


def _experiment(
    decided: KfoldPlan,
    examples: Examples,
    split: SplitTexts,
    starting: StartingModel,
    tokenizer: Any,
    untrained: PreTrainedModel,
    *,
    device: str,
) -> Experiment:
    """Texts as tokens, in folds, and what each training needs besides."""
    training = decided.training
    # The tokenizer remembers the length for later predictions.
    tokenizer.model_max_length = training.max_length
    for warning in tokenizer_warnings(tokenizer, examples.texts):
        print(f"warning: {warning}", file=sys.stderr, flush=True)
    tokens = tokenize_all(tokenizer, examples.texts, training.max_length, pairs=examples.pairs)
    if not takes_token_types(untrained):
        tokens = replace(tokens, second_from=None)
        # So that nobody who loads the classifier gives it any.
        tokenizer.model_input_names = [
            name for name in tokenizer.model_input_names if name != "token_type_ids"
        ]
    return Experiment(
        source=starting.source,
        random_weights=decided.encoder.random_weights,
        tokenizer=tokenizer,
        data=TrainingData(
            task=decided.data.task,
            labels=examples.labels,
            tokens=tokens,
            targets=examples.targets,
            strata=split.strata,
            groups=split.groups,
            word_pieces=word_pieces_of(tokenizer) if training.subword_dropout else None,
            keep_head=starting.keep_head,
        ),
        training=training,
        folds=split.folds,
        fold_of=split.fold_of,
        keep_head=starting.keep_head,
        device=device,
    )


def _identity(
    decided: KfoldPlan, experiment: Experiment, untrained: PreTrainedModel
) -> dict[str, Any]:
    """All that the numbers depend on; finished folds of a run with an equal one are kept."""
    weights = hashlib.sha256()
    for name, value in sorted(untrained.state_dict().items()):
        weights.update(name.encode())
        weights.update(value.contiguous().numpy().data)
    folds = hashlib.sha256(b"".join(part.tobytes() for part in experiment.fold_of.values()))
    return {
        **decided.deciding(),
        "weights_sha256": weights.hexdigest(),
        "tokens_sha256": hashlib.sha256(experiment.data.tokens.flat.data).hexdigest(),
        "folds_sha256": folds.hexdigest(),
        "versions": package_versions(),
    }
