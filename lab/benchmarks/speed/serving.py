"""How fast does `malmoi serve` answer, beside the same classifier in the same process?

    python -m lab.benchmarks.speed.serving --data FOLDER

A server is started as a user starts it, in a process of its own on loopback. In turns, for
`--turn-seconds` each,

- `Classifier.predict` labels real reviews (NSMC's test file), 2,048 at a time;
- 8 clients, each a thread with one connection, send requests of `--texts-per-request` reviews, one
  after the other, until the time is over.

Reported are texts a second of both, the ratio of each pair of turns, processor time, errors, and
milliseconds of a request. The clients' own work is on the same cores. Then once more with one
review a request, which is the load of a web page, not of a file.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from lab.benchmarks.data import NSMC_TEST, DataSettings
from lab.benchmarks.result_files import write_result
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.text.reading.records import iter_records

RESULTS = Path(__file__).parents[1] / "results" / "serving.json"
_TEXTS_IN_PROCESS = 2048
# More than any client sends before it meets a text again.
_TEXTS = 49_152
_HEADERS = {"Content-Type": "application/json"}
# Requests whose labels are compared with those of the process.
_COMPARED = 16


@dataclass(kw_only=True)
class ServingSettings(DataSettings):
    """What is served, and how much is asked of it."""

    model: str = "malmoi-medium-reviews"
    """Classifier: name, folder or Hub id."""
    engine: str = "auto"
    """Its engine."""
    threads: int = 2
    """Threads of the engine, in the process and in the server."""
    clients: int = 8
    """Clients that ask at the same time."""
    seconds: float = 60.0
    """Seconds of asking, in all turns together."""
    turn_seconds: float = 3.0
    """Seconds of a turn."""
    texts_per_request: int = 64
    """Reviews in a request."""
    output: Path = RESULTS
    """JSON file of the results."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What was labelled in one turn.

    Attributes:
        texts: labelled.
        seconds: by the clock.
        processor_seconds: of the process that labels, clients not included.
        errors: answers that were none.
        latencies: seconds of each request.
    """

    texts: int
    seconds: float
    processor_seconds: float
    errors: int = 0
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Texts a second."""
        return self.texts / self.seconds


