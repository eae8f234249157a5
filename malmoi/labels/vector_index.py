"""Vectors of a project's texts, kept in the cache, that find the texts like another one.

A folder a project: files of some thousand texts each, with the SHA-256 of every text, its vector of
length 1 and the identity of the model that made it. What another model has made, and a damaged
file, count as missing and are made anew.

Legend: N texts, H numbers of a vector.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from sqlalchemy import Engine, select

from malmoi.cache import mark_used
from malmoi.files import write_at_once
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import from_any_folder
from malmoi.labels.tables import TextRow
from malmoi.paths import runs

# An addition rewrites the last file until it has so many: 3 MB at 384 numbers.
_TEXTS_A_FILE = 4_096
_HASH_BYTES = 32


@dataclass(frozen=True)
class VectorIndex:
    """What is there of a project's vectors.

    Attributes:
        hashes: SHA-256 of each text (`text_hash`), uint8 [N, 32].
        vectors: float32 [N, H], each of length 1.
    """

    hashes: np.ndarray
    vectors: np.ndarray

    def __len__(self) -> int:
        return len(self.hashes)

    def vector(self, text_sha256: str) -> np.ndarray | None:
        """That of a text, float32 [H]; None where it is missing."""
        key = np.frombuffer(bytes.fromhex(text_sha256), dtype=np.uint8)
        places = np.flatnonzero((self.hashes == key).all(axis=1))
        return self.vectors[places[0]] if len(places) else None

    def nearest(self, vector: np.ndarray, most: int) -> list[tuple[str, float]]:
        """The hashes of the texts most like a vector of length 1, with their cosines."""
        if not len(self):
            return []
        cosines = self.vectors @ vector
        some = np.argpartition(-cosines, min(most, len(cosines)) - 1)[:most]
        some = some[np.argsort(-cosines[some], kind="stable")]
        return [(self.hashes[one].tobytes().hex(), float(cosines[one])) for one in some]


def read_index(access: ProjectAccess, identity: str) -> VectorIndex:
    """The vectors of a model that a project has by now; may have texts that have gone since."""
    folder = _folder(access.engine, access.project_id)
    mark_used(folder)
    stamps = [(path, path.stat()) for path in _files(folder)]
    return _index(tuple((path, one.st_mtime_ns, one.st_size) for path, one in stamps), identity)


def add_vectors(
    access: ProjectAccess, encode: Callable[[Sequence[str]], np.ndarray], identity: str, most: int
) -> tuple[int, int]:
    """Compute the next vectors of a project, and drop those of texts that it has no more.

    Args:
        encode: gives the vectors of N clean texts, each of length 1; [N, H].
        most: texts that are computed.

    Returns:
        How many texts have a vector, and how many texts there are.
    """
    folder = _folder(access.engine, access.project_id)
    known = {one for path in _files(folder) for one in _checked(path, identity)}
    query = select(TextRow.text_sha256, TextRow.id).where(TextRow.project_id == access.project_id)
    with access.reading() as connection:
        texts = dict(connection.execute(query.order_by(TextRow.id)).tuples().all())
        missing = [one for one in texts if one not in known][:most]
        chosen = select(TextRow.text_sha256, TextRow.text).where(
            TextRow.id.in_([texts[one] for one in missing])
        )
        words = dict(connection.execute(chosen).tuples().all())
    if known - texts.keys():
        drop_vectors(access.engine, access.project_id)
    if missing:
        vectors = encode([words[one] for one in missing]).astype(np.float16)
        keys = np.frombuffer(bytes.fromhex("".join(missing)), dtype=np.uint8)
        _append(folder, keys.reshape(-1, _HASH_BYTES), vectors, identity)
    return len(known & texts.keys()) + len(missing), len(texts)


def drop_vectors(engine: Engine, project_id: int) -> None:
    """Drop the vectors of texts that a project has no more; all, where it is erased."""
    query = select(TextRow.text_sha256).where(TextRow.project_id == project_id)
    with engine.connect() as connection:
        texts = set(connection.scalars(query))
    for path in _files(_folder(engine, project_id)):
        part = _read(path)
        stay = [] if part is None else [one in texts for one in _hex(part[1])]
        if part is None or not any(stay):
            path.unlink(missing_ok=True)
        elif not all(stay):
            identity, hashes, vectors = part
            _write(path, hashes[stay], vectors[stay], identity)
    _index.cache_clear()


def _folder(engine: Engine, project_id: int) -> Path:
    url = from_any_folder(engine.url).render_as_string(hide_password=True)
    named = hashlib.sha256(f"{url}\0{project_id}".encode()).hexdigest()
    return runs("cache") / "vectors" / named[:16]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.safetensors"))


def _checked(path: Path, identity: str) -> Iterator[str]:
    """The hashes of a file; one that is of no use is removed."""
    part = _read(path)
    if part is None or part[0] != identity:
        path.unlink(missing_ok=True)
    else:
        yield from _hex(part[1])


def _append(folder: Path, hashes: np.ndarray, vectors: np.ndarray, identity: str) -> None:
    files = _files(folder)
    last = _read(files[-1]) if files else None
    if last is not None and len(last[1]) + len(hashes) <= _TEXTS_A_FILE:
        both = np.concatenate([last[1], hashes]), np.concatenate([last[2], vectors])
        _write(files[-1], *both, identity)
    else:
        number = int(files[-1].stem) + 1 if files else 0
        _write(folder / f"{number:06}.safetensors", hashes, vectors, identity)


def _write(path: Path, hashes: np.ndarray, vectors: np.ndarray, identity: str) -> None:
    checksum = _checksum(hashes, vectors)
    content = save(
        {"texts": hashes, "vectors": vectors}, {"identity": identity, "checksum": checksum}
    )
    write_at_once(path, content)


@lru_cache(maxsize=2)
def _index(files: tuple[tuple[Path, int, int], ...], identity: str) -> VectorIndex:
    """Read once for each state of the files; 154 MB for 100,000 texts at 384 numbers."""
    parts = [part for path, *_ in files if (part := _read(path)) and part[0] == identity]
    if not parts:
        return VectorIndex(np.zeros((0, _HASH_BYTES), np.uint8), np.zeros((0, 0), np.float32))
    return VectorIndex(
        np.concatenate([hashes for _, hashes, _ in parts]),
        np.concatenate([vectors for *_, vectors in parts]).astype(np.float32),
    )


def _read(path: Path) -> tuple[str, np.ndarray, np.ndarray] | None:
    """Identity, hashes and vectors; None of a damaged file."""
    try:
        with safe_open(path, "numpy") as file:
            said = file.metadata() or {}
            hashes, vectors = file.get_tensor("texts"), file.get_tensor("vectors")
    except (SafetensorError, OSError):
        return None
    if said.get("checksum") != _checksum(hashes, vectors):
        return None
    return said.get("identity", ""), hashes, vectors


def _checksum(hashes: np.ndarray, vectors: np.ndarray) -> str:
    return str(zlib.crc32(vectors.tobytes(), zlib.crc32(hashes.tobytes())))


def _hex(hashes: np.ndarray) -> list[str]:
    digits = hashes.tobytes().hex()
    return [digits[at : at + 2 * _HASH_BYTES] for at in range(0, len(digits), 2 * _HASH_BYTES)]
