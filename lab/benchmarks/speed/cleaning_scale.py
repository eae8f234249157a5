"""Does cleaning stay small? Ten million texts through `malmoi clean`.

    python -m lab.benchmarks.speed.cleaning_scale --texts 10000000
    python -m lab.benchmarks.speed.cleaning_scale --texts 10000000 --near-duplicates

The texts are NSMC's rated reviews, repeated with small changes until there are enough. The memory
is the sum over the command and its workers, ten times a second; pages that processes share count
for each of them, so it is an upper bound. Needs Linux (/proc).
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.benchmarks.data import RATED_REVIEWS, DataSettings
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import write_at_once
from malmoi.text.corpus.clean_report import CleaningReport
from malmoi.text.reading.records import iter_records

RESULTS = Path(__file__).parents[1] / "results" / "cleaning_scale.json"
SYLLABLES = "".join(map(chr, range(0xAC00, 0xD7A4)))
SEED = 1


@dataclass(kw_only=True)
class ScaleSettings(DataSettings):
    """How much is cleaned, and how."""

    texts: int = 300_000
    """Texts to make and clean."""
    near_duplicates: bool = False
    """Drop near duplicates too."""
    workers: int = 2
    """Processes that clean."""
    scratch: Path | None = None
    """Where the texts and the result go, to be deleted at the end; by default the system's
    folder for temporary files. Ten million texts need 4 GB, with near duplicates 8 GB."""
    output: Path = RESULTS
    """JSON file of the results; those of other sizes in it stay."""


def main(settings: ScaleSettings) -> None:
    """Make the texts, clean them in a process of its own, and write what it took."""
    reviews = RATED_REVIEWS.find(settings.folder)
    if not Path("/proc/self/status").exists():
        raise InputError("expected Linux, for memory is read from /proc; run it there")
    with tempfile.TemporaryDirectory(dir=settings.scratch) as folder:
        corpus, clean = Path(folder) / "texts.txt", Path(folder) / "clean"
        _write_texts(corpus, reviews, settings.texts)
        command = [sys.executable, "-m", "malmoi", "clean", str(corpus), "--output", str(clean)]
        command += ["--workers", str(settings.workers)]
        command += ["--near-duplicates"] * settings.near_duplicates
        seconds, peak = _measure(command)
        report = CleaningReport.read_from(clean)
        row = {
            "texts": report.read,
            "near_duplicates": settings.near_duplicates,
            "workers": settings.workers,
            "cores": len(os.sched_getaffinity(0)),
            "corpus_bytes": corpus.stat().st_size,
            "seconds": round(seconds, 1),
            "texts_per_second": round(report.read / seconds),
            "peak_rss_gib_all_processes": round(peak / 2**30, 3),
            "kept": report.kept,
            "dropped": report.dropped,
            "cleaning": report.cleaning,
            "load_average_15_minutes": round(os.getloadavg()[2], 1),
        }
    print(json.dumps(row, indent=2))
    _add(settings.output, row)


def _write_texts(path: Path, reviews: Path, number: int) -> None:
    """The reviews once as they are, then again and again with changes.

    Of the repeated ones about a quarter are exact duplicates, half differ in a syllable or two,
    and a quarter have a number after them.
    """
    draw = random.Random(SEED)
    with path.open("w", encoding="utf-8") as file:
        for count, (text, is_first) in enumerate(_reviews(reviews)):
            if count == number:
                return
            file.write((text if is_first else _changed(text, draw)) + "\n")


def _reviews(path: Path) -> Iterator[tuple[str, bool]]:
    texts = [" ".join(record.text.split()) for record in iter_records(path)]
    texts = [text for text in texts if text]
    yield from ((text, True) for text in texts)
    while True:
        yield from ((text, False) for text in texts)


def _changed(text: str, draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.25:
        return text
    if kind < 0.5:
        return f"{text} {draw.randrange(10_000)}"
    for _ in range(1 + (kind < 0.75)):
        place = draw.randrange(len(text))
        text = text[:place] + draw.choice(SYLLABLES) + text[place + 1 :]
    return text


def _measure(command: list[str]) -> tuple[float, int]:
    """Seconds, and the largest sum of resident bytes of the command and its descendants."""
    began = time.perf_counter()
    process = subprocess.Popen(command)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(_resident_bytes(pid) for pid in _family(process.pid)))
        time.sleep(0.1)
    if process.returncode != 0:
        raise InputError(f"expected the command to succeed, found exit code {process.returncode}")
    return time.perf_counter() - began, peak


def _family(pid: int) -> Iterator[int]:
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = file.read_text().split()
        except OSError:  # ended meanwhile
            continue
        for child in children:
            yield from _family(int(child))


def _resident_bytes(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _add(path: Path, row: dict[str, Any]) -> None:
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    same = ("texts", "near_duplicates", "workers")
    rows = [other for other in rows if any(other[key] != row[key] for key in same)]
    rows = sorted([*rows, row], key=lambda r: (r["near_duplicates"], r["texts"], r["workers"]))
    write_at_once(path, json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(run_command(ScaleSettings, main, "Clean very many texts and measure the memory."))
