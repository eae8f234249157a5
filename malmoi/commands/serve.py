"""`malmoi serve --model M`: the classifier over HTTP; `--labels`: the projects of a database."""

import os
import re
import sys
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from malmoi.errors import InputError
from malmoi.inference.engine import EngineChoice
from malmoi.model_folders import check_classifier
from malmoi.serving.limits import ABOVE_0, Limits

if TYPE_CHECKING:
    from malmoi.labels.projects import ProjectStore
    from malmoi.serving.models import ServedModel

ABOUT = (
    "Answer HTTP requests with a classifier: POST /v1/predict with texts, GET /docs for the rest. "
    "Label Studio can use it as a machine-learning backend. With --labels programs read and give "
    "labels, with or without a classifier beside them. Ctrl-C or SIGTERM ends it, after the "
    "requests that have come are answered."
)
TOKEN_VARIABLE = "MALMOI_TOKEN"
# A person could guess a shorter one (assumption).
_SHORTEST_TOKEN = 16
_PACKAGES = ("fastapi", "uvicorn", "prometheus_client")


@dataclass(frozen=True, kw_only=True)
class ServeSettings(Limits):
    """What is served, where, and to whom."""

    HELP_GROUPS: ClassVar[dict[str, tuple[str, ...]]] = {
        "server": ("model", "also", "labels", "host", "port", "engine", "threads", "token_file"),
        "limit": tuple(item.name for item in fields(Limits)),
    }

    model: str | None = None
    """A fine-tuned classifier: name of a run or of a released model, directory, or Hub id. None is
    needed with --labels."""
    also: tuple[str, ...] = ()
    """Further models, each as NAME=MODEL: they answer at /v1/models/NAME/predict."""
    labels: str | None = None
    """URL of a label database, or path of a SQLite file, whose projects are served; who may do what
    there is said by the tokens of malmoi labels token."""
    host: str = "127.0.0.1"
    """Address to listen on; by default only this machine can reach it. 0.0.0.0: every address."""
    port: int = 8000
    """Port to listen on; 0 takes a free one."""
    engine: EngineChoice = "auto"
    """What computes; fastest measures which agrees with torch-fp32 and is the fastest, auto takes
    what was measured, else what suits the processor."""
    threads: Annotated[int | None, ABOVE_0] = None
    """Threads of an ONNX engine; by default as many as there are cores."""
    token_file: Path | None = None
    """File with a token that clients must give (Authorization: Bearer TOKEN); by default that of
    the variable MALMOI_TOKEN, if it is set."""


def main(settings: ServeSettings) -> None:
    """Serve until a signal ends it."""
    sources = _sources(settings)
    from malmoi.serving.server import listen, only_here, run_server, url_of

    token = _token(settings.token_file)
    with listen(settings.host, settings.port) as taken:
        from malmoi.serving.application import make_application
        from malmoi.serving.models import Models

        store = None if settings.labels is None else _store(settings.labels)
        load = partial(_load, settings)
        models = Models({name: load(name, source) for name, source in sources.items()}, load)
        application = make_application(models, limits=settings, token=token, store=store)
        if sources and token is None and not only_here(taken):
            print(
                f"whoever can reach {settings.host} may use it, unencrypted; give --token-file, "
                "and put a proxy with TLS before it",
                file=sys.stderr,
                flush=True,
            )
        shown = [f"{each.classifier.name} by {each.classifier.engine}" for each in models]
        if store is not None:
            shown.append(f"labels of {store.engine.url.render_as_string()}")
        line = f"{', '.join(shown)} at {url_of(taken)} (Ctrl-C ends it)"
        run_server(
            application,
            taken,
            settings,
            ready=lambda: print(line, flush=True),
            read_anew=models.read_anew,
        )


def _load(settings: ServeSettings, name: str, source: str) -> "ServedModel":
    from malmoi.inference.classifier import Classifier
    from malmoi.inference.onnx_exports import model_hash
    from malmoi.model_folders import classifier_folder
    from malmoi.serving.models import ServedModel

    before = model_hash(classifier_folder(source))
    classifier = Classifier.load(source, settings.engine, threads=settings.threads)
    if model_hash(classifier_folder(source)) != before:
        raise InputError(
            "the files of {source} changed while they were read; load it again", source=source
        )
    version = f"{classifier.name}-{before[:8]}"
    return ServedModel(name=name, source=source, version=version, classifier=classifier)


def _store(database: str) -> "ProjectStore":
    from malmoi.labels.connection import existing_database
    from malmoi.labels.projects import ProjectStore

    return ProjectStore(existing_database(database, "--labels"), "--labels")


def _sources(settings: ServeSettings) -> dict[str, str]:
    """Name -> model, of all that are to be served; what must be there for it is."""
    from importlib.util import find_spec

    if absent := [name for name in _PACKAGES if find_spec(name) is None]:
        raise InputError(
            "malmoi serve needs {absent}: pip install -c constraints.txt -e .",
            absent=", ".join(absent),
        )
    from malmoi.serving.models import DEFAULT

    if settings.model is None and (settings.labels is None or settings.also):
        raise InputError(
            "expected --model, or --labels without --also, found none; see malmoi serve --help"
        )
    sources = {} if settings.model is None else {DEFAULT: settings.model}
    for pair in settings.also:
        name, _, source = pair.partition("=")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or not source or name in sources:
            raise InputError(
                "expected --also NAME=MODEL with another name for each, of Latin letters, digits, "
                '".", "_" and "-", found {pair}',
                pair=pair,
            )
        sources[name] = source
    for source in sources.values():
        check_classifier(source)
    return sources


def _token(file: Path | None) -> str | None:
    """The token of the file, else of the variable; None where there is neither."""
    if file is None:
        found, place = os.environ.get(TOKEN_VARIABLE), TOKEN_VARIABLE
        if found is None:
            return None
    else:
        place = str(file)
        try:
            found = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                "expected a token in {file}, found {error}; check the path", file=file, error=error
            ) from error
    found = found.strip()
    if len(found) < _SHORTEST_TOKEN or not found.isascii() or len(found.split()) != 1:
        raise InputError(
            "expected a token of at least {shortest} ASCII characters without spaces in {where}, "
            'found another; make one: python -c "import secrets; print(secrets.token_urlsafe())"',
            shortest=_SHORTEST_TOKEN,
            where=place,
        )
    return found
