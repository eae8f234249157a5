"""`malmoi fetch NAME`: a public source onto this disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from malmoi.command_line import is_terminal
from malmoi.errors import InputError
from malmoi.text.public.catalog import find_source
from malmoi.text.public.fetching import fetch_source
from malmoi.text.public.hub import PREFIX, fetch_hub

ABOUT = (
    "Fetch a public source (malmoi list shows them) or a data set of the Hugging Face "
    "Hub (hub:OWNER/NAME), verify it, and say under which licence it stands."
)


@dataclass(kw_only=True)
class FetchSettings:
    """What is fetched from where to where."""

    name: tyro.conf.Positional[str]
    """Name of the source, or hub:OWNER/NAME."""
    mirror: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Folder that holds the files; taken from there, found by content, instead of the network."""
    output: Path | None = None
    """Folder to write to; data/NAME by default."""


def main(settings: FetchSettings) -> None:
    """Fetch, and print licence and citation."""
    if settings.name.startswith(PREFIX):
        _fetch_from_hub(settings)
        return
    source = find_source(settings.name)
    folder = settings.output or Path("data") / source.name
    outcome = fetch_source(source, folder, mirror=settings.mirror)
    if not outcome.fetched and not outcome.kept:
        raise InputError(
            "expected files of {name} ({missing}, …), found none; name another folder with --from "
            "or leave it out to download them",
            place=settings.mirror,
            name=source.name,
            missing=outcome.missing[0],
        )
    note = f" ({source.licence_note})" if source.licence_note else ""
    print(f"licence: {source.licence}{note}")
    print(f"citation: {source.citation}")
    print(f"labels: {source.labels}")
    there = len(outcome.fetched) + len(outcome.kept)
    missing = f"; without --from the other {len(outcome.missing)} are downloaded"
    print(
        f"{there} of {len(source.files)} files of {source.name} in {folder}"
        f"{missing if outcome.missing else ''}"
    )


def _fetch_from_hub(settings: FetchSettings) -> None:
    if settings.mirror is not None:
        raise InputError(
            "expected no --from with {name}, found {mirror}; data sets of the Hub come from the "
            "Hub",
            name=settings.name,
            mirror=settings.mirror,
        )
    short = settings.name.removeprefix(PREFIX).replace("/", "--")
    folder = settings.output or Path("data") / short
    fetched = fetch_hub(settings.name, folder, show_progress=is_terminal())
    print(f"licence: {fetched.licence}")
    print(f"citation: {fetched.citation}")
    print(f"{len(fetched.files)} files of {settings.name} in {folder}")
