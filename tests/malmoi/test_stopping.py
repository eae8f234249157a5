"""SIGTERM that comes where Python swallows what it raises still ends a command."""

import os
import signal

import pytest

from malmoi.command_line import Stopped, raise_if_stopped, run_one_of
from malmoi.commands.doctor import DoctorSettings
from malmoi.commands.registry import COMMANDS
from malmoi.errors import InputError
from malmoi.pretrain.engine.loop import collect_signals


class Swallows:
    """Python reports, and drops, what is raised in here."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_swallowed_sigterm_ends_a_training_before_its_first_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reached: list[str] = []

    def main(settings: DoctorSettings) -> None:
        swallows = Swallows()
        del swallows
        reached.append("after the signal")
        with collect_signals():
            reached.append("a step")

    monkeypatch.setattr("malmoi.commands.doctor.main", main)
    assert run_one_of("malmoi", COMMANDS, ["doctor"]) == 128 + signal.SIGTERM
    assert reached == ["after the signal"] and "stopped" in capsys.readouterr().err
    raise_if_stopped()  # the next command has not been asked


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        # What we refuse is known to be ours, whatever came before.
        (InputError("expected a file, found none"), 2, "error: expected a file, found none"),
        # A library may have made another error of what the signal raised.
        (ValueError("half an import"), 128 + signal.SIGTERM, "stopped"),
    ],
)
def test_what_is_wrong_with_the_input_is_said_though_a_signal_was_swallowed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
    said: str,
) -> None:
    def main(settings: DoctorSettings) -> None:
        swallows = Swallows()
        del swallows
        raise error

    monkeypatch.setattr("malmoi.commands.doctor.main", main)
    assert run_one_of("malmoi", COMMANDS, ["doctor"]) == code
    assert capsys.readouterr().err.strip().splitlines()[-1] == said


def test_without_a_signal_nothing_is_raised() -> None:
    try:
        raise_if_stopped()
    except Stopped:
        pytest.fail("nobody asked")
