"""What has to be known of a classifier beside its weights, to predict with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from malmoi.errors import InputError
from malmoi.inference.tasks import reads_pairs
from malmoi.messages import Phrase

Gives = Literal["label", "labels", "value"]


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """A classifier without its weights; as JSON, it stands beside an exported one.

    Attributes:
        labels: names of its K outputs.
        gives: one label, several labels, or a value.
        pairs: whether it reads two texts at a time; None where nobody says.
        thresholds: of several labels, K numbers from which a label counts; else empty.
        max_length: most tokens that it reads at once.
        pad: id of the padding token.
        token_types: whether the second text of a pair has a token type of its own.
    """

    labels: list[str]
    gives: Gives = "label"
    pairs: bool | None = False
    thresholds: list[float] = field(default_factory=list)
    max_length: int
    pad: int
    token_types: bool = False


def what_it_gives(config: dict[str, Any]) -> Gives:
    """What a config.json stands for; one output without a problem type is a value, as transformers
    takes it.
    """
    problem = config.get("problem_type")
    if problem == "multi_label_classification":
        return "labels"
    alone = len(config.get("id2label") or {}) == 1 and problem is None
    return "value" if problem == "regression" or alone else "label"


def label_names(config: dict[str, Any], source: str) -> list[str]:
    """Names of the outputs, in their order.

    Raises:
        InputError: they have none, but for a value, which needs no name; or they are not K
            different ones with the ids 0 to K - 1.
    """
    id2label = {str(id_): str(name) for id_, name in (config.get("id2label") or {}).items()}
    ids = [str(place) for place in range(len(id2label))]
    if set(ids) != set(id2label):
        raise InputError(
            'expected the ids 0 to {last} under "id2label" in config.json of {source}, found '
            "{ids}; number the labels in the order of training",
            last=len(ids) - 1,
            source=source,
            ids=", ".join(id2label),
        )
    names = [id2label[id_] for id_ in ids]
    alike = sorted({name for name in names if not name.strip() or names.count(name) > 1})
    if alike:
        raise InputError(
            'expected a different name for every label under "id2label" in config.json of '
            "{source}, found {name!r} for {labels}; give each its own",
            source=source,
            name=alike[0],
            labels=names.count(alike[0]),
        )
    nameless = [name for name in names if name.startswith("LABEL_")]
    if what_it_gives(config) != "value" and (nameless or not names):
        raise InputError(
            "the labels of {source} have no names (found {nameless}); give them in config.json "
            'under "id2label", as {{"0": "긍정", "1": "부정"}}',
            source=source,
            nameless=", ".join(nameless) or Phrase("none"),
        )
    return names


def description_of(
    config: dict[str, Any], source: str, *, max_length: int, pad: int, token_types: bool
) -> ModelDescription:
    """A classifier by its config.json; `source` is what messages name.

    `finetune_task` is our own field: other projects do not say whether a model reads pairs. Of
    several labels, fine-tuning chose the thresholds; else they are 0.5.

    Raises:
        InputError: as `label_names`, or the thresholds are not one number for each label.
    """
    labels, gives = label_names(config, source), what_it_gives(config)
    task = config.get("finetune_task")
    thresholds: list[float] = []
    if gives == "labels":
        found = config.get("thresholds")
        if found is None:
            found = [0.5] * len(labels)
        right = isinstance(found, list) and len(found) == len(labels)
        if not right or not all(isinstance(value, int | float) for value in found):
            raise InputError(
                "expected {count} numbers as thresholds in config.json, one for each label, found "
                "{found}; delete the key to take 0.5 for all",
                place=source,
                count=len(labels),
                found=str(found)[:60],
            )
        thresholds = list(map(float, found))
    return ModelDescription(
        labels=labels,
        gives=gives,
        pairs=reads_pairs(task) if isinstance(task, str) else None,
        thresholds=thresholds,
        max_length=max_length,
        pad=pad,
        token_types=token_types,
    )
