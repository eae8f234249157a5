"""What the tests of the pages 작업 and 설정 share: projects, and a page with its elements."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from malmoi.app.jobs import import_key, jobs
from malmoi.app.projects.imports import ImportOrder, start_import
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.connection import database_url
from malmoi.labels.importing import WayOfReading
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore
from malmoi.labels.text_import import ImportReport
from malmoi.text.reading.sources import Source, source_of_upload

MAIN = Path(__file__).parents[3] / "app" / "main.py"
LOCAL = Person(name="지은", is_local=True)


class Upload(io.BytesIO):
    """What Streamlit hands over for a file."""

    def __init__(self, data: bytes, name: str = "x.csv") -> None:
        super().__init__(data)
        self.name, self.size = name, len(data)


def open_page(module: str = "projects", **query: str) -> AppTest:
    page = AppTest.from_file(str(MAIN), default_timeout=600)
    if module != "projects":
        # A page of a callable is known by its place in the address.
        page.query_params["page"] = module
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def store() -> ProjectStore:
    return ProjectStore(database_url())


def made(
    *texts: str, name: str = "리뷰", labels: str = "긍정,부정,중립", **more: Any
) -> ProjectAccess:
    new = NewProject(
        name=name, labels=[ProjectLabel(name=one) for one in labels.split(",")], **more
    )
    access = store().create(LOCAL, new)
    if texts:
        finish(access, source_of_upload("글.txt", "\n".join(texts).encode()))
    return access


def finish(
    access: ProjectAccess, *sources: Source, way: WayOfReading | None = None
) -> ImportReport:
    running = start_import(access, ImportOrder(groups=[(way or WayOfReading(), sources)]))
    assert running.wait(120) and running.error is None
    jobs().forget(import_key(access.engine, access.project_id))
    assert isinstance(running.result, ImportReport)
    return running.result


def vote(access: ProjectAccess, name: str, labels: Sequence[str]) -> None:
    """Label the first texts as this person, each with one label."""
    own = store().access(Person(name=name, is_local=True), access.project_id)
    acts = [
        Act(text_id=place, kind="label", labels=[label], request_id=f"{name}{place}")
        for place, label in enumerate(labels, 1)
    ]
    save_acts(own, acts)


def by_label(elements: Any, label: str) -> Any:
    return next(one for one in elements if one.label.endswith(label))


def shown(page: AppTest) -> str:
    parts = [*page.error, *page.warning, *page.info, *page.success, *page.caption, *page.text]
    return "\n".join(str(part.value) for part in parts)
