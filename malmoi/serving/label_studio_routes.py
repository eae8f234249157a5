"""The paths that Label Studio asks: `/setup`, `/predict`, `/webhook`; `/health` is everybody's."""

from __future__ import annotations

import asyncio
import sys
from functools import lru_cache
from typing import Any
from xml.sax.saxutils import quoteattr

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.serving.answers import check_lengths
from malmoi.serving.batcher import Batcher
from malmoi.serving.http_json import WITH_BODY, answer, body_schema, errors, json_in, read
from malmoi.serving.label_studio import (
    TRAIN_EVENTS,
    ChoicesConfig,
    read_config,
    result_of,
    texts_of,
)
from malmoi.serving.limits import Limits
from malmoi.serving.models import DEFAULT, Models

_NO_TRAINING = "malmoi serve does not train: export the labels, then python finetune/kfold.py"
_TAG = "Label Studio"


class _Body(BaseModel):
    # Label Studio's versions send further fields.
    model_config = ConfigDict(extra="ignore")
    project: Any = Field(None, description="Its number and when it was made.")


class SetupRequest(_Body):
    """A project that wants to use the model."""

    label_schema: str = Field(alias="schema")


class TasksRequest(_Body):
    """Tasks of a project."""

    tasks: list[dict[str, Any]]
    label_config: str


class EventRequest(_Body):
    """Something has happened in a project."""

    action: str


class SetupAnswer(BaseModel):
    """The version that predictions will have."""

    model_version: str


class Region(BaseModel):
    """What was chosen by which tag."""

    from_name: str
    to_name: str
    type: str = Field(examples=["choices"])
    value: dict[str, list[str]] = Field(examples=[{"choices": ["긍정"]}])


class TaskResult(BaseModel):
    """The prediction of a task."""

    model_version: str
    score: float | None = Field(None, description="Left out for a task without a text.")
    result: list[Region]


class TasksAnswer(BaseModel):
    """A prediction for every task, in their order."""

    results: list[TaskResult]


class EventAnswer(BaseModel):
    """What came of it."""

    status: str
    result: str | None = None


_OPERATIONS: dict[str, tuple[type[BaseModel], type[BaseModel], str]] = {
    "/setup": (SetupRequest, SetupAnswer, "Whether the choices fit the labels"),
    "/predict": (TasksRequest, TasksAnswer, "Predictions of tasks"),
    "/webhook": (EventRequest, EventAnswer, "Events, which change nothing here"),
}


def add_label_studio(app: FastAPI, models: Models, *, limits: Limits, batcher: Batcher) -> None:
    """Add the paths to an application; the default model answers."""

    @lru_cache(maxsize=128)  # once, and not with every task
    def say_once(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def config_of(classifier: Classifier, label_config: str, project: Any) -> ChoicesConfig:
        try:
            return read_config(
                label_config, classifier.labels, classifier.gives, classifier.reads_pairs
            )
        except InputError as error:  # Label Studio shows nobody what it was answered
            line = f"project {str(project)[:40]} of Label Studio is refused: {error}"
            say_once("".join(c if c.isprintable() else " " for c in line))
            raise

    async def setup(request: Request) -> Response:
        asked = read(SetupRequest, await json_in(request))
        say_once.cache_clear()
        served = models[DEFAULT]
        config_of(served.classifier, asked.label_schema, asked.project)
        return answer({"model_version": served.version})

    async def tasks(request: Request) -> Response:
        asked = read(TasksRequest, await json_in(request))
        served = models[DEFAULT]
        config = config_of(served.classifier, asked.label_config, asked.project)
        # In a thread, for a body of the largest size takes a second to clean.
        places, texts = await asyncio.to_thread(texts_of, asked.tasks, config)
        check_lengths(texts, limits)
        predictions = await batcher.predict(served.classifier, *texts)
        found = dict(zip(places, predictions, strict=True))
        results = [
            result_of(found.get(place), config, served.version) for place in range(len(asked.tasks))
        ]
        return answer({"results": results})

    async def event(request: Request) -> Response:
        asked = read(EventRequest, await json_in(request))
        if asked.action not in TRAIN_EVENTS:
            return answer({"status": "Unknown event"})
        return answer({"status": "ok", "result": _NO_TRAINING}, 201)

    examples = _examples(models[DEFAULT].classifier)
    handlers = {"/setup": setup, "/predict": tasks, "/webhook": event}
    for path, (body, answered, summary) in _OPERATIONS.items():
        further: dict[int | str, dict[str, Any]] = (
            {201: {"model": EventAnswer}} if path == "/webhook" else {}
        )
        app.add_api_route(
            path,
            handlers[path],
            methods=["POST"],
            summary=summary,
            response_model=answered,
            responses={**further, **errors(*WITH_BODY)},
            openapi_extra=body_schema(body, example=examples[path]),
            tags=[_TAG],
        )


def _examples(classifier: Classifier) -> dict[str, dict[str, Any]]:
    """A request to each path that fits the classifier."""
    names = ("text", "other") if classifier.reads_pairs else ("text",)
    texts = "".join(f'<Text name="{name}" value="${name}"/>' for name in names)
    choices = "".join(f"<Choice value={quoteattr(label)}/>" for label in classifier.labels)
    choice = "multiple" if classifier.gives == "labels" else "single"
    control = f'<Choices name="label" toName="text" choice="{choice}">{choices}</Choices>'
    config, project = f"<View>{texts}{control}</View>", "1.1700000000"
    data = {"text": "배송도 빠르고 포장도 꼼꼼해요", "other": "배송이 늦어요"}
    task = {"id": 1, "data": {name: data[name] for name in names}}
    return {
        "/setup": {"project": project, "schema": config},
        "/predict": {"project": project, "tasks": [task], "label_config": config},
        "/webhook": {"action": TRAIN_EVENTS[0], "project": {"id": 1, "label_config": config}},
    }
