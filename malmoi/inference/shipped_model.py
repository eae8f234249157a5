"""A classifier as bytes, for machines that have not got it: its folder, and its ONNX export."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.inference.classifier import Classifier
from malmoi.inference.onnx_exports import entry_path, find_exported

# The files that `malmoi.inference.onnx_exports.model_hash` reads.
_EXPORT_MARK = "shipped-export.txt"
# What no classifier is loaded from.
_LEFT_OUT = (".bin", ".pt", ".pth", ".h5", ".msgpack", ".ot", ".html", ".png")


@dataclass(frozen=True, kw_only=True, slots=True)
class ShippedModel:
    """All files of a model, by their paths inside its folder.

    Attributes:
        name: what messages call it.
        engine: what computes, everywhere the same.
        sha256: of all of its files, which tells it from others.
        files: of the folder.
        export: of its entry in the cache of exports; empty where the engine needs none.
    """

    name: str
    engine: str
    sha256: str
    files: dict[str, bytes] = field(compare=False)
    export: dict[str, bytes] = field(compare=False)

    @property
    def num_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(map(len, [*self.files.values(), *self.export.values()]))


def ship_model(folder: Path, classifier: Classifier) -> ShippedModel:
    """Read the folder of a classifier that was loaded from it.

    Raises:
        OSError: it cannot be read.
    """
    export = {}
    if classifier.engine.startswith("onnx"):
        entry = entry_path(folder)
        if find_exported(entry) is not None:
            export = _files(entry)
    files = _files(folder)
    return ShippedModel(
        name=classifier.name,
        engine=classifier.engine,
        sha256=_sha256({**files, **{f"export/{name}": found for name, found in export.items()}}),
        files=files,
        export=export,
    )


def _sha256(files: dict[str, bytes]) -> str:
    """SHA-256 over names and bytes."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


def load_shipped(model: ShippedModel, threads: int) -> Classifier:
    """Load it on this machine; the folder is gone afterwards, the export stays in the cache.

    Raises:
        InputError: as `Classifier.load`.
    """
    with TemporaryDirectory(prefix="malmoi-model-") as place:
        folder = Path(place) / "model"
        _write(model.files, folder)
        if model.export:
            # Its content becomes part of the name under which it is cached: a machine that has
            # made an export of its own, by other versions, must not take that.
            (folder / _EXPORT_MARK).write_text(_sha256(model.export), encoding="utf-8")
            entry = entry_path(folder)
            if find_exported(entry) is None:
                with directory_at_once(entry, shared=True) as scratch:
                    _write(model.export, scratch)
        try:
            return Classifier.load(folder, model.engine, threads=threads)
        except InputError as error:
            raise InputError(str(error).replace(str(folder), model.name)) from error


def _files(folder: Path) -> dict[str, bytes]:
    """Without hidden ones, and measurements, which are of this machine."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if (
            path.is_file()
            and not hidden
            and path.suffix not in _LEFT_OUT
            and not path.name.startswith("fastest-")
        ):
            found[inside.as_posix()] = path.read_bytes()
    return found


def _write(files: dict[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
