"""Does `malmoi predict` label a million reviews in bounded memory, killed again and again?

    python -m lab.benchmarks.robustness.many_rows --data FOLDER

Real reviews (NSMC, as often as it takes) are numbered and labelled by the command, which SIGKILL
ends at random moments. Checked is that each number is there once, in order, with its own text, and
with a label wherever there is a text. Peak memory is the kernel's (VmHWM), of every sitting.
"""

import csv
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from lab.benchmarks.data import NSMC_TEST, NSMC_TRAIN, DataSettings
from lab.benchmarks.result_files import write_result
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records
from malmoi.text.written_cells import csv_cell

RESULTS = Path(__file__).parents[1] / "results" / "many_rows.json"
_POLL_SECONDS = 0.05


@dataclass(kw_only=True)
class ManyRowsSettings(DataSettings):
    """How much is labelled, and how often the command is killed."""

    rows: int = 1_000_000
    """Reviews."""
    model: str = "malmoi-small-reviews"
    """Classifier: name, folder or Hub id."""
    engine: str = "onnx-int8"
    """What computes."""
    kills: int = 3
    """How often the command is killed."""
    first_kill_within: float = 120.0
    """Seconds: each kill comes at a random moment of so long a time."""
    seed: int = 0
    """Seed of the moments."""
    output: Path = RESULTS
    """JSON file of the result."""


def main(settings: ManyRowsSettings) -> None:
    """Label, kill, compare, write the result."""
    draw = random.Random(settings.seed)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "reviews.csv", Path(folder) / "labelled.csv"
        with source.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["number", "text"])
            writer.writerows(enumerate(_reviews(settings)))
        sittings = [
            _sitting(settings, source, target, draw.uniform(10, settings.first_kill_within))
            for _ in range(settings.kills)
        ]
        sittings.append(_sitting(settings, source, target, None))
        empty = _check(settings, target)
    result = {
        "model": settings.model,
        "engine": settings.engine,
        "rows": settings.rows,
        "rows_without_text": empty,
        "sittings": sittings,
        "peak_memory_gib": max(sitting["peak_memory_gib"] for sitting in sittings),
    }
    write_result(settings.output, result)
    print(json.dumps(result, indent=1))


def _reviews(settings: ManyRowsSettings) -> Iterator[str]:
    files = [source.find(settings.folder) for source in (NSMC_TRAIN, NSMC_TEST)]
    once = [record.text for record in chain.from_iterable(map(iter_records, files))]
    return islice(cycle(once), settings.rows)


def _sitting(
    settings: ManyRowsSettings, source: Path, target: Path, until: float | None
) -> dict[str, Any]:
    """Run the command, to its end or for so many seconds."""
    command = [sys.executable, "-m", "malmoi", "predict", str(source), "--output", str(target)]
    command += ["--model", settings.model, "--engine", settings.engine, "--text-column", "text"]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None and (until is None or time.monotonic() - began < until):
        peak = max(peak, _peak_gib(process.pid))
        time.sleep(_POLL_SECONDS)
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    elif process.returncode or until is not None:
        raise InputError(
            f"expected the command to go on, found exit code {process.returncode} after "
            f"{time.monotonic() - began:.0f} s; name more --rows or a lower --first-kill-within"
        )
    process.wait()
    row = {
        "seconds": round(time.monotonic() - began, 1),
        "killed": until is not None,
        "peak_memory_gib": round(peak, 2),
    }
    print(row, flush=True)
    return row


def _peak_gib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 2**20 for line in lines if line.startswith("VmHWM")), 0.0)


def _check(settings: ManyRowsSettings, target: Path) -> int:
    """How many rows have no text; each has its number, its text, and else a label."""
    empty = rows = 0
    with target.open(encoding="utf-8-sig", newline="") as file:
        for row, text in zip(csv.DictReader(file), _reviews(settings), strict=True):
            if int(row["number"]) != rows or row["text"] != csv_cell(text):
                raise RuntimeError(f"row {rows}: expected {text!r}, found {row}")
            if not row["label"]:
                empty += 1
                if clean_text(text):
                    raise RuntimeError(f"row {rows}: no label for {text!r}")
            rows += 1
    return empty


if __name__ == "__main__":
    sys.exit(run_command(ManyRowsSettings, main, "Label a million reviews, killed on the way."))
