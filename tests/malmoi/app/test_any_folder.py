"""The app is the same one, and as private, whichever folder it is started from."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from malmoi.errors import InputError
from tests.malmoi.app.conftest import make_model
from tests.malmoi.app.servers import ROOT, Server, listening_on, new_page, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KEPT = (".py", ".toml", ".txt", ".js", ".css", ".html", ".po")
# One run of the app, one saved label; then what the page saw of models and database.
VISIT = """
import sys
from streamlit.testing.v1 import AppTest
assert not AppTest.from_file(sys.argv[1], default_timeout=120).run().exception
page = AppTest.from_string('''
from malmoi.app.views.single import show
from malmoi.app.visit import draw_sidebar
show(draw_sidebar())
''', default_timeout=120).run()
page.text_area[0].input("배송이 빨라요")
next(one for one in page.button if one.label == "분류하기").click().run()
next(one for one in page.button if one.label == "저장").click().run()
assert not page.exception and not page.error, page.error
print(page.selectbox(key="model").options)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "다른 폴더"
    folder.mkdir()
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with one run in it."""
    copy = tmp_path / "checkout"
    for room in ("malmoi", "corpora", "app"):
        shutil.copytree(
            ROOT / room,
            copy / room,
            ignore=lambda folder, names: {
                name
                for name in names
                if Path(folder, name).is_file() and Path(name).suffix not in KEPT
            },
        )
    shutil.copy(ROOT / "pyproject.toml", copy)
    make_model(copy / "runs" / "finetune" / "x")
    return copy


def test_a_click_collects_no_garbage_of_all_of_torch() -> None:
    """Streamlit's default, which makes a click cost six times as much."""
    settings = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text("utf-8"))
    assert settings["runner"]["postScriptGC"] is False


def test_only_this_machine_by_a_relative_path(repository: Path) -> None:
    """As from the root of the repository."""
    with serving(repository, script="app/main.py") as server:
        assert listening_on(server.port) == {"127.0.0.1"}


def test_settings_of_another_project_open_nothing(elsewhere: Path) -> None:
    (elsewhere / ".streamlit").mkdir()
    (elsewhere / ".streamlit" / "config.toml").write_text('[server]\naddress = "0.0.0.0"\n')
    with serving(elsewhere) as server:
        assert listening_on(server.port) == {"127.0.0.1"}


def test_an_address_that_was_asked_for_is_taken(elsewhere: Path) -> None:
    with serving(elsewhere, flags=["--server.address", "0.0.0.0"]) as server:
        assert listening_on(server.port) == {"any"}


def test_models_and_labels_are_those_of_the_repository(repository: Path, elsewhere: Path) -> None:
    _visit(repository, elsewhere, {})
    assert _labels(repository / "runs" / "labels.db") == 1
    assert list(elsewhere.iterdir()) == []


@pytest.mark.browser
def test_a_server_that_found_no_settings_ends_at_the_first_visit(
    chromium: "Browser", elsewhere: Path
) -> None:
    """Such as a copy without its hidden folders."""
    copy = elsewhere / "copy" / "app"
    shutil.copytree(ROOT / "app", copy, ignore=shutil.ignore_patterns(".streamlit", "__pycache__"))
    with serving(elsewhere, script=copy / "main.py") as server:
        page = new_page(chromium)
        page.goto(server.address)
        page.get_by_text("모든 네트워크에 열려 있어 끝냅니다").wait_for()
        assert page.get_by_label("분류할 글").count() == 0
        server.process.wait(timeout=60)
        (line,) = [one for one in server.said().splitlines() if "expected an address" in one]
        assert f"streamlit run {copy / 'main.py'}" in line


def test_a_link_starts_no_server(elsewhere: Path) -> None:
    """Streamlit looks for settings beside the link, and would listen on every interface."""
    (elsewhere / "desk_link.py").symlink_to(ROOT / "app" / "main.py")
    with (
        pytest.raises(InputError, match="expected the app to answer"),
        serving(elsewhere, script="desk_link.py"),
    ):
        pass


def test_pages_and_a_model_are_there_before_anybody_comes(
    repository: Path, elsewhere: Path
) -> None:
    """The model only once its engines are compared, which takes both cores for long."""
    home = {"MALMOI_HOME": str(repository)}
    with serving(elsewhere, settings=home) as server:
        _wait_for_library(server, "pandas")
    compared = (
        "from pathlib import Path; from malmoi.model_folders import local_source; "
        "from malmoi.inference.onnx_exports import write_measurement; "
        "write_measurement(Path(local_source('x')), {'engine': 'torch-fp32'})"
    )
    own = {**os.environ, **home, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", compared], cwd=elsewhere, env=own, check=True)
    with serving(elsewhere, settings=home) as server:
        _wait_for_library(server, "libtorch_cpu")


def _wait_for_library(server: Server, name: str) -> None:
    """Wait until the process of a server has a library in its memory."""
    maps = Path(f"/proc/{server.process.pid}/maps")
    if not maps.is_file():
        pytest.skip("no /proc on this machine to read the libraries of a process from")
    end = time.monotonic() + 300
    while name not in maps.read_text(encoding="utf-8"):
        assert time.monotonic() < end, f"{name} was not loaded"
        time.sleep(0.2)


def _visit(repository: Path, folder: Path, settings: dict[str, str]) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALMOI_")}
    done = subprocess.run(
        [sys.executable, "-c", VISIT, str(repository / "app" / "main.py")],
        cwd=folder,
        env={**own, "PYTHONPATH": str(repository), **settings},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['x']\n"


def _labels(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT count(*) FROM malmoi_annotations").fetchone()[0]
