"""How every stage's `main` meets its user: flags from a dataclass, errors in one line."""

import errno
import importlib
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import tyro

from corpora.errors import InputError

Settings = TypeVar("Settings")
_PLACE_ERRORS = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)
_PLACE_NUMBERS = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)


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
        settings_class: keyword-only dataclass whose fields are the flags.
        main: what the command does.
        about: first paragraph of `--help`.
        arguments: the flags; those of the process when None.
        program: what `--help` calls the command; the script's name when None.

    Returns:
        The exit code: 0, 2 for bad input or a full disk, 130 after Ctrl-C. Any other exception
        is a defect of ours and keeps its traceback.
    """
    # An emoji on its way to a file or pipe in CP949 must not end a run of hours.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        # tyro itself exits with code 2 for an unknown or malformed flag.
        settings = tyro.cli(
            settings_class,
            prog=program,
            description=about,
            args=arguments,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
        main(settings)
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # Somebody piped us into `head` and has seen enough; nor can Python flush at exit then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if is_full_disk(error):
            return _fail(full_disk_line(error, "run the command again"))
        if isinstance(error, _PLACE_ERRORS) or error.errno in _PLACE_NUMBERS:
            return _fail(f"cannot use {error.filename}: {error.strerror}; check the path")
        raise
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


def is_full_disk(error: OSError) -> bool:
    """Whether there is no space left, on the disk or for this user."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def full_disk_line(error: OSError, then: str) -> str:
    """The one line about a full disk; `then`: what to do once there is space."""
    place = f" while writing {error.filename}" if error.filename else ""
    return f"the disk is full{place}; free some space and {then}"


def run_one_of(
    program: str, commands: Mapping[str, tuple[str, str]], arguments: Sequence[str]
) -> int:
    """Run the command that the first argument names, as `python -m ROOM COMMAND …` does.

    Args:
        program: how the user calls it, without the command.
        commands: name -> (module, one line about it). Modules have `Settings`, `main` and `ABOUT`
            and are imported only when called: one must not wait for what another needs.
        arguments: command and flags.

    Returns:
        The exit code, as `run_command`; 2 for an unknown command.
    """
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        print(f"usage: {program} COMMAND …   (COMMAND --help shows its flags)\n")
        print("\n".join(f"  {name:<10}{about}" for name, (_, about) in commands.items()))
        return 0
    if name not in commands:
        return _fail(f"expected a command of {', '.join(commands)}, found {name!r}; see --help")
    command = importlib.import_module(commands[name][0])
    return run_command(
        command.Settings,
        command.main,
        command.ABOUT,
        arguments=rest,
        program=f"{program} {name}",
    )


def _fail(message: str) -> int:
    sys.stdout.flush()
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def is_terminal() -> bool:
    """Whether progress can be redrawn in place (a terminal) or must be plain lines (a log)."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
