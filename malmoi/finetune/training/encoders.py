"""Find a pre-trained encoder and put a classification head on it: a new one, or a trained one."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    set_seed,
)

from malmoi.errors import InputError
from malmoi.inference.tasks import PROBLEM_TYPES, REGRESSION_LABELS, Task
from malmoi.labels.label_names import normal_label
from malmoi.messages import Phrase
from malmoi.model_folders import encoder_source
from malmoi.transformers_models import (
    check_vocabulary,
    complete_config,
    fill_token_types,
    load_model,
    load_tokenizer,
    loading,
)


def load_encoder_tokenizer(source: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of what `load_for_classification` loads from the same `source`."""
    return load_tokenizer(encoder_source(source))


def shape_of(source: str | Path) -> str:
    """The size of an encoder, such as `4 x 256, 32,000 entries`: what random weights go by.

    Raises:
        InputError: there is no configuration, or it cannot be read.
    """
    config = _config_of(encoder_source(source))
    return f"{config.num_hidden_layers} x {config.hidden_size}, {config.vocab_size:,} entries"


def _config_of(place: str) -> PreTrainedConfig:
    with loading(place, Phrase("the configuration")):
        config: PreTrainedConfig = AutoConfig.from_pretrained(place, trust_remote_code=False)
    return config


def load_for_classification(
    source: str | Path,
    labels: list[str],
    *,
    dropout: float = 0.1,
    seed: int = 42,
    random_weights: bool = False,
    tokenizer: PreTrainedTokenizerBase | None = None,
    task: Task = "single",
    keep_head: bool = False,
) -> PreTrainedModel:
    """The encoder of `source` with a new head for `labels`, in float32, on the CPU.

    Args:
        source: model directory, pre-training run, or Hub id.
        labels: names in the order of their ids.
        dropout: fraction, applied in the encoder and before the head.
        seed: of the new weights.
        random_weights: same shape, nothing loaded; the baseline that shows what pre-training adds.
        tokenizer: checked against the model's vocabulary when given.
        task: decides `problem_type`, and is noted in the configuration as `finetune_task`.
        keep_head: keep a finished classifier's; of its labels those that are in `labels`.

    Raises:
        InputError: no weights, damaged weights, or weights that leave more than the head new; with
            `keep_head`, no finished classifier of this task or without one of the labels.
    """
    place = encoder_source(source)
    config = complete_config(_config_of(place), Path(place))
    if getattr(config, "attention_type", None) == "block_sparse":
        # BigBird's own way for thousands of tokens; whole attention is the same, and in any format.
        config.attention_type = "original_full"
    if tokenizer is not None and config.pad_token_id is None:
        config.pad_token_id = tokenizer.pad_token_id  # a decoder finds the last token by it
    rows = _head_rows(config, labels, task, place) if keep_head else []
    if not keep_head:
        _name_labels(config, labels)
    _set_task(config, task, dropout)
    set_seed(seed)
    with loading(place, Phrase("the model")):
        if random_weights:
            model = AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
        else:
            model, report = load_model(
                AutoModelForSequenceClassification,
                place,
                Phrase("the model"),
                config=config,
                # A head of another task may have another number of labels; what may differ is
                # checked below.
                ignore_mismatched_sizes=not keep_head,
            )
            _check_only_head_is_new(model, report, place)
            if keep_head:
                _check_whole_head(report, place)
                _keep_rows(model, labels, rows, place)
            else:
                _renew_head(model, report, seed)
    if tokenizer is not None:
        check_vocabulary(model, tokenizer, place)
    return model


def labels_of(source: str | Path) -> list[str]:
    """The labels of a finished classifier; none of an encoder.

    Raises:
        InputError: there is no configuration, or it cannot be read.
    """
    config = _config_of(encoder_source(source))
    names = config.architectures or [""]
    return _own_labels(config) if str(names[0]).endswith("ForSequenceClassification") else []


def _own_labels(config: PreTrainedConfig) -> list[str]:
    return [normal_label(str(name)) for _, name in sorted((config.id2label or {}).items())]


def _name_labels(config: PreTrainedConfig, labels: list[str]) -> None:
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}


