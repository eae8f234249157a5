"""JSON in and out over HTTP, and what every operation may answer beside its success."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from email.message import Message
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from malmoi.errors import InputError
from malmoi.labels.people import AccessError
from malmoi.serving.answers import ErrorAnswer, as_json
from malmoi.serving.bad_requests import misfit
from malmoi.serving.batcher import OverloadedError, WorkerEndedError
from malmoi.serving.middleware import RETRY_AFTER

JSON = "application/json"
Body = TypeVar("Body", bound=BaseModel)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ERRORS = {
    400: "The body is no JSON.",
    401: "The token is missing or wrong.",
    403: "The server has no token to exchange a model by, or the person may not do this.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not called application/json, or is packed or encoded in another way.",
    422: "JSON of another form, or too many or too long texts.",
    500: "A defect of the server; its log says more.",
    503: "Too many requests wait, or the answer took too long; try again after `Retry-After`.",
}
# What an operation that takes a body may answer.
WITH_BODY = (400, 401, 408, 413, 415, 422, 500, 503)


class NotJsonError(Exception):
    """A body is no JSON."""


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What an operation may answer beside its success, for OpenAPI."""
    return {status: {"model": ErrorAnswer, "description": _ERRORS[status]} for status in statuses}


def answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON."""
    return Response(as_json(value), status, headers, JSON)


def add_get(
    app: FastAPI, path: str, endpoint: Callable[..., Awaitable[Response]], **described: Any
) -> None:
    """Answer GET, and HEAD, by which load balancers ask; the server leaves out the body of that."""
    app.add_api_route(path, endpoint, methods=["GET"], **described)
    app.add_api_route(path, endpoint, methods=["HEAD"], include_in_schema=False)


def read(kind: type[Body], value: Any) -> Body:
    """JSON as a form.

    Raises:
        InputError: it has another.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise misfit(error.errors(include_url=False)) from error


def body_schema(kind: type[BaseModel], **described: Any) -> dict[str, Any]:
    """The `openapi_extra` of an operation that takes a form."""
    schema = kind.model_json_schema()
    # Where the document of the server has it, a reference into the schema would lead nowhere.
    content = {JSON: {"schema": _inlined(schema, schema.pop("$defs", {})), **described}}
    return {"requestBody": {"required": True, "content": content}}


def _inlined(part: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_inlined(one, parts) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(parts[part["$ref"].rpartition("/")[2]], parts)
    return {name: _inlined(one, parts) for name, one in part.items()}


async def json_in(request: Request) -> Any:
    """What the body of a request says.

    Raises:
        HTTPException: it does not say that it is JSON, or says that it is not in UTF-8.
        NotJsonError: it says so, and is none.
    """
    given = Message()
    given["Content-Type"] = request.headers.get("content-type", "")
    kind = given["Content-Type"].partition(";")[0].strip().lower()
    if kind != JSON:
        # Nor can a form of another site's page, in a browser here, send this type.
        raise HTTPException(
            415, f"expected Content-Type: {JSON}, found {kind[:60] or 'none'}; add the header"
        )
    if (charset := given.get_content_charset("utf-8")) not in ("utf-8", "utf8", "us-ascii"):
        raise HTTPException(415, f"expected JSON in UTF-8, found {charset[:60]}; send UTF-8")
    # What Windows' programs put in front.
    body = (await request.body()).removeprefix(codecs.BOM_UTF8)
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJsonError("bytes of another encoding; send UTF-8") from error
    try:
        return from_json(body)
    except ValueError as error:
        if (mended := _without_lone_surrogates(body)) is not None:
            return mended
        raise NotJsonError(str(error)) from error


def _without_lone_surrogates(body: bytes) -> Any:
    """JSON whose strings have halves of characters, as of an emoji that JavaScript cut.

    Cleaning drops them, too. None where there are none, or where it is no JSON all the same.
    """
    if not _SURROGATE.search(body):
        return None
    try:
        text = json.dumps(json.loads(body.decode("utf-8")), ensure_ascii=False)
        return from_json(text.encode("utf-8", errors="ignore"))
    except (ValueError, RecursionError):
        return None


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error with one line of JSON."""

    async def on_http_error(request: Request, error: Any) -> Response:
        line = str(error.detail)
        if error.status_code == 404:
            known = ", ".join(app.openapi()["paths"])
            line = f"expected one of {known}, found {request.url.path[:60]}; /docs explains them"
        elif error.status_code == 405:
            allowed = _methods(app, request)
            line = f"expected {allowed} {request.url.path}, found {request.method}"
            return answer({"error": line}, 405, {"Allow": allowed})
        return answer({"error": line}, error.status_code, error.headers)

    async def on_input_error(request: Request, error: Any) -> Response:
        told = {"error": _one_line(error), "code": error.code, "facts": _plain(error.facts)}
        return answer(told, 403 if isinstance(error, AccessError) else 422)

    async def on_misfit(request: Request, error: Any) -> Response:
        return await on_input_error(request, misfit(error.errors()))

    async def on_no_json(request: Request, error: Any) -> Response:
        return answer({"error": f"expected JSON, found {_one_line(error)[:200]}"}, 400)

    async def on_overload(request: Request, error: Any) -> Response:
        return answer({"error": "too many requests wait; try again later"}, 503, RETRY_AFTER)

    async def on_ended_worker(request: Request, error: Any) -> Response:
        line = "nothing is computed any more; restart the server, its log says why it ended"
        return answer({"error": line}, 500)

    async def on_unexpected_error(request: Request, error: Any) -> Response:
        return answer({"error": "a defect of this server; its log says more"}, 500)

    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(InputError, on_input_error)
    app.add_exception_handler(RequestValidationError, on_misfit)
    app.add_exception_handler(NotJsonError, on_no_json)
    app.add_exception_handler(OverloadedError, on_overload)
    app.add_exception_handler(WorkerEndedError, on_ended_worker)
    app.add_exception_handler(Exception, on_unexpected_error)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _methods(app: FastAPI, request: Request) -> str:
    """What a path takes: its routes have one method each, and the first of them alone is asked."""
    found: set[str] = set()
    for route in app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return ", ".join(sorted(found - {"HEAD"}))


def _plain(facts: Mapping[str, object]) -> dict[str, Any]:
    """Facts as JSON has them: whole numbers, and what else they say."""
    return {name: fact if isinstance(fact, int) else str(fact) for name, fact in facts.items()}
