"""The process that learns: `python -m malmoi.app.learning.worker`, one a server.

Requests and replies are lines of JSON, on standard input and output. What learning takes of the
processor stops no click of the app then; and this process cannot outlive the server, for it ends
with its input. It also ends when nothing is asked of it for a while, and is started again.

    {"job": "learn", "url": "sqlite:///runs/labels.db", "project": 1, "forced": false}
    {"job": "fill", "url": …, "project": 1, "model": "live", "files": ["/a.xlsx"], "after": 0}
    {"result": {...}} or {"error": {...}}
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TextIO

from malmoi.command_line import spare_the_collector
from malmoi.errors import InputError, UnexpectedError

# Half a gigabyte of a process that nobody has needed for so long is given back.
_IDLE_SECONDS = 900.0
# Lower than the app and what else a person does on the machine.
_NICENESS = 10
# The encoder is told of several threads; fits of small matrices are slower with them.
_MOST_THREADS = 4
# Texts whose vectors are computed at a time: some seconds, for which a round may have to wait.
_VECTORS = 500


def main() -> None:
    """Answer requests until the input ends, or none comes for long."""
    spare_the_collector()
    # What libraries print must not stand among the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    answer = _answerer()
    with suppress(queue.Empty):
        while True:
            _reply(replies, answer, json.loads(requests.get(timeout=_IDLE_SECONDS)))


def _read(requests: queue.Queue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    # The server is gone, whatever is being computed for it.
    os._exit(0)


def _reply(
    replies: TextIO, answer: Callable[[dict[str, Any]], dict[str, Any]], request: dict[str, Any]
) -> None:
    reply: dict[str, Any]
    try:
        reply = {"result": answer(request)}
    except InputError as error:
        reply = {"error": error.as_json()}
    except Exception as error:
        sys.excepthook(*sys.exc_info())
        reply = {"error": UnexpectedError(error).as_json()}
    replies.write(f"{json.dumps(reply, ensure_ascii=False)}\n")
    replies.flush()


def _answerer() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Imports take seconds, so they are after the reader of the input."""
    import torch

    from malmoi.app.learning.rounds import Learner
    from malmoi.inference.vectors.sentence_encoder import SentenceEncoder, find_sentence_encoder
    from malmoi.labels.near_duplicates import group_alike
    from malmoi.labels.people import Person
    from malmoi.labels.projects import ProjectStore
    from malmoi.labels.vector_index import add_vectors

    torch.set_num_threads(max(1, min(_MOST_THREADS, (os.cpu_count() or 1) // 2)))
    learner = Learner()
    stores: dict[str, ProjectStore] = {}

    @cache
    def encoder() -> SentenceEncoder | None:
        return find_sentence_encoder(threads=1)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        url = request["url"]
        if url not in stores:
            stores[url] = ProjectStore(url)
        # Nobody in particular: the server itself.
        access = stores[url].access(Person(name="malmoi", is_local=True), request["project"])
        if request["job"] == "alike":
            return {"alike": group_alike(access)}
        if request["job"] == "vectors":
            encode = encoder()
            if encode is None:
                return {"done": 0, "total": 0}
            done, total = add_vectors(access, encode, encode.identity, _VECTORS)
            return {"done": done, "total": total}
        if request["job"] == "fill":
            return learner.fill(access, request["model"], request["files"], request["after"])
        return learner.learn(access, forced=request["forced"]).as_json()

    return answer


if __name__ == "__main__":
    main()
