"""The API for labels: what the app does with a project, for programs, each by a person's token."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as InPath
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.labelling.filling import LIVE, model_that_fills
from malmoi.labels.access import ProjectAccess
from malmoi.labels.access_keys import person_of
from malmoi.labels.annotating import save_acts
from malmoi.labels.exporting import export_for, export_table, first_sources
from malmoi.labels.filled_export import export_filled
from malmoi.labels.found_texts import add_texts
from malmoi.labels.people import Person
from malmoi.labels.projects import ProjectStore, read_project
from malmoi.labels.review import adjudicate
from malmoi.labels.searching import Cursor, FoundText, read_texts, search_texts
from malmoi.labels.webhooks import list_webhooks, make_webhook, withdraw_webhook
from malmoi.serving.http_json import WITH_BODY, add_get, answer, body_schema, errors, json_in, read
from malmoi.serving.label_bodies import (
    ExportFormat,
    Id,
    NewActs,
    NewDecision,
    NewProjectBody,
    NewText,
    NewTexts,
    NewWebhook,
    ProjectAnswer,
    ProjectsAnswer,
    SavedActs,
    SavedAnswer,
    SearchQuery,
    TextAnswer,
    TextIds,
    TextsAnswer,
    WebhookAnswer,
    WebhooksAnswer,
    WebhookSecret,
)
from malmoi.serving.middleware import secret_in
from malmoi.serving.models import Models

_ACT = {"text_id": 1, "labels": ["긍정"], "request_id": "import-7-of-monday"}
_PROJECT = {"name": "reviews", "labels": [{"name": "긍정"}, {"name": "부정"}]}
_DECISION = {"text_id": 1, "labels": ["긍정"], "request_id": "decision-7"}
_CHUNK = 2**18
Found = TypeVar("Found")
InProject = Annotated[Id, InPath(description="`id` of the project.")]


class _Projects:
    """The projects of a database, for whoever asks."""

    def __init__(self, prefix: str, store: ProjectStore) -> None:
        self.prefix, self.store = prefix, store

    def person(self, request: Request) -> Person:
        """Whose token the request has.

        Raises:
            HTTPException: it has none that holds.
        """
        given = secret_in(request.headers.get("authorization", "").encode())
        person = person_of(self.store, given.decode("utf-8", "replace"), "token") if given else None
        if person is None:
            line = "expected the token of a person, as in Authorization: Bearer TOKEN"
            raise HTTPException(401, line, {"WWW-Authenticate": "Bearer"})
        return person

    async def do(
        self, request: Request, project: int, work: Callable[[ProjectAccess], Found]
    ) -> Found:
        """What is done in a project by the person who asks, in a thread."""
        return await asyncio.to_thread(
            lambda: work(self.store.access(self.person(request), project))
        )


def add_labels(app: FastAPI, prefix: str, store: ProjectStore, models: Models) -> None:
    """Add the paths of labels; an export may be filled by one of the models, or by `LIVE`."""
    projects = _Projects(prefix, store)
    _add_projects(app, projects)
    _add_texts(app, projects)
    _add_acts(app, projects)
    _add_export(app, projects, models)
    _add_webhooks(app, projects)


def _add_projects(app: FastAPI, projects: _Projects) -> None:
    async def all_projects(request: Request) -> Response:
        def found() -> dict[str, Any]:
            mine = projects.store.list(projects.person(request))
            return ProjectsAnswer(projects=list(map(ProjectAnswer.of, mine))).model_dump()

        return answer(await asyncio.to_thread(found))

    async def make(request: Request) -> Response:
        await asyncio.to_thread(projects.person, request)
        body = read(NewProjectBody, await json_in(request))

        def made() -> dict[str, Any]:
            access = projects.store.create(projects.person(request), body.as_project())
            return ProjectAnswer.of(read_project(access)).model_dump()

        return answer(await asyncio.to_thread(made))

    async def one(request: Request, project: InProject) -> Response:
        found = await projects.do(request, project, read_project)
        return answer(ProjectAnswer.of(found).model_dump())

    described: dict[str, Any] = {"responses": errors(401, 403, 422), "tags": ["labels"]}
    add_get(
        app,
        projects.prefix,
        all_projects,
        summary="The projects of which you are a member",
        response_model=ProjectsAnswer,
        **described,
    )
    app.add_api_route(
        projects.prefix,
        make,
        methods=["POST"],
        summary="Make a project, by the token of whoever runs the server",
        response_model=ProjectAnswer,
        responses=errors(403, *WITH_BODY),
        openapi_extra=body_schema(NewProjectBody, example=_PROJECT),
        tags=["labels"],
    )
    add_get(
        app,
        f"{projects.prefix}/{{project}}",
        one,
        summary="A project, its labels and its guideline",
        response_model=ProjectAnswer,
        **described,
    )


def _add_texts(app: FastAPI, projects: _Projects) -> None:
    async def search(
        request: Request, project: InProject, query: Annotated[SearchQuery, Query()]
    ) -> Response:
        def found(access: ProjectAccess) -> TextsAnswer:
            page = search_texts(access, query.as_search(), after=query.cursor, limit=query.limit)
            texts = _with_columns(access, page.texts)
            return TextsAnswer(texts=texts, next=page.next and _cursor(page.next))

        page = await projects.do(request, project, found)
        return answer(page.model_dump(mode="json"))

    async def one(request: Request, project: InProject, text: Id) -> Response:
        (found,) = await projects.do(
            request, project, lambda access: _with_columns(access, read_texts(access, [text]))
        )
        return answer(found.model_dump(mode="json"))

    def add(access: ProjectAccess, new: NewTexts) -> dict[str, Any]:
        whole = [NewText(text=one) if isinstance(one, str) else one for one in new.texts]
        words, columns = [one.text for one in whole], [one.columns for one in whole]
        return {"text_ids": add_texts(access, words, new.source, columns)}

    described: dict[str, Any] = {"responses": errors(401, 403, 422), "tags": ["labels"]}
    add_get(
        app,
        f"{projects.prefix}/{{project}}/texts",
        search,
        summary="Search texts, with what you may see of their labels",
        response_model=TextsAnswer,
        **described,
    )
    add_get(
        app,
        f"{projects.prefix}/{{project}}/texts/{{text}}",
        one,
        summary="A text with what you may see of its labels",
        response_model=TextAnswer,
        **described,
    )
    _add_post(
        app,
        projects,
        "texts",
        NewTexts,
        add,
        summary="Add texts; those that are equal once clean are one",
        response_model=TextIds,
        example={"texts": ["배송이 빨라요", {"text": "색이 달라요", "columns": {"상품": "장갑"}}]},
    )


def _with_columns(access: ProjectAccess, texts: Sequence[FoundText]) -> list[TextAnswer]:
    with access.reading() as connection:
        sources = first_sources(connection, [one.text_id for one in texts])
    found = [(one, *sources.get(one.text_id, ("", "", {}))) for one in texts]
    return [TextAnswer.of(text, source, columns) for text, source, _, columns in found]


def _add_acts(app: FastAPI, projects: _Projects) -> None:
    def save(access: ProjectAccess, new: NewActs) -> dict[str, Any]:
        saved = save_acts(access, [one.as_act() for one in new.acts])
        return {"saved": [SavedAnswer.of(one).model_dump() for one in saved]}

    def decide(access: ProjectAccess, new: NewDecision) -> dict[str, Any]:
        saved = adjudicate(
            access,
            new.text_id,
            new.labels,
            request_id=new.request_id,
            note=new.note,
            shown=new.shown,
        )
        return SavedAnswer.of(saved).model_dump()

    _add_post(
        app,
        projects,
        "labels",
        NewActs,
        save,
        summary="Label, skip, flag or note texts, or undo that",
        description="What is answered 200 is on disk. Without an answer send the same again.",
        response_model=SavedActs,
        example={"acts": [_ACT]},
    )
    _add_post(
        app,
        projects,
        "decisions",
        NewDecision,
        decide,
        summary="Decide about a text, as a reviewer",
        response_model=SavedAnswer,
        example=_DECISION,
    )


def _add_post(
    app: FastAPI,
    projects: _Projects,
    path: str,
    form: type[BaseModel],
    work: Callable[[ProjectAccess, Any], dict[str, Any]],
    *,
    example: Any,
    **described: Any,
) -> None:
    """Add what takes a body and answers what came of it."""

    async def post(request: Request, project: InProject) -> Response:
        # Who may not ask is told that first.
        await projects.do(request, project, lambda access: access)
        body = read(form, await json_in(request))
        return answer(await projects.do(request, project, lambda access: work(access, body)))

    app.add_api_route(
        f"{projects.prefix}/{{project}}/{path}",
        post,
        methods=["POST"],
        responses=errors(403, *WITH_BODY),
        openapi_extra=body_schema(form, example=example),
        tags=["labels"],
        **described,
    )


def _add_export(app: FastAPI, projects: _Projects, models: Models) -> None:
    async def export(
        request: Request,
        project: InProject,
        format: ExportFormat = "csv",
        all_texts: bool = False,
        fill: str | None = None,
    ) -> Response:
        folder = tempfile.TemporaryDirectory(prefix="malmoi-export-")
        ending = {"label-studio": "json", "doccano": "jsonl"}.get(format, format)
        path = Path(folder.name) / f"export.{ending}"

        def write(access: ProjectAccess) -> None:
            if format in ("label-studio", "doccano"):
                export_for(access, path, format)
            elif fill is not None:
                export_filled(access, [path], model_that_fills(access, _filler(fill, models)))
            else:
                export_table(access, path, labelled_only=not all_texts)

        try:
            await projects.do(request, project, write)
        except BaseException:
            folder.cleanup()
            raise
        named = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return StreamingResponse(_stream(path, folder), 200, named, "application/octet-stream")

    app.add_api_route(
        f"{projects.prefix}/{{project}}/export",
        export,
        methods=["GET"],
        summary="The texts and labels as a file, as a reviewer",
        description=(
            "`fill` labels what nobody has labelled: by `live`, which learns from the labels of "
            "the project, or by a model of this server. Then all rows of the imported files come."
        ),
        response_class=Response,
        responses={
            200: {"content": {"application/octet-stream": {}}},
            **errors(401, 403, 422, 500, 503),
        },
        tags=["labels"],
    )


def _add_webhooks(app: FastAPI, projects: _Projects) -> None:
    async def all_webhooks(request: Request, project: InProject) -> Response:
        found = await projects.do(request, project, list_webhooks)
        listed = WebhooksAnswer(webhooks=list(map(WebhookAnswer.of, found)))
        return answer(listed.model_dump(mode="json"))

    async def withdraw(request: Request, project: InProject, webhook: Id) -> Response:
        await projects.do(request, project, lambda access: withdraw_webhook(access, webhook))
        return Response(status_code=204)

    path = f"{projects.prefix}/{{project}}/webhooks"
    described: dict[str, Any] = {"responses": errors(401, 403, 422), "tags": ["labels"]}
    add_get(
        app,
        path,
        all_webhooks,
        summary="The addresses that are told what happens, as an admin",
        response_model=WebhooksAnswer,
        **described,
    )
    _add_post(
        app,
        projects,
        "webhooks",
        NewWebhook,
        lambda access, new: make_webhook(access, new.url, new.events)._asdict(),
        summary="Tell an address what happens from now on, as an admin",
        response_model=WebhookSecret,
        example={"url": "https://example.com/labels", "events": ["text.decided"]},
    )
    app.add_api_route(
        f"{path}/{{webhook}}",
        withdraw,
        methods=["DELETE"],
        summary="Tell an address no more, as an admin",
        status_code=204,
        **described,
    )


async def _stream(path: Path, folder: tempfile.TemporaryDirectory[str]) -> AsyncIterator[bytes]:
    """The file in parts; it goes when it was sent, or nobody waits for it."""
    with folder, path.open("rb") as file:
        while part := await asyncio.to_thread(file.read, _CHUNK):
            yield part


def _filler(name: str, models: Models) -> str | Classifier:
    """A model of this server, or `LIVE`: nobody may load another one here."""
    if name == LIVE:
        return name
    served = {each.name: each.classifier for each in models}
    if name not in served:
        raise InputError(
            "expected fill as one of {names}, found {name}",
            names=", ".join((LIVE, *served)),
            name=name[:60],
        )
    return served[name]


def _cursor(cursor: Cursor) -> str:
    value, text_id = cursor
    return str(text_id) if value is None else f"{value}:{text_id}"
