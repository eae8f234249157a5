"""Classifiers exported to ONNX: in `runs/cache/onnx`, found by what they were made of, or in the
folder of a published model; and which engine was the fastest for a model on which machine.

An entry of the cache holds the network in fp32 and in int8, what is known of the model, and its
tokenizer. A published folder has the networks and what is known of the model in `onnx/`. Finding
one imports neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from malmoi import cache
from malmoi.files import directory_at_once, file_sha256, write_at_once
from malmoi.inference.description import ModelDescription
from malmoi.inference.engine import ENGINES, EngineName
from malmoi.inference.processor import machine_facts
from malmoi.installed import installed_version
from malmoi.model_folders import (
    PUBLISHED_DESCRIPTION,
    PUBLISHED_FP32,
    PUBLISHED_INT8,
    read_json,
)

KIND = "onnx"
FILES: dict[EngineName, str] = {"onnx-fp32": "fp32.onnx", "onnx-int8": "int8.onnx"}
PUBLISHED_FILES: dict[EngineName, str] = {
    "onnx-fp32": PUBLISHED_FP32,
    "onnx-int8": PUBLISHED_INT8,
}
# Raise it whenever what is written into a published folder could not be read by an older version.
_PUBLISHED_VERSION = 1
DESCRIPTION = "description.json"
TOKENIZER = "tokenizer.json"
# Raise it whenever another network would be exported of the same weights.
EXPORT_VERSION = 6
# Another process may be at an entry that it has just taken.
_SPARE_SECONDS = 3600.0
_MADE_BY = ("torch", "transformers", "tokenizers", "onnx", "onnxscript", "onnxruntime")
_MADE_OF = ("*.json", "*.txt", "*.model", "*.safetensors")
# What a run keeps beside the model, and changes nothing of it.
_NOT_MADE_OF = ("report.json", "calibration.json", "run.json", "corpus.json", "progress.json")


@dataclass(frozen=True, kw_only=True)
class Exported:
    """An entry of the cache, or a published folder.

    Attributes:
        path: its folder.
        description: of the classifier.
        tokenizer: its tokenizer.json; None where only transformers can tokenise for it.
        files: the .onnx file of every engine, below `path`.
        hashes: SHA-256 of these files; of none where an older version has published the folder.
    """

    path: Path
    description: ModelDescription
    tokenizer: str | None
    files: Mapping[EngineName, str]
    hashes: Mapping[str, str]

    def network(self, engine: EngineName) -> Path:
        """The .onnx file of an engine.

        Raises:
            ValueError: it is not as it was written.
            OSError: it cannot be read.
        """
        path = self.path / self.files[engine]
        if self.hashes and file_sha256(path) != self.hashes[self.files[engine]]:
            raise ValueError("a network that is not as it was written")
        return path


def entry_path(folder: Path) -> Path:
    """Where the export of the model in `folder` is kept, whether it is there or not."""
    return cache.CACHE / KIND / f"{_of_model(folder)}-{_versions()}"


def any_exported(folder: Path) -> Exported | None:
    """An export of the model in `folder`, by whatever versions of the packages; the newest."""
    found = (cache.CACHE / KIND).glob(f"{_of_model(folder)}-{'[0-9a-f]' * 8}")
    entries = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
    return next((one for path in entries if (one := find_exported(path))), None)


def _of_model(folder: Path) -> str:
    """How the entries of a model begin."""
    return hashlib.sha256(f"{EXPORT_VERSION} {model_hash(folder)}\n".encode()).hexdigest()[:24]


def model_hash(folder: Path) -> str:
    """SHA-256 over network, tokenizer and configuration of the model in `folder`."""
    digest = hashlib.sha256()
    files = {file for pattern in _MADE_OF for file in folder.glob(pattern)}
    for file in sorted(files):
        if file.name not in _NOT_MADE_OF:
            digest.update(f"{file.name} {file_sha256(file)}\n".encode())
    return digest.hexdigest()


def find_exported(path: Path) -> Exported | None:
    """The entry at `path`; None where there is none, or a damaged one, which is removed."""
    if not path.is_dir():
        return None
    try:
        values = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        description = ModelDescription(**values["model"])
        tokenizer = (path / TOKENIZER).read_text(encoding="utf-8") if values["fast"] else None
        hashes = {name: str(values["sha256"][name]) for name in FILES.values()}
    except (OSError, ValueError, KeyError, TypeError):
        cache.remove(path)
        return None
    with suppress(OSError):  # somebody else's folder
        cache.mark_used(path)
    return Exported(
        path=path, description=description, tokenizer=tokenizer, files=FILES, hashes=hashes
    )


def find_published(folder: Path) -> Exported | None:
    """The networks in a published folder; None where there are none of the model beside them."""
    if not (folder / PUBLISHED_DESCRIPTION).is_file():
        return None
    values = read_json(folder / PUBLISHED_DESCRIPTION)
    try:
        if values["version"] != _PUBLISHED_VERSION or values["made_of"] != model_hash(folder):
            return None
        if not all((folder / name).is_file() for name in PUBLISHED_FILES.values()):
            return None
        description = ModelDescription(**values["model"])
        tokenizer = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
        # Texts come here clean, and the table of the model's own is faster than patterns.
        tokenizer["normalizer"] = values["normalizer"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Exported(
        path=folder,
        description=description,
        tokenizer=json.dumps(tokenizer, ensure_ascii=False),
        files=PUBLISHED_FILES,
        hashes=values.get("sha256", {}),
    )


def write_published_description(
    folder: Path, description: ModelDescription, tokenizer: str
) -> None:
    """Write what `find_published` reads, into a folder that has all else already.

    `tokenizer` is the tokenizer.json that expects clean texts.
    """
    values = {
        "version": _PUBLISHED_VERSION,
        "model": asdict(description),
        "normalizer": json.loads(tokenizer)["normalizer"],
        "sizes": {name: (folder / name).stat().st_size for name in PUBLISHED_FILES.values()},
        "sha256": _hashes(folder, PUBLISHED_FILES),
        "made_of": model_hash(folder),
    }
    text = json.dumps(values, ensure_ascii=False, indent=1)
    (folder / PUBLISHED_DESCRIPTION).write_text(text, encoding="utf-8")


def _hashes(path: Path, files: Mapping[EngineName, str]) -> dict[str, str]:
    return {name: file_sha256(path / name) for name in files.values()}


@contextmanager
def write_entry(path: Path, description: ModelDescription, tokenizer: str | None) -> Iterator[Path]:
    """Yield a folder for the networks, make it the entry at `path`, and bound the cache.

    Raises:
        OSError: it cannot be written; errno.ENOSPC when the disk is full.
    """
    with directory_at_once(path, shared=True) as scratch:
        yield scratch
        _write_description(scratch, description, tokenizer)
    cache.bound(cache.CACHE, keep=[path], spare_seconds=_SPARE_SECONDS)


def _write_description(path: Path, description: ModelDescription, tokenizer: str | None) -> None:
    """Write what `find_exported` reads, into a folder that has the networks already."""
    values = {
        "model": asdict(description),
        "fast": tokenizer is not None,
        "sha256": _hashes(path, FILES),
    }
    if tokenizer is not None:
        (path / TOKENIZER).write_text(tokenizer, encoding="utf-8")
    text = json.dumps(values, ensure_ascii=False, indent=1)
    (path / DESCRIPTION).write_text(text, encoding="utf-8")


def measurements_path(folder: Path) -> Path:
    """Where measurements of the model in `folder` are kept, beside its exports."""
    return cache.CACHE / KIND / f"{_of_model(folder)}-measured"


def read_measurement(folder: Path) -> dict[str, Any]:
    """What was measured on a machine like this by these versions; empty where nothing was."""
    return read_json(measurements_path(folder) / f"fastest-{_machine()}-{_versions()}.json")


def write_measurement(folder: Path, values: dict[str, Any]) -> None:
    """Keep which engine is the fastest on this machine for the model in `folder`."""
    path = measurements_path(folder) / f"fastest-{_machine()}-{_versions()}.json"
    write_at_once(path, json.dumps(values, ensure_ascii=False, indent=1))


def measured_engine(folder: Path) -> EngineName | None:
    """The engine that was the fastest on a machine like this; None where nothing was measured."""
    found = read_measurement(folder).get("engine")
    return next((name for name in ENGINES if name == found), None)


def fastest_export(folder: Path) -> EngineName | None:
    """The fastest ONNX engine that agreed, by whatever versions, here or else on other machines."""
    files = sorted(
        measurements_path(folder).glob("fastest-*.json"),
        key=lambda file: (file.name.startswith(f"fastest-{_machine()}-"), file.stat().st_mtime),
    )
    for values in map(read_json, reversed(files)):
        if (engine := values.get("engine")) in FILES:
            return engine
        measured = {name: (values.get("measured") or {}).get(name) or {} for name in FILES}
        rates = {
            name: one["texts_per_second"] for name, one in measured.items() if one.get("agrees")
        }
        if rates:
            return max(rates, key=rates.__getitem__)
    return None


def all_measurements() -> list[dict[str, Any]]:
    """What was measured on this machine, of every exported classifier, newest first."""
    files = (cache.CACHE / KIND).glob(f"[!.]*/fastest-{_machine()}-{_versions()}.json")
    dated = sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)
    found = [read_json(file) for file in dated]
    return [values for values in found if {"engine", "model", "measured"} <= values.keys()]


def _machine() -> str:
    """Another machine that shares the folder has files of its own; so has one with a new GPU."""
    return hashlib.sha256(repr(machine_facts()).encode()).hexdigest()[:12]


def _versions() -> str:
    lines = (f"{package} {installed_version(package)}\n" for package in _MADE_BY)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:8]
