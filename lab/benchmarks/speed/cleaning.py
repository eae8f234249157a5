"""How fast is cleaning? Texts a second, beside the recipe that KcBERT publishes.

    python -m lab.benchmarks.speed.cleaning

Real reviews and news comments are cleaned in turns by

- KcBERT's `clean` (https://github.com/Beomi/KcBERT, README, "Preprocessing"): an alphabet, the
  emoji package, an address pattern, soynlp's repeat_normalize; one process, as published;
- the same of before 2022-09-14 (and of KcELECTRA's README): emoji in the alphabet and kept;
- ours, the same steps only, on two processes: alphabet, addresses, folding, white space;
- ours, all steps but duplicates, on two processes.

Everybody reads texts from Parquet files and writes one for each; that is inside the time, the start
of the processes and the compiling of patterns are not. Reported are ratios of one round, and their
median over the rounds.
"""

import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lab.benchmarks.data import NEWS_COMMENTS, RATED_REVIEWS, DataSettings
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import write_at_once
from malmoi.text.characters import fold_repeats
from malmoi.text.cleaning.cleaner import CLEANER_VERSION, CleaningSettings, clean_batch
from malmoi.text.reading.records import iter_records

RESULTS = Path(__file__).parents[1] / "results" / "cleaning.json"
BATCH = 10_000
ALL_STEPS = CleaningSettings()
SAME_STEPS = CleaningSettings(
    alphabet="kcbert",
    min_distinct=0,
    need_hangul=False,
    fix_mojibake=False,
    remove_html=False,
    remove_portal_masks=False,
    personal_data=(),
)
Clean = Callable[[list[str]], list[str]]


@dataclass(kw_only=True)
class CleaningSpeedSettings(DataSettings):
    """What to clean, how often, on how many processes."""

    files: tuple[Path, ...] = ()
    """Files of texts. By default rated reviews (NSMC's raw release) and news comments."""
    texts: int = 200_000
    """Texts to clean, taken evenly from all files."""
    rounds: int = 7
    """Turns of each."""
    processes: int = 2
    """Processes of ours; KcBERT's recipe has one."""
    output: Path = RESULTS
    """JSON file of the results."""


@cache
def kcbert_recipe(year: int) -> Callable[[str], str]:
    """KcBERT's `clean` as published in 2020 or in 2022 (MIT licence)."""
    import emoji
    from soynlp.normalizer import repeat_normalize

    kept = r" .,?!/@$%~％·∼()\x00-\x7Fㄱ-ㅣ가-힣"
    if year == 2020:
        kept += "".join(emoji.EMOJI_DATA)  # called UNICODE_EMOJI then
    others = re.compile(f"[^{kept}]+")
    address = re.compile(
        r"https?:\/\/(www\.)?[-a-zA-Z0-9@:%._\+~#=]{1,256}\.[a-zA-Z0-9()]{1,6}\b"
        r"([-a-zA-Z0-9()@:%_\+.~#?&//=]*)"
    )

    def clean(text: str) -> str:
        text = others.sub(" ", text)
        if year == 2022:
            text = emoji.replace_emoji(text, replace="")
        text = address.sub("", text).strip()
        return repeat_normalize(text, num_repeats=2)

    return clean


def kcbert_2022(texts: list[str]) -> list[str]:
    """The recipe of today's README."""
    return list(map(kcbert_recipe(2022), texts))


def kcbert_2020(texts: list[str]) -> list[str]:
    """The recipe that keeps emoji; without the emoji package's search it is the faster one."""
    return list(map(kcbert_recipe(2020), texts))


def our_same_steps(texts: list[str]) -> list[str]:
    """Ours, what the recipe does."""
    return clean_batch(texts, SAME_STEPS).texts


def our_all_steps(texts: list[str]) -> list[str]:
    """Ours, everything that looks at one text."""
    return clean_batch(texts, ALL_STEPS).texts


ARMS: dict[str, Clean] = {
    "KcBERT's recipe (2022)": kcbert_2022,
    "KcBERT's recipe (2020)": kcbert_2020,
    "ours, same steps": our_same_steps,
    "ours, all steps": our_all_steps,
}


def clean_file(clean: Clean, source: Path, target: Path) -> None:
    """Clean a Parquet file into another, ten thousand texts at a time."""
    schema = pa.schema([("text", pa.string())])
    # Texts seldom repeat: a dictionary of them only costs time.
    options = {"use_dictionary": False, "write_statistics": False}
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, schema, **options) as writer:
        for batch in file.iter_batches(batch_size=BATCH, columns=["text"]):
            cleaned = clean(batch.column(0).to_pylist())
            writer.write_table(pa.table({"text": cleaned}, schema=schema))


