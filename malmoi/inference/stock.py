"""A stock classifier of transformers with its tokenizer: loaded, and checked in every respect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from malmoi.errors import InputError
from malmoi.inference.description import ModelDescription, description_of, label_names
from malmoi.messages import Phrase
from malmoi.transformers_models import (
    check_vocabulary,
    load_model,
    load_tokenizer,
    longest_input,
    takes_token_types,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True, kw_only=True)
class StockClassifier:
    """A classifier in memory.

    Attributes:
        model: in fp32, in eval mode, on the CPU.
        tokenizer: that belongs to it.
        description: what else is known of it.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    description: ModelDescription


def load_stock(folder: Path) -> StockClassifier:
    """Load a folder.

    Raises:
        InputError: as `malmoi.inference.classifier.Classifier.load`.
    """
    # With all that it needs it takes a second to import: not before somebody loads a model.
    from transformers import AutoModelForSequenceClassification

    source = str(folder)
    model, report = load_model(
        AutoModelForSequenceClassification,
        folder,
        Phrase("the model"),
        ignore_mismatched_sizes=True,  # refused below, in words that say what to do
    )
    if report["mismatched_keys"]:
        raise InputError(_other_sizes(sorted(report["mismatched_keys"])[0], model, source))
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            "{source} is not a finished classifier: its weights lack {missing}{more}; fine-tune "
            "it first with python finetune/kfold.py --model",
            source=source,
            missing=missing[0],
            more=Phrase(" and {number} more", number=len(missing) - 1) if len(missing) > 1 else "",
        )
    label_names(model.config.to_dict(), source)  # before the tokenizer is looked for
    tokenizer = load_tokenizer(folder)
    check_vocabulary(model, tokenizer, source)
    return described(model, tokenizer, source)


def _other_sizes(
    mismatched: tuple[str, Sequence[int], Sequence[int]], model: PreTrainedModel, source: str
) -> Phrase:
    """What is wrong where a weight is not as large as the configuration says."""
    name, found, expected = mismatched
    outputs = model.config.num_labels
    if not name.startswith(f"{model.base_model_prefix}.") and expected[0] == outputs:
        return Phrase(
            "expected weights for the {outputs} labels in config.json of {source}, found weights "
            'for {found}; name as many under "id2label", in the order of training',
            outputs=outputs,
            source=source,
            found=found[0],
        )
    return Phrase(
        "expected {name} of {source} with the shape {expected}, as its config.json says, found "
        "{found}; give the config.json that was saved with these weights",
        name=name,
        source=source,
        expected=str(tuple(expected)),
        found=str(tuple(found)),
    )


def described(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str
) -> StockClassifier:
    """A model that is in memory already; `source` is what messages name.

    Raises:
        InputError: its configuration names no labels, or thresholds that do not fit them.
    """
    return StockClassifier(
        model=model.eval(),
        tokenizer=tokenizer,
        description=description_of(
            model.config.to_dict(),
            source,
            max_length=longest_input(model, tokenizer),
            pad=int(tokenizer.pad_token_id),
            token_types=takes_token_types(model),
        ),
    )
