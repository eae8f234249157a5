"""Requests and answers of `/v1/predict` as JSON, by what the model reads and gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from malmoi.errors import InputError
from malmoi.inference.description import Gives
from malmoi.inference.prediction import LabelsPrediction, Prediction, ValuePrediction
from malmoi.serving.bad_requests import misfit, shown
from malmoi.serving.limits import Limits
from malmoi.serving.models import ServedModel

# Enough to tell probabilities apart.
_DIGITS = 6


class LabelAnswer(BaseModel):
    """What a model of one label says about a text."""

    label: str = Field(examples=["긍정"])
    confidence: float = Field(description="Probability of the label, 0 to 1.", examples=[0.93])
    probabilities: dict[str, float] = Field(examples=[{"긍정": 0.93, "부정": 0.05, "중립": 0.02}])
    cut: bool = Field(description="Whether the text was longer than what the model reads of it.")
    known: bool = Field(description="Whether the model knows any piece of the text.")
    answered: bool | None = Field(
        None, description="Where `accept` was asked for: whether it is sure enough of the text."
    )


class LabelsAnswer(BaseModel):
    """What a model of several labels says about a text."""

    labels: list[str] = Field(description="Those that reach their threshold; none, too.")
    confidence: float = Field(description="Probability of the likeliest label, 0 to 1.")
    probabilities: dict[str, float]
    cut: bool = Field(description="Whether the text was longer than what the model reads of it.")
    known: bool = Field(description="Whether the model knows any piece of the text.")


class ValueAnswer(BaseModel):
    """What a model of values says about a text."""

    value: float = Field(description="In the unit of the training data.")
    cut: bool = Field(description="Whether the text was longer than what the model reads of it.")
    known: bool = Field(description="Whether the model knows any piece of the text.")


class ModelAnswer(BaseModel):
    """What answers under a name, and what it can say."""

    name: str = Field(examples=["default"])
    model: str = Field(examples=["malmoi-medium-reviews"])
    version: str = Field(examples=["malmoi-medium-reviews-1a2b3c4d"])
    engine: str = Field(examples=["onnx-int8"])
    gives: Gives
    reads_pairs: bool | None = Field(description="null: the model does not say.")
    labels: list[str] = Field(examples=[["긍정", "부정", "중립"]])


class ModelsAnswer(BaseModel):
    """All models; the first is the default."""

    models: list[ModelAnswer]


class ExchangeRequest(BaseModel):
    """What takes the place of a model."""

    model: str = Field(
        description="A run, a released model, a folder of this server, or a Hub id.",
        examples=["malmoi-medium-reviews"],
    )


class Health(BaseModel):
    """The state of the server; `status` and `model_class` are those of Label Studio's protocol."""

    status: str = Field(description="UP, or BUSY where another request would be refused.")
    model_class: str = Field(examples=["Malmoi"])
    model: str = Field(examples=["malmoi-medium-reviews"])
    engine: str = Field(examples=["onnx-int8"])
    waiting: int = Field(description="Requests that are computed or wait for it.")


class ErrorAnswer(BaseModel):
    """Why a request was not answered."""

    error: str = Field(description="One line: what was expected, what was found, what to do.")
    code: str | None = Field(None, description="Of bad input: tells apart what is wrong with it.")
    facts: dict[str, Any] | None = Field(None, description="What the line is about, by name.")


_ANSWERS: dict[Gives, type[BaseModel]] = {
    "label": LabelAnswer,
    "labels": LabelsAnswer,
    "value": ValueAnswer,
}


@cache
def answer_model(gives: Gives) -> type[BaseModel]:
    """The answer to one request."""
    answer: Any = _ANSWERS[gives]
    return create_model(
        "Answer",
        __doc__="A prediction for every text, in the order of the request.",
        model=(str, Field(examples=["malmoi-medium-reviews"])),
        version=(str, Field(examples=["malmoi-medium-reviews-1a2b3c4d"])),
        predictions=(list[answer], ...),
    )


def prediction_as_json(
    prediction: Prediction, threshold: float | None = None, top_k: int | None = None
) -> dict[str, Any]:
    """A prediction as one of the answers above.

    Args:
        prediction: what a model says.
        threshold: the confidence from which it is an answer; None says nothing of that.
        top_k: so many of the likeliest labels; None: all, in the model's order.
    """
    about = {"cut": prediction.cut, "known": prediction.known}
    if isinstance(prediction, ValuePrediction):
        return {"value": prediction.value, **about}
    said: dict[str, Any] = (
        {"labels": list(prediction.labels)}
        if isinstance(prediction, LabelsPrediction)
        else {"label": prediction.label}
    )
    probabilities = {
        name: round(value, _DIGITS) for name, value in prediction.probabilities.items()
    }
    if top_k is not None:
        ranked = sorted(probabilities.items(), key=lambda item: -item[1])
        probabilities = dict(ranked[:top_k])
    if threshold is not None:
        about["answered"] = prediction.known and prediction.confidence >= threshold
    return said | {
        "confidence": round(prediction.confidence, _DIGITS),
        "probabilities": probabilities,
        **about,
    }


