"""The version of this code: of the checkout that it lies in, else of the installed package."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def version() -> str:
    """As `0.2.0`; `unknown` of a copy of the package alone, which nobody has installed."""
    if _PROJECT.is_file():
        import tomllib

        project = tomllib.loads(_PROJECT.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == "malmoi":  # and not the project that a copy lies in
            return str(project["version"])
    try:
        return installed_version("malmoi")
    except PackageNotFoundError:
        return "unknown"
