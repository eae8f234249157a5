"""How every stage's `main` meets its user: flags from a dataclass, errors in one line."""

import atexit
import errno
import gc
import importlib
import io
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints

from malmoi.errors import ERROR_VARIABLE, InputError, UnexpectedError
from malmoi.messages import Phrase

Settings = TypeVar("Settings")
_PLACE_ERRORS = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)
_RESOURCE_ERRORS = (MemoryError, ImportError, RuntimeError, OSError)
_PLACE_NUMBERS = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
# Seconds in which a further SIGTERM is taken for the same one.
_PATIENCE = 10.0
# How libraries that are not Python's say that there is no memory: torch, and the loader of shared
# libraries.
_MEMORY_WORDS = (
    "not enough memory",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to map segment",
    "std::bad_alloc",
)
# Of packages that are not in malmoi[train].
_EXTRAS = {"streamlit": "app", "krippendorff": "app", "ray": "cluster"}


class Stopped(BaseException):
    """A signal asked the process to end. Not an `Exception`, so that nothing takes it for a fault.

    Attributes:
        number: of the signal; the exit code is 128 more.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


# Signals that asked this process to end.
_asked: list[int] = []


def raise_if_stopped() -> None:
    """Raise once more what a signal raised where Python swallows it: in a callback, in an import.

    To be called before something long begins.

    Raises:
        Stopped: a signal has asked the command to end.
    """
    if _asked:
        raise Stopped(_asked[0])


def run_command(
    settings_class: type[Settings],
    main: Callable[[Settings], None],
    about: str,
    *,
    arguments: Sequence[str] | None = None,
    program: str | None = None,
) -> int:
    """Parse the flags, run `main`, and turn errors of the user's input into one line.

    Args:
        settings_class: keyword-only dataclass whose fields are the flags; see `parse_flags`.
        main: what the command does. What takes long to import it imports itself, so that the help
            and a mistyped flag are answered at once.
        about: first paragraph of `--help`.
        arguments: the flags; those of the process when None.
        program: what `--help` calls the command; the script's name when None.

    Returns:
        The exit code: 0, 2 for bad input, a full disk or too little memory, 130 after Ctrl-C, 143
        after SIGTERM. Any other exception is a defect of ours and keeps its traceback.
    """

    return _answered(lambda: _parse_and_run(settings_class, main, about, arguments, program))


def _parse_and_run(
    settings_class: type[Settings],
    main: Callable[[Settings], None],
    about: str,
    arguments: Sequence[str] | None,
    program: str | None,
) -> None:
    # Here, where Ctrl-C is one line already.
    from malmoi.flags import flag_names, parse_flags

    settings = parse_flags(settings_class, program=program, about=about, arguments=arguments)
    try:
        main(settings)
    except InputError as error:
        if (schema := getattr(settings_class, "SCHEMA", None)) is None:
            raise
        from malmoi.settings import flag_as_key

        flags = flag_names(settings_class)
        raise error.spelled(lambda flag: flag_as_key(flag, schema, flags)) from error


def spare_the_collector() -> None:
    """Let this process look for garbage less often, and not at its end.

    torch and transformers make a million objects that stay. To go through them again and again
    while they are imported, and once more before the process ends, takes two seconds.
    """
    gc.set_threshold(10_000)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def _answered(run: Callable[[], None]) -> int:
    """Call `run`, say in one line what its user must know, and return the exit code."""
    spare_the_collector()
    if sys.stdout is None:
        return _fail("expected a standard output, found it closed; redirect it to a file")
    # An emoji on its way to a file or pipe in CP949 must not end a run of hours.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _sigterm_raises():
            run()
            sys.stdout.flush()
    except InputError as error:
        return _fail(error)
    except BrokenPipeError:
        if not _stdout_is_gone():
            raise
        # Somebody piped us into `head` and has seen enough; nor can Python flush at exit then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (KeyboardInterrupt, Stopped) as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        print("stopped", file=sys.stderr)
        return 128 + number
    except Exception as error:
        known = _resource_error(error) if isinstance(error, _RESOURCE_ERRORS) else None
        if known is None:
            _tell_starter(UnexpectedError(error))
            raise
        return _fail(known)
    return 0


def _stdout_is_gone() -> bool:
    """Whether it is standard output that is broken, and not a pipe to a process of ours."""
    try:
        sys.stdout.flush()
        descriptor = sys.stdout.fileno()
    except BrokenPipeError:
        return True
    except (OSError, ValueError):  # no file at all
        return False
    # What was written in one go has left nothing in the buffer that could fail again.
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _resource_error(error: Exception) -> InputError | None:
    """What to say where disk, memory, a path or a package is what is wrong; else None."""
    if isinstance(error, ModuleNotFoundError):
        return _missing_package_error(error)
    number = error.errno if isinstance(error, OSError) else None
    words = " ".join(str(error).split())
    if (
        isinstance(error, MemoryError)
        or number == errno.ENOMEM
        or any(sign in words.lower() for sign in _MEMORY_WORDS)
    ):
        return InputError(
            "not enough memory{detail}; close other programs, raise the limit (ulimit -v) or give "
            "less at a time",
            detail=f" ({words[:200]})" if words else "",
        )
    if isinstance(error, OSError):
        if is_full_disk(error):
            return full_disk_error(error, Phrase("run the command again"))
        if isinstance(error, _PLACE_ERRORS) or number in _PLACE_NUMBERS:
            return InputError(
                "cannot use {file}: {reason}; check the path",
                file=error.filename,
                reason=error.strerror,
            )
    return None


def _missing_package_error(error: ModuleNotFoundError) -> InputError | None:
    """What to install, where a package of an extra is not; None for a module of our own."""
    package = (error.name or "").split(".")[0]
    if package in ("", "malmoi") or package in sys.modules:
        return None
    return InputError(
        "this command needs {package}, which is not installed; pip install 'malmoi[{extra}]' (in a "
        "clone: make)",
        package=package,
        extra=_EXTRAS.get(package, "train"),
    )


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that half-written files are removed."""

    last = -_PATIENCE

    def stop(number: int, frame: Any) -> None:
        # A second one must not end the cleaning up; but the first may have come where Python
        # swallows what is raised, in a __del__ or a callback.
        nonlocal last
        _asked.append(number)
        now = time.monotonic()
        if now - last >= _PATIENCE:
            last = now
            raise Stopped(number)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: the caller handles signals
        yield
        return
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        # A library may have made another error of it, as within an import.
        if _asked:
            raise Stopped(_asked[-1]) from error
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        _asked.clear()


