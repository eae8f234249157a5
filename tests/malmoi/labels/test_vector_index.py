"""The vectors of a project's texts: complete, of one model, made anew where they are of no use."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from malmoi.__main__ import main
from malmoi.labels import vector_index
from malmoi.labels.access import ProjectAccess
from malmoi.labels.found_texts import add_texts
from malmoi.labels.stored_text import text_hash
from malmoi.labels.vector_index import add_vectors, read_index
from tests.malmoi.labels.conftest import Make

TEXTS = [f"글 {number}번입니다" for number in range(10)]


class Encoder:
    """A vector of length 1 by each text's bytes; counts what it is asked for."""

    def __init__(self) -> None:
        self.encoded = 0

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.encoded += len(texts)
        seeds = [int(hashlib.sha256(one.encode()).hexdigest()[:8], 16) for one in texts]
        found = np.stack([np.random.default_rng(seed).standard_normal(8) for seed in seeds])
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def access(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectAccess:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MALMOI_HOME", ".")
    monkeypatch.setattr(vector_index, "_TEXTS_A_FILE", 4)
    access = make()
    add_texts(access, TEXTS, "x.csv")
    return access


def files() -> list[Path]:
    return sorted(Path("runs/cache/vectors").rglob("*.safetensors"))


def fill(access: ProjectAccess, identity: str) -> int:
    """Compute all that is missing; how many texts that took."""
    encoder, done, total = Encoder(), 0, 1
    while done < total:
        done, total = add_vectors(access, encoder, identity, 3)
    return encoder.encoded


def test_only_what_is_missing_is_computed(access: ProjectAccess, any_url: str) -> None:
    assert add_vectors(access, Encoder(), "a", 3) == (3, 10)
    assert len(read_index(access, "a")) == 3
    assert (fill(access, "a"), fill(access, "a")) == (7, 0)
    add_texts(access, ["새 글"], "y.csv")
    assert fill(access, "a") == 1
    index = read_index(access, "a")
    (own, likeness), *others = index.nearest(Encoder()([TEXTS[3]])[0], 20)
    assert own == text_hash(TEXTS[3]) and likeness == pytest.approx(1, abs=1e-3)
    assert len(others) == 10 and others[0][1] < 0.999
    # Another model's, and a damaged file.
    assert len(read_index(access, "b")) == 0
    assert (fill(access, "b"), fill(access, "b")) == (11, 0)
    content = bytearray(files()[1].read_bytes())
    content[-5] ^= 1
    files()[1].write_bytes(content)
    files()[0].write_bytes(b"")
    assert len(read_index(access, "b")) < 11
    assert 0 < fill(access, "b") < 11 and len(read_index(access, "b")) == 11
    # Erased for good.
    erased = bytes.fromhex(text_hash(TEXTS[0]))
    assert any(erased in path.read_bytes() for path in files())
    erase = ["labels", "erase", "--database", any_url, "--yes"]
    assert main([*erase, "--text", TEXTS[0]]) == 0
    assert not any(erased in path.read_bytes() for path in files())
    assert len(read_index(access, "b")) == 10 and fill(access, "b") == 0
    assert main([*erase, "--project", "리뷰"]) == 0
    assert files() == []
