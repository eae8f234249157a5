"""Public sources onto this disk: from their servers or a mirror, verified, and only once."""

import hashlib
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
from filelock import FileLock, Timeout

from malmoi.errors import InputError
from malmoi.files import file_sha256
from malmoi.text.public.description import Making, PublicSource, RemoteFile, Variant
from malmoi.text.public.download import Download, Retries
from malmoi.text.public.fetch_progress import Advance, FetchProgress
from malmoi.text.public.fetched import Fetched, FetchedFile, read_fetched, write_fetched
from malmoi.text.public.mirror import Mirror, NotInMirrorError
from malmoi.text.public.repository_files import downloaded_members, write_made


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
    source: PublicSource,
    folder: Path,
    *,
    progress: FetchProgress,
    mirror: Path | None = None,
    patience: Retries | None = None,
) -> Outcome:
    """Bring the files of a source into a folder.

    A file has its name only once it is whole and its size and SHA-256 are right; until then it is
    `NAME.part`, with which the next call goes on. `SOURCE.json` records every file as it comes.

    Args:
        source: what to fetch.
        folder: where to; made if it is missing.
        progress: told what happens.
        mirror: take the files from this folder and not from the network.
        patience: how long to wait for the servers.

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
            return _Fetch(source, folder, progress, files, patience or Retries()).run()
    except Timeout as error:
        raise InputError(
            f"{folder}: expected to be the only one to fetch here, found another fetch under way; "
            "wait for it or name another folder with --output"
        ) from error


class _Fetch:
    def __init__(
        self,
        source: PublicSource,
        folder: Path,
        progress: FetchProgress,
        mirror: Mirror | None,
        patience: Retries,
    ) -> None:
        self._source = source
        self._folder = folder
        self._progress = progress
        self._mirror = mirror
        self._patience = patience
        self._record = read_fetched(folder) or Fetched(
            source=source.name,
            homepage=source.homepage,
            licence=source.licence,
            citation=source.citation,
        )
        if self._record.source != source.name:
            raise InputError(
                f"{folder}: expected an empty folder or one of {source.name}, found one of "
                f"{self._record.source}; name another with --output"
            )

    def run(self) -> Outcome:
        kept, fetched, missing = [], [], []
        timeout = httpx2.Timeout(
            self._patience.read_seconds, connect=self._patience.connect_seconds
        )
        try:
            # Errors of proxies in the environment, which a mirror does not need.
            client = httpx2.Client(
                follow_redirects=True, timeout=timeout, trust_env=self._mirror is None
            )
        except (ImportError, ValueError) as error:
            raise InputError(
                "expected a proxy that is spoken to by HTTP in the environment (HTTPS_PROXY, "
                f"ALL_PROXY), found another ({' '.join(str(error).split())}); change or unset it"
            ) from error
        with client:
            for file in self._source.files:
                if self._is_there(file):
                    kept.append(file.name)
                    self._progress.kept(file.name, self._record.files[file.name].note)
                    continue
                try:
                    self._bring(file, client)
                except NotInMirrorError:
                    missing.append(file.name)
                    self._progress.missing(file.name)
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
                f"{path}: expected SHA-256 {expected}, found {found}; it is not the original: "
                "move it away or delete it and run the command again"
            )
        self._note(file, path, found, variant)
        return True

    def _bring(self, file: RemoteFile, client: httpx2.Client) -> None:
        path = self._folder / file.name
        part = path.with_name(path.name + ".part")
        expected = self._expected(file)
        variant = None
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._progress.file(file.name) as advance:
            if self._mirror is not None:
                variant = self._mirror.copy(file, expected, part)
                found = file_sha256(part)
            elif file.making is not None:
                self._download_and_make(file, file.making, part, client, advance)
                found = file_sha256(part)
            else:
                download = Download(
                    file.url,
                    part,
                    size=file.size,
                    resume=expected is not None,
                    patience=self._patience,
                    advance=advance,
                )
                continued = download.run(client)
                found = file_sha256(part)
                if continued and found != expected:
                    # The part that was there may have been of something else.
                    part.unlink()
                    download.run(client)
                    found = file_sha256(part)
            if self._mirror is None and expected is not None and found != expected:
                part.unlink()
                raise InputError(
                    f"{file.url}: expected SHA-256 {expected}, found {found}; nothing is kept "
                    "of it: the file there has changed or was damaged on its way"
                )
            self._note(file, part, found, variant)
            part.replace(path)
        if variant is not None:
            verdict = variant.note
        elif expected is None:
            verdict = f"no published SHA-256 is known; {found} is recorded and holds from now on"
        else:
            verdict = "SHA-256 verified"
        self._progress.say(f"{file.name}: {path.stat().st_size:,} bytes, {verdict}")

    def _download_and_make(
        self,
        file: RemoteFile,
        making: Making,
        part: Path,
        client: httpx2.Client,
        advance: Advance,
    ) -> None:
        original = part.with_name(file.name.rsplit("/", 1)[-1] + ".original.part")
        # Servers make archives as they are asked for: no size, no hash, nothing to go on with.
        download = Download(
            *(file.url, original),
            size=None,
            resume=False,
            patience=self._patience,
            advance=advance,
        )
        try:
            download.run(client)
            write_made(making, downloaded_members(file.url, original, making), part)
        finally:
            original.unlink(missing_ok=True)

    def _note(self, file: RemoteFile, path: Path, sha256: str, variant: Variant | None) -> None:
        entry = FetchedFile(
            url=file.url,
            sha256=sha256,
            size=path.stat().st_size,
            note=variant.note if variant is not None else "",
        )
        if self._record.files.get(file.name) != entry:
            self._record.files[file.name] = entry
            write_fetched(self._folder, self._record)
