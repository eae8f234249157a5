"""The HTTP application: its paths, what they take and what they answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from malmoi.serving.answers import (
    ExchangeRequest,
    Health,
    ModelAnswer,
    ModelsAnswer,
    RequestForm,
    answer_model,
    model_as_json,
    prediction_as_json,
)
from malmoi.serving.batcher import Batcher
from malmoi.serving.docs_page import docs_page
from malmoi.serving.http_json import (
    WITH_BODY,
    add_error_handlers,
    add_get,
    answer,
    body_schema,
    errors,
    json_in,
    read,
)
from malmoi.serving.label_studio_routes import add_label_studio
from malmoi.serving.limits import Limits
from malmoi.serving.metrics import Metrics
from malmoi.serving.middleware import RETRY_AFTER, RequestLimits
from malmoi.serving.models import DEFAULT, Models
from malmoi.version import version

if TYPE_CHECKING:
    from malmoi.labels.projects import ProjectStore

# All paths of labels begin so; they ask for the token of a person.
LABELS = "/v1/projects"
# Without a token: what an orchestrator, and a browser that shows the docs, asks for.
OPEN_PATHS = ("/", "/health", "/docs", "/openapi.json")
_ABOUT = """Labels of Korean texts: those of models, and those that people give. An error is JSON
with one line, `{"error": "..."}`, but plain text for what is no HTTP (400) and for too many
connections (503).

