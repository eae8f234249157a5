"""Classifiers exported to ONNX: in `runs/cache/onnx`, found by what they were made of, or in the
folder of a published model.

An entry of the cache holds the network in fp32 and in int8, what is known of the model, its
tokenizer, and which engine was the fastest on which machine. A published folder has the networks
and what is known of the model in `onnx/`. Finding one imports neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from malmoi import cache
from malmoi.files import file_sha256, write_at_once
from malmoi.inference.description import ModelDescription
from malmoi.inference.engine import ENGINES, EngineName
from malmoi.model_folders import (
    PUBLISHED_DESCRIPTION,
    PUBLISHED_FP32,
    PUBLISHED_INT8,
    read_json,
)
from malmoi.workers.local import available_cores

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
EXPORT_VERSION = 3
# End of the names of entries that have measurements of a published model, and no networks.
_PUBLISHED = "-published"
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
    """

    path: Path
    description: ModelDescription
    tokenizer: str | None
    files: Mapping[EngineName, str]

    def network(self, engine: EngineName) -> Path:
        """The .onnx file of an engine."""
        return self.path / self.files[engine]


def entry_path(folder: Path) -> Path:
    """Where the export of the model in `folder` is kept, whether it is there or not."""
    digest = hashlib.sha256()
    for package in _MADE_BY:
        digest.update(f"{package} {_version(package)}\n".encode())
    return cache.CACHE / KIND / f"{_of_model(folder)}-{digest.hexdigest()[:8]}"


def published_entry_path(folder: Path) -> Path:
    """Where it is kept what is measured of a published model.

    That is no export, and must not stand in the place of one.
    """
    entry = entry_path(folder)
    return entry.with_name(f"{entry.name}{_PUBLISHED}")


def any_exported(folder: Path) -> Exported | None:
    """An export of the model in `folder`, by whatever versions of the packages; the newest."""
    entries = [path for path in _entries(folder) if not path.name.endswith(_PUBLISHED)]
    return next((one for path in entries if (one := find_exported(path))), None)


def measurements_of_published(folder: Path) -> list[Path]:
    """Where it lies what was measured of a published model, by whatever versions; newest first."""
    return [path for path in _entries(folder) if path.name.endswith(_PUBLISHED)]


def _entries(folder: Path) -> list[Path]:
    found = (cache.CACHE / KIND).glob(f"{_of_model(folder)}-*")
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


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
        if (sizes := _sizes(path, FILES)) != values["sizes"]:
            raise ValueError(f"files of {sizes} bytes, not {values['sizes']}")
    except (OSError, ValueError, KeyError, TypeError):
        remove_exported(path)
        return None
    with suppress(OSError):  # somebody else's folder
        cache.mark_used(path)
    return Exported(path=path, description=description, tokenizer=tokenizer, files=FILES)


def find_published(folder: Path) -> Exported | None:
    """The networks in a published folder; None where there are none of the model beside them."""
    if not (folder / PUBLISHED_DESCRIPTION).is_file():
        return None
    values = read_json(folder / PUBLISHED_DESCRIPTION)
    try:
        if values["version"] != _PUBLISHED_VERSION or values["made_of"] != model_hash(folder):
            return None
        if values["sizes"] != _sizes(folder, PUBLISHED_FILES):
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
    )


def write_published_description(
    folder: Path, description: ModelDescription, tokenizer: str
) -> None:
    """Write what `find_published` reads, into a folder that has all else already.

    Args:
        folder: with model, tokenizer and networks.
        description: of the classifier.
        tokenizer: the tokenizer.json that expects clean texts.
    """
    values = {
        "version": _PUBLISHED_VERSION,
        "model": asdict(description),
        "normalizer": json.loads(tokenizer)["normalizer"],
        "sizes": _sizes(folder, PUBLISHED_FILES),
        "made_of": model_hash(folder),
    }
    text = json.dumps(values, ensure_ascii=False, indent=1)
    (folder / PUBLISHED_DESCRIPTION).write_text(text, encoding="utf-8")


def _sizes(path: Path, files: Mapping[EngineName, str]) -> dict[str, int]:
    return {name: (path / name).stat().st_size for name in files.values()}


def remove_exported(path: Path) -> None:
    """Remove a damaged entry; it is made again when it is wanted."""
    shutil.rmtree(path, ignore_errors=True)


def write_description(path: Path, description: ModelDescription, tokenizer: str | None) -> None:
    """Write what `find_exported` reads, into a folder that has the networks already."""
    values = {
        "model": asdict(description),
        "fast": tokenizer is not None,
        "sizes": _sizes(path, FILES),
    }
    if tokenizer is not None:
        (path / TOKENIZER).write_text(tokenizer, encoding="utf-8")
    text = json.dumps(values, ensure_ascii=False, indent=1)
    (path / DESCRIPTION).write_text(text, encoding="utf-8")


def read_measurement(path: Path) -> dict[str, Any]:
    """What `write_measurement` wrote on a machine like this; empty where nothing was measured."""
    return read_json(path / _measurement_name())


def measured_engine(path: Path) -> EngineName | None:
    """The engine that was the fastest on a machine like this; None where nothing was measured."""
    found = read_measurement(path).get("engine")
    return next((name for name in ENGINES if name == found), None)


def fastest_elsewhere(path: Path) -> EngineName | None:
    """The fastest ONNX engine that agreed on some other machine; None where none was measured."""
    files = sorted(path.glob("fastest-*.json"), key=lambda file: file.stat().st_mtime)
    for values in map(read_json, reversed(files)):
        measured = {name: (values.get("measured") or {}).get(name) or {} for name in FILES}
        rates = {
            name: one["texts_per_second"] for name, one in measured.items() if one.get("agrees")
        }
        if rates:
            return max(rates, key=rates.__getitem__)
    return None


def write_measurement(path: Path, values: dict[str, Any]) -> None:
    """Keep which engine is the fastest on this machine, in the entry at `path`."""
    write_at_once(path / _measurement_name(), json.dumps(values, ensure_ascii=False, indent=1))


def all_measurements() -> list[dict[str, Any]]:
    """What was measured on this machine, of every exported classifier, newest first."""
    files = (cache.CACHE / KIND).glob(f"[!.]*/{_measurement_name()}")
    dated = sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)
    found = [read_json(file) for file in dated]
    return [values for values in found if {"engine", "model", "measured"} <= values.keys()]


def _measurement_name() -> str:
    """Another machine that shares the folder has a file of its own; so has one with a new GPU."""
    facts = (_processor(), available_cores(), Path("/dev/nvidia0").exists())
    return f"fastest-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}.json"


def _processor() -> str:
    """Name and abilities of the processor, which decide what is fast."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.processor()} {platform.machine()} {os.cpu_count()}"
    known = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return "\n".join(known[:2])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
