"""What has to be known of a classifier beside its weights, to predict with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from malmoi.errors import InputError
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


def reads_pairs_of(config: dict[str, Any]) -> bool | None:
    """Whether `finetune_task`, our own field, says so; other projects say nothing about it."""
    task = config.get("finetune_task")
    return task in ("pair", "pair-regression") if isinstance(task, str) else None


def thresholds_of(config: dict[str, Any], source: str) -> list[float]:
    """The thresholds of a model that gives several labels, as fine-tuning chose them; else 0.5.

    Raises:
        InputError: they are not one number for each label.
    """
    if what_it_gives(config) != "labels":
        return []
    count = len(config.get("id2label") or {})
    found = config.get("thresholds")
    if found is None:
        return [0.5] * count
    right = isinstance(found, list) and len(found) == count
    if not right or not all(isinstance(value, int | float) for value in found):
        raise InputError(
            "expected {count} numbers as thresholds in config.json, one for each label, found "
            "{found}; delete the key to take 0.5 for all",
            place=source,
            count=count,
            found=str(found)[:60],
        )
    return [float(value) for value in found]


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