@dataclass(frozen=True)
class Served:
    """A server: its port, and its process."""

    port: int
    process: psutil.Process

    @property
    def processor_seconds(self) -> float:
        """Seconds that the processor was used."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


def main(settings: ServingSettings) -> None:
    """Take turns, print the table, write the results."""
    if settings.turn_seconds > settings.seconds:
        raise InputError("expected --turn-seconds of at most --seconds")
    path = NSMC_TEST.find(settings.folder)
    texts = [record.text for record in islice(iter_records(path), _TEXTS)]
    classifier = Classifier.load(settings.model, settings.engine, threads=settings.threads)
    classifier.predict(texts[:_TEXTS_IN_PROCESS])
    turns = max(1, round(settings.seconds / settings.turn_seconds))
    load_before = os.getloadavg()[0]
    with _server(settings, classifier.engine) as server:
        same = _same_labels(server, classifier, texts, settings.texts_per_request)
        many = _take_turns(settings, classifier, texts, server, settings.texts_per_request, turns)
        one = _take_turns(settings, classifier, texts, server, 1, max(1, turns // 3))
    result = {
        "model": settings.model,
        "engine": classifier.engine,
        "threads": settings.threads,
        "clients": settings.clients,
        "same_labels": same,
        "load_average_before_and_after": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        "texts_per_request": {str(settings.texts_per_request): many, "1": one},
    }
    write_result(settings.output, result)
    print(json.dumps(result, indent=1))


@contextmanager
def _server(settings: ServingSettings, engine: str) -> Iterator[Served]:
    """A server in a process of its own."""
    command = [sys.executable, "-m", "malmoi", "serve", settings.model, "--port=0"]
    command += [f"--engine={engine}", f"--threads={settings.threads}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "http://" not in line:
            raise InputError(f"the server did not start: exit code {process.wait()}")
        port = int(line.split("http://")[1].split()[0].rsplit(":", 1)[1])
        yield Served(port, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait()


def _take_turns(
    settings: ServingSettings,
    classifier: Classifier,
    texts: list[str],
    server: Served,
    per_request: int,
    turns: int,
) -> dict[str, Any]:
    bodies = [
        json.dumps({"texts": texts[first : first + per_request]}).encode()
        for first in range(0, len(texts), per_request)
    ]
    inside: list[Turn] = []
    outside: list[Turn] = []
    for turn in range(turns):
        # Who is first meets the machine as the other one has left it.
        for arm in ("in", "out") if turn % 2 else ("out", "in"):
            if arm == "in":
                inside.append(_in_process(classifier, texts, settings.turn_seconds))
            else:
                outside.append(_ask(server, bodies, per_request, settings))
    latencies = [1000 * each for turn in outside for each in turn.latencies]
    ratios = [out.rate / one.rate for out, one in zip(outside, inside, strict=True)]
    return {
        "in_process_texts_per_second": round(statistics.median(turn.rate for turn in inside)),
        "served_texts_per_second": round(statistics.median(turn.rate for turn in outside)),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "processor_ms_per_text": {
            "in_process": _processor_ms(inside),
            "served": _processor_ms(outside),
        },
        "seconds": round(sum(turn.seconds for turn in outside)),
        "requests": len(latencies),
        "errors": sum(turn.errors for turn in outside),
        "request_ms": {
            "median": round(statistics.median(latencies), 1),
            "p99": round(float(np.quantile(latencies, 0.99)), 1),
        },
    }


def _processor_ms(turns: list[Turn]) -> float:
    """Milliseconds of one text."""
    seconds = sum(turn.processor_seconds for turn in turns)
    return round(1000 * seconds / sum(turn.texts for turn in turns), 3)


def _in_process(classifier: Classifier, texts: list[str], seconds: float) -> Turn:
    began, used, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        first = done % len(texts)
        done += len(classifier.predict(texts[first : first + _TEXTS_IN_PROCESS]))
    return Turn(
        texts=done,
        seconds=time.perf_counter() - began,
        processor_seconds=time.process_time() - used,
    )


def _ask(server: Served, bodies: list[bytes], per_request: int, settings: ServingSettings) -> Turn:
    """All clients, until the time is over; what was asked before is waited for."""
    numbers = count()
    used, began = server.processor_seconds, time.perf_counter()

    def client(_: int) -> tuple[int, list[float]]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        errors, latencies = 0, []
        while (asked := time.perf_counter()) - began < settings.turn_seconds:
            body = bodies[next(numbers) % len(bodies)]
            connection.request("POST", "/v1/predict", body, _HEADERS)
            response = connection.getresponse()
            answer = response.read()
            latencies.append(time.perf_counter() - asked)
            errors += response.status != 200 or answer.count(b'"cut"') != per_request
        connection.close()
        return errors, latencies

    with ThreadPoolExecutor(settings.clients) as pool:
        found = list(pool.map(client, range(settings.clients)))
    latencies = [each for _, mine in found for each in mine]
    return Turn(
        texts=len(latencies) * per_request,
        seconds=time.perf_counter() - began,
        processor_seconds=server.processor_seconds - used,
        errors=sum(errors for errors, _ in found),
        latencies=latencies,
    )


def _same_labels(
    server: Served, classifier: Classifier, texts: list[str], per_request: int
) -> float:
    """Share of texts with the label that the process gives."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    chosen = texts[: _COMPARED * per_request]
    served: list[str] = []
    for first in range(0, len(chosen), per_request):
        body = json.dumps({"texts": chosen[first : first + per_request]})
        connection.request("POST", "/v1/predict", body, _HEADERS)
        found = json.loads(connection.getresponse().read())["predictions"]
        served += [each["label"] for each in found]
    connection.close()
    expected = [each.label for each in classifier.predict(chosen)]
    same = sum(one == other for one, other in zip(served, expected, strict=True))
    return round(same / len(expected), 4)


if __name__ == "__main__":
    sys.exit(run_command(ServingSettings, main, "Time malmoi serve beside the classifier."))
