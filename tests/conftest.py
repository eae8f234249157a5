"""What holds for every test and for the commands that tests start, and the sample texts."""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from malmoi.command_line import spare_the_collector

# Thousands of tests, too, are objects that stay.
spare_the_collector()

# The test models are so small that a second thread costs more than it gives, and threads that
# spin while they wait starve the other processes on a two-core machine. Set before torch loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# A suite started in the background of a shell without job control ignores Ctrl-C, and so would the
# commands that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Engines are compared only where a test is about that: it takes half a minute a model.
os.environ.setdefault("MALMOI_ENGINE", "torch")
# Nothing is fetched from the Hub in tests: fail at once instead of after retries.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Tests stand in folders of their own, and find no run or label of this checkout there.
os.environ["MALMOI_HOME"] = "."

# The same examples in every run, however slow the machine is: a test fails for a fault of the code
# and for nothing else.
settings.register_profile(
    "tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

# The longest files, with few tests for their time: begun first, for whoever gets one of them last
# works on it alone while the other processes have nothing to do.
LONG = (
    *("test_exact_resume.py", "test_export.py", "test_end_to_end.py", "test_texts.py"),
    *("test_browser_labelling.py", "test_training.py", "test_kfold.py", "test_processes.py"),
    *("test_learning.py", "test_predictions.py", "test_labels.py", "test_files_that_freeze.py"),
    *("test_chosen_model.py", "test_browser_review.py", "test_leasing.py"),
)

COMMENTS = Path(__file__).parents[1] / "corpora" / "comments"
# The first comments of each section. Golden pieces, vocabularies and losses in the tests are of
# these 1,000, so comments added at the end of a section change nothing and take no time.
FIRST_COMMENTS = {"games": 170, "news": 180, "shops": 180, "sports": 300, "videos": 170}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session")
def comments() -> list[str]:
    """A thousand of the sample comments, one a text."""
    return [
        line
        for section, number in FIRST_COMMENTS.items()
        for line in (COMMENTS / f"{section}.txt").read_text(encoding="utf-8").split("\n")[:number]
    ]


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Streamlit's test runner makes each page the main module, and leaves it there.

    A process that a later test spawns would run that page again before its work, and die of it.
    """
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


@pytest.fixture
def named_too_early(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files that got their name before they were on the disk: empty ones after a power cut."""
    on_disk: set[tuple[int, int, int]] = set()
    early: list[str] = []
    fsync = os.fsync

    def state(found: os.stat_result) -> tuple[int, int, int]:
        return found.st_ino, found.st_size, found.st_mtime_ns

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        on_disk.add(state(os.fstat(descriptor)))

    def watched(rename: Callable[..., None]) -> Callable[..., None]:
        def renamed(source: str | Path, target: str | Path, **more: Any) -> None:
            files = [path for path in [Path(source), *Path(source).rglob("*")] if path.is_file()]
            early.extend(
                f"{path} as {target}" for path in files if state(path.stat()) not in on_disk
            )
            rename(source, target, **more)

        return renamed

    monkeypatch.setattr(os, "fsync", synced)
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    return early


@pytest.fixture(scope="module")
def running_chromium() -> Iterator[Any]:
    """A real Chromium for all tests of a file; skipped where there is none.

    Not of several files: until it is closed, nothing else can run an event loop in this thread.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            timeout=300_000,
        )
        yield browser
        browser.close()


@pytest.fixture
def chromium(running_chromium: Any) -> Iterator[Any]:
    """That Chromium (a playwright Browser), which keeps nothing of the tests before."""
    yield running_chromium
    for context in running_chromium.contexts:
        context.close()