```
curl http://127.0.0.1:8000/v1/predict -H 'Content-Type: application/json' \\
     -d '{"texts": ["배송도 빠르고 포장도 꼼꼼해요", "색이 사진이랑 너무 달라요"]}'
```
"""


def make_application(
    models: Models,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    store: ProjectStore | None = None,
) -> RequestLimits:
    """An ASGI application that predicts with models, and labels.

    Args:
        models: that answer; without any only labels are served.
        limits: of requests.
        token: that clients of the models must give, unless it is None.
        store: of the projects whose labels are served, each person by a token of their own.
    """
    limits = limits or Limits()
    measured = Metrics()
    batcher = Batcher(limits.max_waiting, measured.batch)
    measured.watch_waiting(lambda: batcher.unanswered)

    @asynccontextmanager
    async def working(app: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        ended = threading.Event()
        if store is not None:
            from malmoi.labels.webhook_delivery import deliver_until

            sending = threading.Thread(target=deliver_until, args=(ended, lambda: store.engine))
            sending.start()
        yield
        ended.set()
        await batcher.stop()

    app = FastAPI(
        title="malmoi serve",
        version=version(),
        description=_ABOUT,
        lifespan=working,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Below what the document itself is asked for, also where a proxy puts a prefix before it.
        servers=[{"url": "."}],
    )
    add_error_handlers(app)
    if list(models):
        _add_predict(app, "/v1", models, DEFAULT, limits, batcher)
        for served in models:
            _add_predict(app, f"/v1/models/{served.name}", models, served.name, limits, batcher)
        _add_models(app, models, token)
        add_label_studio(app, models, limits=limits, batcher=batcher)
    if store is not None:
        from malmoi.serving.label_routes import add_labels

        add_labels(app, LABELS, store, models)
    _add_states(app, models, batcher, measured)
    _describe_token(app, token)
    measured.paths |= {*OPEN_PATHS, *app.openapi()["paths"]}
    return RequestLimits(
        app,
        limits,
        token=token,
        open_paths=OPEN_PATHS,
        open_below=LABELS,
        on_request=measured.request,
    )


def _add_predict(
    app: FastAPI, prefix: str, models: Models, name: str, limits: Limits, batcher: Batcher
) -> None:
    """Add what the model of a name is asked, below a prefix."""
    kind = models[name].classifier
    form = RequestForm(limits, kind.reads_pairs, kind.most_accuracy)

    async def label(request: Request) -> Response:
        wanted = form.read(await json_in(request))
        served = models[name]
        accept = wanted.accept
        threshold = None if accept is None else served.classifier.threshold(accept)
        predictions = await batcher.predict(served.classifier, *wanted.asked)
        return answer(
            {
                "model": served.classifier.name,
                "version": served.version,
                "predictions": [
                    prediction_as_json(one, threshold, wanted.top_k) for one in predictions
                ],
            }
        )

    async def labels() -> Response:
        return answer(model_as_json(models[name]))

    app.add_api_route(
        f"{prefix}/predict",
        label,
        methods=["POST"],
        summary="Label one text or many",
        description="Texts are cleaned as those that the model learnt from.",
        response_model=answer_model(kind.gives),
        responses=errors(*WITH_BODY),
        openapi_extra={"requestBody": form.openapi()},
        tags=["predict"],
    )
    add_get(
        app,
        f"{prefix}/labels",
        labels,
        summary="What the model can say",
        response_model=ModelAnswer,
        responses=errors(401),
        tags=["predict"],
    )


def _add_models(app: FastAPI, models: Models, token: str | None) -> None:
    """Add the list of models, and what exchanges each."""

    async def all_models() -> Response:
        return answer({"models": list(map(model_as_json, models))})

    add_get(
        app,
        "/v1/models",
        all_models,
        summary="The models that answer",
        response_model=ModelsAnswer,
        responses=errors(401),
        tags=["models"],
    )

    async def exchange(request: Request) -> Response:
        if token is None:
            line = "a server without a token exchanges no model; start it with --token-file"
            raise HTTPException(403, line)
        asked = read(ExchangeRequest, await json_in(request))
        if models.busy:
            line = "another model is being loaded; try again later"
            raise HTTPException(503, line, RETRY_AFTER)
        name = request.scope["path"].rpartition("/")[2]
        # It goes on, too, when nobody waits for its end any more.
        loading = asyncio.create_task(models.exchange(name, asked.model))
        return answer(model_as_json(await asyncio.shield(loading)))

    for served in models:
        app.add_api_route(
            f"/v1/models/{served.name}",
            exchange,
            methods=["POST"],
            summary="Let another version answer",
            description="Requests that have come are answered by the one before.",
            response_model=ModelAnswer,
            responses=errors(403, *WITH_BODY),
            openapi_extra=body_schema(ExchangeRequest),
            tags=["models"],
        )


def _add_states(app: FastAPI, models: Models, batcher: Batcher, measured: Metrics) -> None:
    async def health() -> Response:
        batcher.check_worker()
        # Without a model it serves labels.
        classifier = next((each.classifier for each in models), None)
        state = {
            "status": "BUSY" if batcher.full else "UP",
            "model_class": "Malmoi",
            "model": classifier.name if classifier else "",
            "engine": classifier.engine if classifier else "",
            "waiting": batcher.unanswered,
        }
        return answer(state, 503 if batcher.full else 200)

    async def docs(request: Request) -> Response:
        up = "../" if request.scope["raw_path"].endswith(b"/") else ""
        return HTMLResponse(docs_page(app.openapi(), f"{up}openapi.json"))

    async def metrics() -> Response:
        return Response(measured.text(models), media_type=CONTENT_TYPE_LATEST)

    busy: dict[int | str, dict[str, Any]] = {
        503: {"model": Health, "description": "It lives, and takes no further request now."}
    }
    add_get(
        app,
        "/health",
        health,
        summary="Whether it is ready (200), busy (503), or has to be restarted (500)",
        response_model=Health,
        responses={**busy, **errors(500)},
        tags=["state"],
    )
    add_get(app, "/", health, include_in_schema=False)
    add_get(app, "/docs", docs, include_in_schema=False)
    add_get(
        app,
        "/metrics",
        metrics,
        summary="Numbers for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, **errors(401)},
        tags=["state"],
    )


def _describe_token(app: FastAPI, token: str | None) -> None:
    """Say in OpenAPI where a token is wanted: that of the server, or that of a person."""
    schema = app.openapi()
    for path, operations in schema["paths"].items():
        name = "person" if path.startswith(LABELS) else "token"
        if path in OPEN_PATHS or (name == "token" and token is None):
            continue
        schemes = schema.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes[name] = {"type": "http", "scheme": "bearer"}
        for operation in operations.values():
            operation["security"] = [{name: []}]
