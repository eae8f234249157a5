"""The place of an exported folder, looked at before torch is imported."""

from pathlib import Path

from malmoi.errors import InputError


def check_output(output: Path) -> None:
    """Refuse a place where something is, before anything long is begun.

    Raises:
        InputError: it is a file, or a folder that is not empty.
    """
    if output.is_dir() and not any(output.iterdir()):
        return
    if output.exists() or output.is_symlink():
        found = "a folder with files" if output.is_dir() else "a file"
        raise InputError(
            "expected a new or an empty folder for --output, found {found} at {output}; delete it "
            "or name another",
            found=found,
            output=output,
        )
