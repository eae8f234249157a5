"""Public sources onto this disk: from their servers or a mirror, verified, and only once."""

import hashlib
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pooch
from filelock import FileLock, Timeout

from malmoi.errors import InputError
from malmoi.files import file_at_once, file_sha256
from malmoi.progress import BYTES, Progress, shown_progress
from malmoi.text.public.description import PublicSource, RemoteFile, Variant
from malmoi.text.public.fetched import Fetched, FetchedFile, read_fetched, write_fetched
from malmoi.text.public.mirror import Mirror, NotInMirrorError
from malmoi.text.public.repository_files import downloaded_members, write_made

# For a connection, and for the next bytes (assumptions).
_SECONDS = (10.0, 30.0)
_HTML_STARTS = (b"<!doctype html", b"<html")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a fetch did, as names of files.

    Attributes:
        fetched: written now.
        kept: there before, and right.
        missing: not in the mirror.
    """

    fetched: tuple[str, ...]
    kept: tuple[str, ...]
    missing: tuple[str, ...]


def fetch_source(
    source: PublicSource, folder: Path, *, mirror: Path | None = None, tries: int = 3
) -> Outcome:
    """Bring the files of a source into a folder, and say on standard output what happens.

    A file has its name only once it is whole and its SHA-256 is right. `SOURCE.json` records every
    file as it comes, so the next call goes on with the others.

    Args:
        source: what to fetch.
        folder: where to; made if it is missing.
        mirror: take the files from this folder and not from the network.
        tries: how often a file is asked for, a second and more apart.

    Raises:
        InputError: a file is not the one that is described, or cannot be had; the ones before it
            stay. Another fetch into the folder is under way.
    """
    files = Mirror(mirror) if mirror is not None else None
    # Not in the folder, where it would stay behind: a lock file must not be deleted.
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    lock = FileLock(Path(tempfile.gettempdir()) / f"malmoi-fetch-{digest}.lock")
    try:
        with lock.acquire(timeout=0):
            return _Fetch(source, folder, files, tries).run()
    except Timeout as error:
        raise InputError(
            "expected to be the only one to fetch here, found another fetch under way; wait for it "
            "or name another folder with --output",
            place=folder,
        ) from error


class _Fetch:
    def __init__(
        self, source: PublicSource, folder: Path, mirror: Mirror | None, tries: int
    ) -> None:
        self._source = source
        self._folder = folder
        self._mirror = mirror
        self._tries = tries
        self._record = read_fetched(folder) or Fetched(
            source=source.name,
            homepage=source.homepage,
            licence=source.licence,
            citation=source.citation,
        )
        if self._record.source != source.name:
            raise InputError(
                "expected an empty folder or one of {name}, found one of {other}; name another "
                "with --output",
                place=folder,
                name=source.name,
                other=self._record.source,
            )

    def run(self) -> Outcome:
        kept, fetched, missing = [], [], []
        for file in self._source.files:
            if self._is_there(file):
                kept.append(file.name)
                note = self._record.files[file.name].note
                print(f"{file.name}: already there, {note or 'and right'}", flush=True)
                continue
            try:
                self._bring(file)
            except NotInMirrorError:
                missing.append(file.name)
                print(f"{file.name}: not in the mirror", flush=True)
            else:
                fetched.append(file.name)
            finally:
                for made in ((self._folder / file.name).parent, self._folder):
                    with suppress(OSError):  # it holds something
                        made.rmdir()
        return Outcome(fetched=tuple(fetched), kept=tuple(kept), missing=tuple(missing))

    def _expected(self, file: RemoteFile) -> str | None:
        """The hash that holds: the published one, else the one of the first fetch."""
        recorded = self._record.files.get(file.name)
        return file.sha256 or (recorded.sha256 if recorded else None)

    def _is_there(self, file: RemoteFile) -> bool:
        path = self._folder / file.name
        if not path.exists():
            return False
        found, expected = file_sha256(path), self._expected(file)
        variant = next((v for v in file.variants if v.sha256 == found), None)
        if found != expected and expected is not None and variant is None:
            raise InputError(
                "expected SHA-256 {expected}, found {found}; it is not the original: move it away "
                "or delete it and run the command again",
                place=path,
                expected=expected,
                found=found,
            )
        self._note(file, path, found, variant)
        return True

    def _bring(self, file: RemoteFile) -> None:
        path = self._folder / file.name
        expected = self._expected(file)
        variant = None
        with file_at_once(path) as scratch:
            if self._mirror is not None:
                variant = self._mirror.copy(file, expected, scratch)
            else:
                self._download(file, expected, scratch)
            found = file_sha256(scratch)
            if variant is None and expected not in (None, found):
                raise InputError(
                    "expected files that make a {name} of SHA-256 {expected}, found some that make "
                    "{found}; nothing is kept of it",
                    place=file.url,
                    name=file.name,
                    expected=expected,
                    found=found,
                )
        self._note(file, path, found, variant)
        if variant is not None:
            verdict = variant.note
        elif expected is None:
            verdict = f"no published SHA-256 is known; {found} is recorded and holds from now on"
        else:
            verdict = "SHA-256 verified"
        print(f"{file.name}: {path.stat().st_size:,} bytes, {verdict}", flush=True)

    def _download(self, file: RemoteFile, sha256: str | None, path: Path) -> None:
        """Download a file to `path`, or what it is made of and make it."""
        # Not in the folder, where a killed download would stay behind.
        with tempfile.TemporaryDirectory() as folder, shown_progress(BYTES) as progress:
            original = Path(folder) / "original"
            known = None if file.made_by else sha256
            downloader = pooch.HTTPDownloader(
                progressbar=_Bar(file.name, progress), timeout=_SECONDS
            )
            pooch.get_logger().setLevel("ERROR")
            remote = pooch.create(
                path=folder,
                base_url="",
                registry={original.name: known},
                urls={original.name: file.url},
                retry_if_failed=self._tries - 1,
            )
            try:
                remote.fetch(original.name, downloader=downloader)
            except OSError as error:  # those of requests, too
                raise InputError(
                    "expected the file, found none after {tries} tries ({error}); check the "
                    "network and run the command again, or use --from FOLDER",
                    place=file.url,
                    tries=self._tries,
                    error=" ".join(str(error).split()) or type(error).__name__,
                ) from error
            except ValueError as error:
                raise InputError(
                    "expected SHA-256 {expected}, found another file; nothing is kept of it: the "
                    "file there has changed or was damaged on its way",
                    place=file.url,
                    expected=known,
                ) from error
            if known is None and _is_html(original):
                raise InputError(
                    "expected the file, found an HTML page, as of an error or a login; try again "
                    "later or use --from FOLDER",
                    place=file.url,
                )
            if file.made_by:
                write_made(file, downloaded_members(file, original), path)
            else:
                shutil.move(original, path)

    def _note(self, file: RemoteFile, path: Path, sha256: str, variant: Variant | None) -> None:
        entry = FetchedFile(
            url=file.url,
            sha256=sha256,
            size=path.stat().st_size,
            note=variant.note if variant is not None else "",
            layout=file.layout,
        )
        if self._record.files.get(file.name) != entry:
            self._record.files[file.name] = entry
            write_fetched(self._folder, self._record)


class _Bar:
    """What pooch tells of a download, as progress of ours."""

    def __init__(self, name: str, progress: Progress) -> None:
        self._name = name
        self._progress = progress
        self._total = self._there = 0

    @property
    def total(self) -> int:
        """Bytes of the whole file, 0 where that is not known; set at the beginning of a try."""
        return self._total

    @total.setter
    def total(self, total: int) -> None:
        self._total, self._there = total, 0

    def update(self, count: int) -> None:
        """So many bytes more; the last time as many as a part has, whatever is left."""
        self._there += count
        if self._total:
            self._there = min(self._there, self._total)
        self._progress(self._name, self._there, self._total or None)

    def reset(self) -> None:
        self._there = 0

    def close(self) -> None:
        """Nothing is left to do."""


def _is_html(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(200).lstrip().lower().startswith(_HTML_STARTS)
