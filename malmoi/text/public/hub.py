"""Data sets of the Hugging Face Hub by id: `hub:OWNER/NAME`, only files of data, never code."""

from dataclasses import dataclass
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    CachedRepoTreeNotFoundError,
    HfHubHTTPError,
    HFValidationError,
    IncompleteSnapshotError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    XetDownloadError,
)
from huggingface_hub.hf_api import DatasetInfo
from huggingface_hub.utils import disable_progress_bars

from malmoi.errors import InputError
from malmoi.files import file_sha256
from malmoi.text.public.fetched import Fetched, FetchedFile, read_fetched, write_fetched
from malmoi.text.reading.sources import is_supported

PREFIX = "hub:"

_HUB_ERRORS = (
    *(HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, LocalEntryNotFoundError),
    *(CachedRepoTreeNotFoundError, IncompleteSnapshotError, XetDownloadError, httpx2.RequestError),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class HubCorpus:
    """A data set of the Hub that we know and name as an example; any other works too.

    Attributes:
        name: `hub:OWNER/NAME`.
        about: one line: what texts these are.
        licence: as its card says.
        citation: how its authors want it cited.
        texts: rows.
        size: bytes of its files.
    """

    name: str
    about: str
    licence: str
    citation: str
    texts: int
    size: int


# Licence, rows and bytes: the data set's README.md and dataset_infos.json on the Hub.
KCBERT_CORPUS = HubCorpus(
    name="hub:Bingsu/KcBERT_Pre-Training_Corpus",
    about="KcBERT's corpus: Naver news comments of 2019-2020, cleaned by its recipe",
    licence="CC BY-SA 4.0",
    citation=(
        "Junbum Lee (2020). KcBERT: Korean comments BERT. "
        "https://github.com/Beomi/KcBERT (data set: KcBERT Pre-Training Corpus)"
    ),
    texts=86_246_285,
    size=8_480_596_048,
)


def fetch_hub(name: str, folder: Path, *, show_progress: bool) -> Fetched:
    """Bring the Parquet, CSV, TSV, JSON-lines and text files of a Hub data set into a folder.

    The Hub's own client resumes and retries; the sizes, and the SHA-256 of the files for which the
    Hub publishes one (those in Git LFS), are verified here. Scripts of the data set are left there.

    Args:
        name: `hub:OWNER/NAME`.
        folder: where to; made if it is missing.
        show_progress: whether the client may draw its bars.

    Returns:
        What is in the folder's `SOURCE.json` too.

    Raises:
        InputError: no such data set, no access, no network, no file of data in it, or a file that
            is not the one the Hub describes.
    """
    repository = name.removeprefix(PREFIX)
    there = read_fetched(folder)
    if there is not None and there.source != name:
        raise InputError(
            "expected an empty folder or one of {name}, found one of {other}; name another with "
            "--output",
            place=folder,
            name=name,
            other=there.source,
        )
    if not show_progress:
        disable_progress_bars()
    try:
        info = HfApi().dataset_info(repository, files_metadata=True)
        names = [file.rfilename for file in info.siblings or [] if is_data(file.rfilename)]
        if not names:
            raise InputError(
                "expected files of data (.parquet, .csv, .tsv, .jsonl, .txt), found none; data "
                "sets that only a script can build are not fetched",
                place=name,
            )
        snapshot_download(
            repository,
            repo_type="dataset",
            revision=info.sha,
            allow_patterns=names,
            local_dir=folder,
        )
    except _HUB_ERRORS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            "expected a data set of the Hugging Face Hub, could not get it ({reason}); check the "
            "id, the network and, if access is restricted, HF_TOKEN",
            place=name,
            reason=reason,
        ) from error
    return _verified(name, folder, info, set(names))


def is_data(name: str) -> bool:
    """Whether a file of a data set holds texts that we read, and is no hidden file or document."""
    base = name.rsplit("/", 1)[-1].lower()
    return is_supported(name) and not base.startswith((".", "readme", "license", "requirements"))


def _verified(name: str, folder: Path, info: DatasetInfo, names: set[str]) -> Fetched:
    fetched = Fetched(
        source=name,
        homepage=f"https://huggingface.co/datasets/{info.id} (revision {info.sha})",
        licence=_licence(info),
        citation=KCBERT_CORPUS.citation if name == KCBERT_CORPUS.name else "see its homepage",
    )
    for file in info.siblings or []:
        if file.rfilename not in names:
            continue
        path = folder / file.rfilename
        size, sha256 = path.stat().st_size, file_sha256(path)
        expected = file.lfs.sha256 if file.lfs is not None else sha256
        if sha256 != expected or file.size not in (None, size):
            path.unlink()
            raise InputError(
                "expected {file} of {expected_size:,} bytes and SHA-256 {expected}, found "
                "{size:,} bytes and {sha256}; it is deleted, run the command again",
                place=name,
                file=file.rfilename,
                expected_size=file.size,
                expected=expected,
                size=size,
                sha256=sha256,
            )
        url = f"https://huggingface.co/datasets/{info.id}/resolve/{info.sha}/{file.rfilename}"
        fetched.files[file.rfilename] = FetchedFile(url=url, sha256=sha256, size=size)
    write_fetched(folder, fetched)
    return fetched


def _licence(info: DatasetInfo) -> str:
    licence = info.card_data.get("license") if info.card_data is not None else None
    if isinstance(licence, list):
        return ", ".join(str(item) for item in licence)
    return str(licence) if licence else "none stated on its card: ask its owner"
