"""Whether torch and transformers are installed: a server needs neither."""

from importlib import import_module
from importlib.util import find_spec

from malmoi.errors import InputError

_PACKAGES = ("torch", "transformers")
# What to do where nothing else will do.
INSTALL_TORCH = "pip install -c constraints.txt torch transformers"


def torch_is_there() -> bool:
    """Whether both are installed; neither is imported."""
    return all(find_spec(package) is not None for package in _PACKAGES)


def need_torch(what: str, instead: str) -> None:
    """Import both, for what cannot do without.

    Args:
        what: needs them; the beginning of the line.
        instead: what to do where they are missing; the end of the line.

    Raises:
        InputError: one is not installed.
    """
    try:
        for package in _PACKAGES:
            import_module(package)
    except ImportError as error:
        # One that is there and cannot be loaded, as for lack of memory, has its own line.
        if not isinstance(error, ModuleNotFoundError) and "No module named" not in str(error):
            raise
        raise InputError(
            f"{what} needs torch and transformers, which are not installed; {instead}"
        ) from error
