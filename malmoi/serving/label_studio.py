"""Label Studio's protocol for machine-learning backends, for a classifier of texts.

Requests and answers are those of label-studio-ml-backend (label_studio_ml/api.py, response.py),
the tags those of https://labelstud.io/tags/choices and /tags/text.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from malmoi.errors import InputError
from malmoi.inference.description import Gives
from malmoi.inference.prediction import LabelsPrediction, Prediction
from malmoi.serving.answers import Asked
from malmoi.serving.bad_requests import shown
from malmoi.text.cleaning.cleaner import clean_text

# What Label Studio says when it wants a model to learn.
TRAIN_EVENTS = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATION_DELETED", "START_TRAINING")
_DEFAULT_DATA = "text"


@dataclass(frozen=True, kw_only=True)
class ChoicesConfig:
    """The part of a labelling configuration that a classifier answers.

    Attributes:
        from_name: name of `<Choices>`.
        to_name: name of the `<Text>` that it is about.
        keys: of a task's data, the text, and the second one of a pair.
        choices: label of the model -> what the annotation has for it.
    """

    from_name: str
    to_name: str
    keys: tuple[str, ...]
    choices: dict[str, str]


def read_config(
    label_config: str, labels: Sequence[str], gives: Gives, reads_pairs: bool | None
) -> ChoicesConfig:
    """Find the `<Choices>` over a `<Text>` that has a choice for every label.

    A label is found by a choice's `predicted_values`, its `alias` or its `value`, upper or lower
    case, as by label-studio-ml-backend.

    Raises:
        InputError: there is none; it says what is missing in the one that fits best.
    """
    root = _parsed(label_config)
    texts = {tag.get("name", ""): tag for tag in root.iter("Text")}

    def lacks(control: ElementTree.Element) -> tuple[int, bool]:
        one_only = gives == "labels" and control.get("choice") != "multiple"
        return len(_missing(labels, _choices(control))), one_only

    controls = [tag for tag in root.iter("Choices") if tag.get("toName") in texts]
    if not controls:
        raise InputError(
            'expected <Choices toName="text"> with <Text name="text"> in the labelling '
            "configuration, found none; a classifier of texts answers nothing else"
        )
    if gives == "value":
        raise InputError("expected a model that gives labels for <Choices>, found one of values")
    control = min(controls, key=lacks)
    choices = _choices(control)
    if missing := _missing(labels, choices):
        raise InputError(
            "expected a <Choice> for each label of the model, found none for {shown}; add <Choice "
            'value="{missing}"/>, or predicted_values="{missing}" to another',
            shown=", ".join(missing[:5]),
            missing=missing[0],
        )
    choice = control.get("choice", "single")
    if gives == "labels" and choice != "multiple":
        raise InputError(
            'expected <Choices choice="multiple"> for a model of several labels, found {choice}',
            choice=choice,
        )
    to_name = control.get("toName", "")
    objects = [texts[to_name]]
    if reads_pairs:
        objects += [tag for name, tag in texts.items() if name != to_name][:1]
        if len(objects) < 2:
            raise InputError("expected two <Text> for a model of pairs of texts, found one")
    return ChoicesConfig(
        from_name=control.get("name", ""),
        to_name=to_name,
        keys=tuple((tag.get("value") or "").lstrip("$") or _DEFAULT_DATA for tag in objects),
        choices={label: choices[label.casefold()] for label in labels},
    )


def _parsed(label_config: str) -> ElementTree.Element:
    # Entities, which can blow up a text of a few bytes, are only ever defined in a DOCTYPE.
    if "<!DOCTYPE" in label_config or "<!ENTITY" in label_config:
        raise InputError("expected a labelling configuration without <!DOCTYPE>, found one")
    try:
        return ElementTree.fromstring(label_config)
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(
            "expected a labelling configuration in XML, found {error}", error=error
        ) from error


def _choices(control: ElementTree.Element) -> dict[str, str]:
    """What a label may be called, in lower case -> what the annotation has for it."""
    names: dict[str, str] = {}
    for tag in control.iter("Choice"):
        value = tag.get("value", "")
        chosen = tag.get("alias") or value
        predicted = (tag.get("predicted_values") or "").split(",")
        for name in (*map(str.strip, predicted), chosen, value):
            if name:
                names.setdefault(name.casefold(), chosen)
    return names


def _missing(labels: Sequence[str], choices: Mapping[str, str]) -> list[str]:
    return [label for label in labels if label.casefold() not in choices]


def texts_of(tasks: Sequence[dict[str, Any]], config: ChoicesConfig) -> tuple[list[int], Asked]:
    """The places of the tasks that have something to read, N, and their texts, N.

    One whose text is missing, null or empty once it is clean has no place: `malmoi predict` leaves
    such a row without a label, too.

    Raises:
        InputError: one has something else than a text where the configuration says it is.
    """
    places: list[int] = []
    found: list[tuple[str, ...]] = []
    for place, task in enumerate(tasks):
        data, name = task.get("data") or {}, task.get("id", place)
        if not isinstance(data, dict):
            raise InputError(
                "expected an object at data of task {name}, found {data}",
                name=name,
                data=shown(data),
            )
        texts = [data.get(key) for key in config.keys]
        for key, text in zip(config.keys, texts, strict=True):
            if not isinstance(text, str | None):
                raise InputError(
                    "expected a text at data.{key} of task {name}, found {text}; look at value in "
                    "<Text>",
                    key=key,
                    name=name,
                    text=shown(text),
                )
        given = tuple(text for text in texts if text is not None)
        if len(given) == len(texts) and all(map(clean_text, given)):
            places.append(place)
            found.append(given)
    pairs = [texts[1] for texts in found] if len(config.keys) > 1 else None
    return places, Asked(texts=[texts[0] for texts in found], pairs=pairs)


def result_of(prediction: Prediction | None, config: ChoicesConfig, version: str) -> dict[str, Any]:
    """A prediction as Label Studio keeps it; without a label its `result` is empty.

    A task without a prediction has no score either; it must not be left out, for Label Studio
    counts the results.
    """
    if prediction is None:
        return {"model_version": version, "result": []}
    several = isinstance(prediction, LabelsPrediction)
    labels = prediction.labels if isinstance(prediction, LabelsPrediction) else (prediction.label,)
    choices = list(dict.fromkeys(config.choices[label] for label in labels))
    region = {
        "from_name": config.from_name,
        "to_name": config.to_name,
        "type": "choices",
        "value": {"choices": choices},
    }
    return {
        "model_version": version,
        "score": round(prediction.confidence, 6),
        "result": [region] if choices or not several else [],
    }