def _set_task(config: PreTrainedConfig, task: Task, dropout: float) -> None:
    config.problem_type = PROBLEM_TYPES[task]  # type: ignore[assignment]
    # What `problem_type` does not say: whether the model expects two texts.
    config.finetune_task = task
    if hasattr(config, "thresholds"):
        del config.thresholds  # of what a classifier was before
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
        if hasattr(config, name):
            setattr(config, name, dropout)


def _head_rows(config: PreTrainedConfig, labels: list[str], task: Task, place: str) -> list[int]:
    """Where each of `labels` stands among a classifier's own.

    Raises:
        InputError: it is another task's, or has no such label.
    """
    own = _own_labels(config)
    problem, known = config.problem_type, getattr(config, "finetune_task", task)
    if known != task or problem not in (None, PROBLEM_TYPES[task]):
        raise InputError(
            "start.continue_from {where} was trained for another task ({known}, {problem}) than "
            "--task {task}; give --model, which puts a new head on its encoder",
            where=place,
            known=known,
            problem=problem,
            task=task,
        )
    if labels == REGRESSION_LABELS and len(own) == 1:
        return [0]
    absent = [label for label in labels if label not in own]
    if absent:
        raise InputError(
            "start.continue_from {where} has the labels {own}, the data also {absent}; give "
            "--model, which puts a new head on its encoder",
            where=place,
            own=", ".join(own),
            absent=", ".join(absent),
        )
    return [own.index(label) for label in labels]


def _keep_rows(model: PreTrainedModel, labels: list[str], rows: list[int], place: str) -> None:
    """Put the outputs of a trained head into the order of `labels`; others are left out."""
    last = output_layer(model)
    if last is None:
        raise InputError(
            "expected a head that ends in an output a label in {where}, found another kind; give "
            "--model, which puts a new head on its encoder",
            where=place,
        )
    last.weight = nn.Parameter(last.weight.data[rows].clone())
    if last.bias is not None:
        last.bias = nn.Parameter(last.bias.data[rows].clone())
    last.out_features = len(rows)
    _name_labels(model.config, labels)
    model.num_labels = len(labels)  # type: ignore[assignment]


def output_layer(model: PreTrainedModel) -> nn.Linear | None:
    """The layer with an output a label, of what is no part of the encoder; None without one."""
    prefix = f"{model.base_model_prefix}."
    linear = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and not name.startswith(prefix)
    ]
    labels = len(model.config.id2label or {})
    return linear[-1] if linear and linear[-1].out_features == labels else None


def _check_whole_head(report: dict[str, Any], place: str) -> None:
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            "{where} is not a finished classifier: its weights lack {missing}{more}; begin with "
            "its encoder by --model",
            where=place,
            missing=missing[0],
            more=Phrase(" and {number} more", number=len(missing) - 1) if len(missing) > 1 else "",
        )


def _renew_head(model: PreTrainedModel, report: dict[str, Any], seed: int) -> None:
    """Give a finished classifier new weights in its head; the head of an encoder is new already."""
    prefix = f"{model.base_model_prefix}."
    head = {name for name in model.state_dict() if not name.startswith(prefix)}
    if not head - {*report["missing_keys"], *_names_of_mismatched(report)}:
        return
    set_seed(seed)
    fresh = AutoModelForSequenceClassification.from_config(model.config, trust_remote_code=False)
    new = fresh.state_dict()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name in head:
                value.copy_(new[name])


def _check_only_head_is_new(model: PreTrainedModel, report: dict[str, Any], place: str) -> None:
    mismatched = _names_of_mismatched(report)
    prefix = f"{model.base_model_prefix}."
    missing = set(report["missing_keys"]) - fill_token_types(model, report["missing_keys"])
    # A pooler is part of the head in all but name: masked-language models are saved without it.
    new = sorted(
        key for key in {*missing, *mismatched} if key.startswith(prefix) and ".pooler." not in key
    )
    if new:
        shown = ", ".join(new[:3]) + (f" and {len(new) - 3} more" if len(new) > 3 else "")
        raise InputError(
            "{where} is not a whole encoder: {weights} weights are missing or of another shape "
            "({shown})",
            where=place,
            weights=len(new),
            shown=shown,
        )


def _names_of_mismatched(report: dict[str, Any]) -> list[str]:
    found = report.get("mismatched_keys") or ()
    return [entry[0] if isinstance(entry, tuple) else entry for entry in found]