def is_full_disk(error: OSError) -> bool:
    """Whether there is no space left, on the disk or for this user."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def full_disk_error(error: OSError, then: str) -> InputError:
    """The one line about a full disk; `then`: what to do once there is space."""
    place = Phrase(" while writing {file}", file=error.filename) if error.filename else ""
    return InputError("the disk is full{at}; free some space and {then}", at=place, then=then)


def run_one_of(
    program: str,
    commands: Mapping[str, tuple[str, str]],
    arguments: Sequence[str],
    groups: Mapping[str, Mapping[str, tuple[str, str]]] = MappingProxyType({}),
) -> int:
    """Run the command that the first argument names, as `malmoi COMMAND …` does.

    Args:
        program: how the user calls it, without the command.
        commands: name -> (module, one line about it). Modules have `ABOUT`, and a `main` that
            takes its settings. They are imported only when called: one must not wait for what
            another needs.
        arguments: command and flags.
        groups: commands that have commands of their own, by name.

    Returns:
        The exit code, as `run_command`; 2 for an unknown command.
    """
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        print(f"usage: {program} COMMAND …   (COMMAND --help shows its flags; --version)\n")
        print("\n".join(f"  {name:<10}{about}" for name, (_, about) in commands.items()))
        return 0
    if name == "--version":
        from malmoi.version import version

        print(f"malmoi {version()}")
        return 0
    if name not in commands:
        return _fail(f"expected a command of {', '.join(commands)}, found {name!r}; see --help")

    if name in groups:
        return run_one_of(f"{program} {name}", groups[name], rest)

    def run() -> None:
        command = importlib.import_module(commands[name][0])
        settings = next(iter(get_type_hints(command.main).values()))
        _parse_and_run(settings, command.main, command.ABOUT, rest, f"{program} {name}")

    return _answered(run)


def _fail(error: InputError | str) -> int:
    if sys.stdout is not None:
        sys.stdout.flush()
    print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    if isinstance(error, InputError):
        _tell_starter(error)
    return 2


def _tell_starter(error: InputError) -> None:
    """Write the error for the process that started this one and says it in another language."""
    if file := os.environ.get(ERROR_VARIABLE):
        import json

        from malmoi.files import write_at_once

        with suppress(OSError):  # the disk is full
            write_at_once(Path(file), json.dumps(error.as_json(), ensure_ascii=False))


def is_terminal() -> bool:
    """Whether progress can be redrawn in place (a terminal) or must be plain lines (a log)."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
