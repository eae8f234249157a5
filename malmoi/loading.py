"""Loading by transformers: its errors in one line, its reports and bars silenced."""

from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError
from transformers.utils import logging as transformers_logging

from malmoi.command_line import is_full_disk
from malmoi.errors import InputError


@contextmanager
def loading(source: str, what: str) -> Iterator[None]:
    """Turn what transformers raises for a bad or unreachable `source` into one InputError."""
    try:
        with quiet_transformers():
            yield
    except InputError:
        raise
    except SafetensorError as error:
        raise InputError(
            "the weights in {source} are damaged ({error}); copy or train them again",
            source=source,
            error=_one_line(error),
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        # A damaged file makes transformers raise nearly everything: AttributeError,
        # ZeroDivisionError, dataclass errors, and tokenizers a bare Exception.
        if isinstance(error, OSError) and is_full_disk(error):
            raise  # A full disk while downloading: the command line has its own line for it.
        said = _one_line(error)
        if not isinstance(error, OSError | ValueError | RuntimeError):
            said = f"{type(error).__name__}: {said}"  # such as 'x' of a KeyError
        raise InputError(
            "cannot load {what} of {source}: {said}", what=what, source=source, said=said
        ) from error


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' load reports and bars: the callers check and report themselves."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
