"""All public sources by name: a file of `sources/` each.

The file says what texts these are, under which licence, what their labels mean, and which files of
a repository on GitHub they are, at a commit. `path` is where a file stands there, if not by its
name; a file that is `made_by` a function is made of those that `made_of` names, which come from the
file at `path`, else from the archive of the repository. `layout` is how a file is read; above the
files, how all of them are.
"""

import difflib
import tomllib
from functools import cache
from pathlib import Path
from urllib.parse import quote

from malmoi.errors import InputError
from malmoi.messages import Phrase
from malmoi.text.public.description import PublicSource, RemoteFile, Variant

_FOLDER = Path(__file__).with_name("sources")


@cache
def sources() -> dict[str, PublicSource]:
    """All public sources by name."""
    return {path.stem: _read(path) for path in sorted(_FOLDER.glob("*.toml"))}


def find_source(name: str) -> PublicSource:
    """The source of that name.

    Raises:
        InputError: there is none.
    """
    known = sources()
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1)
    nearest = Phrase("did you mean {name}?", name=close[0]) if close else None
    raise InputError(
        "expected the name of a public source ({names}) or hub:OWNER/NAME, found {name!r}; {hint}",
        names=", ".join(known),
        name=name,
        hint=nearest or Phrase("malmoi list shows them"),
    )


def _read(path: Path) -> PublicSource:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    repository, commit = content.pop("repository"), content.pop("commit")
    common = content.pop("layout", None)
    files = []
    for file in content.pop("files"):
        there = file.pop("path", None if "made_of" in file else file["name"])
        if there is None:
            url = f"https://github.com/{repository}/archive/{commit}.tar.gz"
        else:
            url = f"https://raw.githubusercontent.com/{repository}/{commit}/{quote(there)}"
        layout = file.pop("layout", common)
        variants = tuple(Variant(**variant) for variant in file.pop("variants", ()))
        made_of = tuple(file.pop("made_of", ()))
        files.append(RemoteFile(**file, url=url, layout=layout, variants=variants, made_of=made_of))
    return PublicSource(name=path.stem, **content, files=tuple(files))
