"""Both databases, the app's empty working folder, the small encoder of the fine-tuning tests."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from malmoi.labels.access import ProjectAccess
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore, set_member
from malmoi.labels.roles import Role
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.app.conftest import workplace
from tests.malmoi.finetune.conftest import encoder

__all__ = ["encoder", "workplace"]

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
LOCAL = Person(name="관리자", is_local=True)
Make = Callable[..., ProjectAccess]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of an empty database; the server runs as `postgres` if we are root, which it refuses."""
    if PROGRAMS is None:
        pytest.skip("no PostgreSQL server below /usr/lib/postgresql")
    # Not below pytest's own folders: every pytest that starts closes those to other users.
    with tempfile.TemporaryDirectory(prefix="malmoi-postgres-") as folder:
        yield from _served(Path(folder), PROGRAMS)


def _served(folder: Path, programs: Path) -> Iterator[str]:
    prefix = []
    if os.geteuid() == 0:
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL refuses root, and there is no runuser")
        prefix = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    made = subprocess.run(
        [*prefix, programs / "initdb", "-D", data, "-U", "malmoi", "-A", "trust", "-E", "UTF8"],
        capture_output=True,
        cwd=folder,
    )
    if made.returncode:
        pytest.skip(f"no PostgreSQL cluster could be made: {made.stderr.decode()[-200:]}")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    control = [*prefix, programs / "pg_ctl", "-D", data, "-w", "-t", "300", "-l", folder / "log"]
    subprocess.run([*control, "-o", options, "start"], check=True, capture_output=True, cwd=folder)
    try:
        yield f"postgresql+psycopg://malmoi@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, cwd=folder)


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """URL of a PostgreSQL database, emptied after each test."""
    yield postgres_server
    with create_engine(postgres_server).begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
        connection.execute(text("GRANT USAGE ON SCHEMA public TO PUBLIC"))


@pytest.fixture(params=["sqlite", "postgresql"])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/labels.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def make(any_url: str) -> Make:
    """Makes a project with texts in either database, for a local person or for members."""
    store = ProjectStore(any_url)

    def make_project(
        *texts: str,
        labels: str = "긍정,부정,중립",
        kind: str = "single",
        name: str = "리뷰",
        people: dict[str, Role] | None = None,
        **settings: object,
    ) -> ProjectAccess:
        # In the order of import, unless a test is about another one.
        settings = {"text_order": "plain"} | settings
        new = NewProject(
            name=name,
            labels=[ProjectLabel(name=one) for one in labels.split(",")],
            kind=kind,  # type: ignore[arg-type]
            settings=ProjectSettings(**settings),  # type: ignore[arg-type]
        )
        access = store.create(LOCAL, new)
        for person, role in (people or {}).items():
            set_member(access, person, role)
        if texts:
            lines = "\n".join(texts).encode()
            import_texts(access, [source_of_upload("글.txt", lines)])
        return access

    return make_project


def for_person(access: ProjectAccess, name: str) -> ProjectAccess:
    """The same project for somebody who has logged in."""
    person = Person(name=name)
    return ProjectAccess(engine=access.engine, project_id=access.project_id, person=person)
