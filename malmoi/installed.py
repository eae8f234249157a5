"""What is not installed, in one line: a server needs no torch, and not every machine exports."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from malmoi.errors import InputError
from malmoi.interrupts import interrupts_held

TORCH = ("torch", "transformers")
INSTALL_TORCH = "pip install 'malmoi[train]' (in a clone: make)"


def torch_is_there() -> bool:
    """Whether torch and transformers are installed; neither is imported."""
    return all(find_spec(package) is not None for package in TORCH)


def installed_version(package: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def need(what: str, *packages: str, instead: str) -> None:
    """Import packages for what cannot do without.

    Args:
        what: needs them; the beginning of the line.
        packages: names to import, which pip knows too.
        instead: what to do where one is missing; the end of the line.

    Raises:
        InputError: one is not installed.
    """
    try:
        # Of what is half imported, torch and scipy cannot be imported again.
        with interrupts_held():
            for package in packages:
                import_module(package)
    except ImportError as error:
        # One that is there and cannot be loaded, as for lack of memory, has its own line.
        if not isinstance(error, ModuleNotFoundError) and "No module named" not in str(error):
            raise
        are = "is" if len(packages) == 1 else "are"
        raise InputError(
            "{what} needs {packages: and }, which {are} not installed; {instead}",
            what=what,
            packages=packages,
            are=are,
            instead=instead,
        ) from error
