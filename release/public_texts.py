"""The public texts that an encoder reads beside the rated reviews: where from, and their hashes."""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from malmoi.text.public.fetched import read_fetched
from release.review_texts import find_files

# Files of each source, MIT or public record.
FILES = {
    "chatbot": ("ChatbotData.csv",),
    "kote": ("val.tsv",),
    "petitions": tuple(
        f"petitions_{month}.jsonl"
        for month in ("2017-08", "2019-04", "2019-05", "2019-06", "2019-07", "2019-08")
    ),
}
# What a new encoder reads. Without Chatbot_data, in which stand most of the question pairs' test
# questions (docs/decisions.md).
SOURCES = ("kote", "petitions")


def sources_of(files: Iterable[str]) -> tuple[str, ...]:
    """The sources, in the order of FILES, of which there are files among these."""
    names = set(files)
    return tuple(source for source, theirs in FILES.items() if names & set(theirs))


def fetch_texts(data: Path, folder: Path, sources: Sequence[str]) -> list[Path]:
    """The files of these sources, taken from `data` where it has them all, else downloaded.

    Args:
        folder: what is fetched lies there, a folder for each source.

    Raises:
        SystemExit: one could not be had; the command that failed has said why.
    """
    texts: list[Path] = []
    for source in sources:
        wanted = [folder / source / name for name in FILES[source]]
        command = [sys.executable, "-m", "malmoi", "fetch", source]
        command += ["--output", str(folder / source)]
        if all(find_files(data, f"{path.name}*") for path in wanted):
            subprocess.run([*command, "--from", str(data)], check=False)
        # Another file may have such a name (val.tsv), and then nothing was taken.
        have = all(path.is_file() for path in wanted)
        if not have and (code := subprocess.run(command, check=False).returncode):
            raise SystemExit(code)
        texts += wanted
    return texts


def hashes_of(folder: Path, sources: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each fetched file, by its name."""
    hashes: dict[str, str] = {}
    for source in sources:
        fetched = read_fetched(folder / source)
        if fetched is not None:
            hashes |= {name: fetched.files[name].sha256 for name in FILES[source]}
    return hashes
