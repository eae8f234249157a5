"""`malmoi models get NAME`: a released model onto this disk, verified."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import httpx2
import tyro

from malmoi.errors import InputError
from malmoi.files import file_sha256, sync_tree, write_at_once
from malmoi.messages import Phrase
from malmoi.model_folders import CONFIG
from malmoi.paths import checkpoint, home
from malmoi.text.public.description import PublicSource, RemoteFile
from malmoi.text.public.fetching import fetch_source

ABOUT = (
    "get NAME brings a released model into checkpoints/, verified and resumable; list shows which "
    "ones there are; index FOLDER writes models.json into a folder of models, so that a web server "
    "of the folder can be named by --from."
)
INDEX = "models.json"
PLACE_VARIABLE = "MALMOI_MODELS"
_SECONDS = 30.0

# Model -> path of each of its files -> its size and SHA-256.
Index = dict[str, dict[str, dict[str, Any]]]


@dataclass(kw_only=True)
class ModelsSettings:
    """What is done with which model."""

    action: tyro.conf.Positional[Literal["get", "list", "index"]]
    """get, list or index."""
    name: tyro.conf.Positional[str | None] = None
    """Name of the model; of index the folder."""
    place: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """Where the models are: the address of a release, or a folder such as the checkpoints/ of a
    clone; by default what MALMOI_MODELS names."""


def main(settings: ModelsSettings) -> None:
    """Fetch a model, show which there are, or write their index.

    Raises:
        InputError: the place has no such model, or a file of it is not as its index says.
    """
    if settings.action == "index":
        folder = Path(settings.name or ".")
        write_at_once(folder / INDEX, json.dumps(index_of(folder), indent=1) + "\n")
        print(f"{folder / INDEX}: {len(index_of(folder))} models")
        return
    place = settings.place or os.environ.get(PLACE_VARIABLE)
    if not place:
        raise InputError(
            "expected the place of the models, found none; give the address of a release or the "
            "checkpoints/ of a clone as --from, or as {variable}",
            variable=PLACE_VARIABLE,
        )
    index = _read_index(place)
    if settings.action == "list":
        for name, files in index.items():
            there = " (here)" if checkpoint(name).exists() else ""
            print(f"{name}  {sum(file['size'] for file in files.values()) / 1e6:,.0f} MB{there}")
        return
    if settings.name not in index:
        raise InputError(
            "expected a model of {where} ({models}), found {name}",
            where=place,
            models=", ".join(index) or Phrase("none"),
            name=settings.name,
        )
    _get(settings.name, index[settings.name], place)


def index_of(folder: Path) -> Index:
    """The models in a folder, by what their files hold.

    Raises:
        InputError: it has none.
    """
    models = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    if not models:
        raise InputError(
            "expected a folder of models, found none in {folder}; name another", folder=folder
        )
    return {
        model.name: {
            path.relative_to(model).as_posix(): {
                "size": path.stat().st_size,
                "sha256": file_sha256(path),
            }
            for path in sorted(model.rglob("*"))
            if path.is_file()
        }
        for model in models
    }


def _read_index(place: str) -> Index:
    if "://" not in place:
        return index_of(Path(place))
    address = f"{place.rstrip('/')}/{INDEX}"
    try:
        answer = httpx2.get(address, timeout=_SECONDS, follow_redirects=True).raise_for_status()
        index: Index = answer.json()
        for path, file in [pair for files in index.values() for pair in files.items()]:
            if len(file["sha256"]) != 64 or file["size"] < 0 or ".." in Path(path).parts:
                raise ValueError(f"a wrong line about {path}")
    except (
        httpx2.HTTPError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ) as error:
        raise InputError(
            "expected the index of a release at {address}, found none ({error}); check the "
            "address, or download the models and name their folder by --from",
            address=address,
            error=" ".join(str(error).split()) or type(error).__name__,
        ) from error
    return index


def _get(name: str, files: dict[str, dict[str, Any]], place: str) -> None:
    target = checkpoint(name)
    if target.exists():
        raise InputError(
            "expected no model yet in {target}, found one; it is used as {name}, or remove it",
            target=target,
            name=name,
        )
    is_folder = "://" not in place
    source = PublicSource(
        name=name,
        about="a released model",
        homepage=place,
        licence="see its README.md",
        citation="",
        labels="",
        files=tuple(
            RemoteFile(
                name=path,
                url=f"{place.rstrip('/')}/{name}/{quote(path)}",
                sha256=file["sha256"],
                size=file["size"],
            )
            for path, file in files.items()
        ),
    )
    # Whole before it has its name; a fetch that was broken off goes on here.
    unfinished = home() / "runs" / "cache" / "models" / name
    mirror = Path(place) / name if is_folder else None
    fetch_source(source, unfinished, mirror=mirror)
    sync_tree(unfinished)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished.rename(target)
    print(f"{name} -> {target}")
