"""What long work says in a log: now and then a line, with the time that is left."""

import pytest

from malmoi import progress
from malmoi.progress import duration, shown_progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress.time, "monotonic", made)
    return made


def test_the_time_left_is_of_the_rate_so_far(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_progress("steps") as show:
        show("fold 1", 1, 400)
        clock.now += 60
        show("fold 1", 100, 400)
        clock.now += 1
        show("fold 1", 101, 400)
    assert capsys.readouterr().out == "fold 1: 100 of 400 (25%) steps, 60 s, about 3 min left\n"


def test_what_an_earlier_run_did_took_no_time(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_progress("steps") as show:
        show("fold 2", 280, 400, skipped=280)
        show("fold 3", 281, 400, skipped=280)
        clock.now += 60
        show("fold 3", 301, 400, skipped=280)
    assert "301 of 400 (75%) steps, 60 s, about 5 min left" in capsys.readouterr().out


def test_what_comes_before_the_first_step_is_no_measure(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_progress("steps") as show:
        clock.now += 100
        show("fold 1", 1, 100)
        clock.now += 20
        show("fold 1", 21, 100)
    first, second = capsys.readouterr().out.splitlines()
    assert "left" not in first
    assert second.endswith("2 min, about 79 s left")


def test_where_nothing_is_known_nothing_is_promised(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_progress() as show:
        clock.now += 60
        show("reading", 1_234)
        clock.now += 60
        show("going on", 300, 400, skipped=300)
    assert capsys.readouterr().out.splitlines() == [
        "reading: 1,234 texts, 60 s",
        "going on: 300 of 400 (75%) texts, 2 min",
    ]


def test_durations_in_words() -> None:
    table = {0.4: "0 s", 119: "119 s", 120: "2 min", 7_200: "2.0 h", 432_000: "5.0 days"}
    assert {seconds: duration(seconds) for seconds in table} == table