def model_as_json(served: ServedModel) -> dict[str, Any]:
    """A model as `ModelAnswer`."""
    classifier = served.classifier
    return {
        "name": served.name,
        "model": classifier.name,
        "version": served.version,
        "engine": classifier.engine,
        "gives": classifier.gives,
        "reads_pairs": classifier.reads_pairs,
        "labels": classifier.labels,
    }


def as_json(value: Any) -> bytes:
    """JSON in UTF-8, Hangul as it is."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")


class Asked(NamedTuple):
    """The texts of a request, N, and the second ones of pairs, N or None."""

    texts: Sequence[str]
    pairs: Sequence[str] | None


class TextsRequest(NamedTuple):
    """A body that was read: the texts, and how they are to be answered."""

    asked: Asked
    accept: float | None
    top_k: int | None


class RequestForm:
    """The bodies that `/v1/predict` takes, for one model."""

    def __init__(
        self, limits: Limits, reads_pairs: bool | None, most_accuracy: float | None = None
    ) -> None:
        """Make the forms: `text` and `texts`, `pair` and `pairs`, as the model reads them.

        Args:
            limits: of each.
            reads_pairs: whether the model does; None where nobody says.
            most_accuracy: that may be asked for as `accept`; None: none may.
        """
        text: Any = Annotated[str, Field(max_length=limits.max_characters)]
        pair: Any = tuple[text, text]
        several: dict[str, Any] = {"max_length": limits.max_texts}
        review, other = "배송도 빠르고 포장도 꼼꼼해요", "색이 사진이랑 너무 달라요"
        forms: dict[str, Any] = {}
        if reads_pairs is not True:
            forms["text"] = (text, Field(examples=[review]))
            forms["texts"] = (list[text], Field(examples=[[review, other]], **several))
        if reads_pairs is not False:
            questions = ("환불은 언제 되나요", "환불 날짜가 궁금해요")
            forms["pair"] = (pair, Field(examples=[questions]))
            forms["pairs"] = (list[pair], Field(examples=[[questions]], **several))
        accept: dict[str, Any] = {}
        if most_accuracy is not None:
            accuracy: Any = Annotated[float, Field(gt=0, le=most_accuracy)]
            about = "How many of the answers must be right, so that a text is `answered`."
            accept["accept"] = (accuracy | None, Field(None, description=about))
        self._models: dict[str, type[BaseModel]] = {
            key: create_model(
                f"Request_{key}",
                __config__=ConfigDict(extra="forbid", title=f"by {key}"),
                **{key: form},
                **accept,
                top_k=(
                    Annotated[int, Field(gt=0)] | None,
                    Field(None, description="The likeliest labels alone, so many."),
                ),
            )
            for key, form in forms.items()
        }
        self._examples = {key: form[1].examples[0] for key, form in forms.items()}

    def openapi(self) -> dict[str, Any]:
        """The `requestBody` of the operation."""
        schemas = [model.model_json_schema() for model in self._models.values()]
        examples = {key: {"value": {key: value}} for key, value in self._examples.items()}
        content = {"application/json": {"schema": {"oneOf": schemas}, "examples": examples}}
        return {"required": True, "content": content}

    def read(self, found: Any) -> TextsRequest:
        """What a body says that was parsed.

        Raises:
            InputError: it has another form, or too many or too long texts.
        """
        keys = found.keys() & self._models.keys() if isinstance(found, dict) else set()
        if len(keys) != 1:
            raise InputError(
                "expected a JSON object with one of {models}, found {found}; /docs has examples",
                models=", ".join(self._models),
                found=shown(found),
            )
        (key,) = keys
        try:
            body: Any = self._models[key].model_validate(found)
        except ValidationError as error:
            raise misfit(error.errors(include_url=False)) from error
        value = getattr(body, key)
        values = [value] if key in ("text", "pair") else value
        asked = Asked(texts=values, pairs=None)
        if key in ("pair", "pairs"):
            asked = Asked(texts=[one for one, _ in values], pairs=[other for _, other in values])
        accept = getattr(body, "accept", None)
        return TextsRequest(asked=asked, accept=accept, top_k=body.top_k)


def check_lengths(asked: Asked, limits: Limits) -> None:
    """Refuse too many or too long texts.

    Raises:
        InputError: there are.
    """
    if len(asked.texts) > limits.max_texts:
        raise InputError(
            "expected at most {most:,} texts in a request, found {found:,}; send them in several",
            most=limits.max_texts,
            found=len(asked.texts),
        )
    longest = max(map(len, (*asked.texts, *(asked.pairs or ()))), default=0)
    if longest > limits.max_characters:
        raise InputError(
            "expected at most {most:,} characters in a text, found {longest:,}; send less of it",
            most=limits.max_characters,
            longest=longest,
        )