def get_ready() -> None:
    """Import and compile what the arms need, before any clock runs."""
    # soynlp's patterns have invalid escapes.
    warnings.simplefilter("ignore", SyntaxWarning)
    for clean in ARMS.values():
        clean(["안녕하세요 http://a.kr ㅋㅋㅋㅋ 010-1234-5678"])


def read_texts(settings: CleaningSpeedSettings) -> list[str]:
    """The texts to clean, every n-th of all."""
    for path in settings.files:
        if not path.is_file():
            raise InputError(f"expected a file of texts, found no {path}; give others by --files")
    texts = [record.text for path in settings.files for record in iter_records(path)]
    step = max(1, len(texts) // settings.texts)
    return list(islice(texts[::step], settings.texts))


def differences(texts: Sequence[str]) -> dict[str, int]:
    """On how many texts the same steps give the recipe's result, and why not on the others."""
    counts: Counter[str] = Counter()
    digits = re.compile(r"(\d)\1{3}").search
    theirs, ours = kcbert_2022(list(texts)), our_same_steps(list(texts))
    for raw, their, our in zip(texts, theirs, ours, strict=True):
        if their == our:
            counts["equal"] += 1
        elif fold_repeats(their, 2) == our:
            counts["ours folds runs of three, and of signs; soynlp four letters or digits"] += 1
        elif digits(raw):
            counts["soynlp folds digits (10000 to 100), ours does not"] += 1
        else:
            counts["addresses, invisible characters, normal form"] += 1
    return dict(counts)


def main(settings: CleaningSpeedSettings) -> None:
    """Clean in turns, write the results, print the table."""
    if not settings.files:
        known = (RATED_REVIEWS, NEWS_COMMENTS)
        settings.files = tuple(file.find(settings.folder) for file in known)
    if missing := [name for name in ("emoji", "soynlp") if find_spec(name) is None]:
        raise InputError(
            f"expected the packages that KcBERT's recipe needs, found no {' and '.join(missing)}; "
            "pip install -e '.[bench]'"
        )
    texts = read_texts(settings)
    get_ready()
    runs: list[dict[str, object]] = []
    load = os.getloadavg()[0]
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as name,
        ProcessPoolExecutor(settings.processes, context, get_ready) as pool,
    ):
        folder = Path(name)
        shares = _write_shares(texts, folder, settings.processes)
        pq.write_table(pa.table({"text": texts}), folder / "all.parquet")
        list(pool.map(time.sleep, [0.5] * settings.processes))  # every process has started
        for turn in range(settings.rounds):
            for arm, clean in ARMS.items():
                sources = shares if arm.startswith("ours") else [folder / "all.parquet"]
                targets = [folder / f"clean-{source.name}" for source in sources]
                started = time.perf_counter()
                list(pool.map(clean_file, [clean] * len(sources), sources, targets))
                seconds = time.perf_counter() - started
                runs.append({"round": turn, "arm": arm, "seconds": round(seconds, 3)})
                print(f"{turn} {arm:24} {len(texts) / seconds:10,.0f} texts/s", flush=True)
    result = {
        "cleaner_version": CLEANER_VERSION,
        "texts": len(texts),
        "characters": sum(map(len, texts)),
        "files": [path.name for path in settings.files],
        "processes_of_ours": settings.processes,
        "cores": os.cpu_count(),
        "load_average_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
        "texts_per_second": _speeds(runs, len(texts)),
        "median_ratios": _ratios(runs),
        "same_steps_against_recipe_of_2022": differences(texts),
        "runs": runs,
    }
    write_at_once(settings.output, json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    for ratio, median in _ratios(runs).items():
        print(f"{ratio}: {median}x")
    for reason, count in differences(texts).items():
        print(f"{count:8,} {reason}")


def _write_shares(texts: list[str], folder: Path, shares: int) -> list[Path]:
    paths = [folder / f"share-{share}.parquet" for share in range(shares)]
    for share, path in enumerate(paths):
        pq.write_table(pa.table({"text": texts[share::shares]}), path)
    return paths


def _seconds(runs: list[dict[str, object]], arm: str) -> list[float]:
    return [float(str(run["seconds"])) for run in runs if run["arm"] == arm]


def _speeds(runs: list[dict[str, object]], texts: int) -> dict[str, int]:
    return {arm: round(texts / statistics.median(_seconds(runs, arm))) for arm in ARMS}


def _ratios(runs: list[dict[str, object]]) -> dict[str, float]:
    return {
        f"{ours} / {theirs}": round(
            statistics.median(
                their / our
                for their, our in zip(_seconds(runs, theirs), _seconds(runs, ours), strict=True)
            ),
            1,
        )
        for ours in ARMS
        for theirs in ARMS
        if ours.startswith("ours") and not theirs.startswith("ours")
    }


if __name__ == "__main__":
    sys.exit(run_command(CleaningSpeedSettings, main, "Time cleaning beside KcBERT's recipe."))
