"""Kiwi's word vectors: its own cosines again, kept once, and made again where they are damaged."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from kiwipiepy import Kiwi

from malmoi import cache
from malmoi.text import morpheme_vectors as module
from malmoi.text.morpheme_vectors import morpheme_vectors
from malmoi.text.morphemes import eojeol_morphemes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the vectors in it."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "CACHE", folder)
        morpheme_vectors()
    return folder


@pytest.fixture(autouse=True)
def _own_cache(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CACHE", made)


def test_cosines_are_those_of_kiwi() -> None:
    vectors = morpheme_vectors().astype(np.float32)
    rng = np.random.default_rng(7)
    left, right = rng.integers(0, len(vectors), (2, 2000))
    similarity = Kiwi(num_workers=1).morpheme_similarity
    expected = [similarity(int(a), int(b)) for a, b in zip(left, right, strict=True)]
    found = (vectors[left] * vectors[right]).sum(axis=1)
    assert np.abs(found - expected).max() < 1e-3


def test_neighbours_mean_something_alike() -> None:
    vectors = morpheme_vectors().astype(np.float32)
    ((_, nightmare),) = eojeol_morphemes(["악몽"])[0]
    nearest = np.argsort(-vectors @ vectors[nightmare])[:30].tolist()
    alike = eojeol_morphemes(["꿈속", "불면증", "해몽", "비몽사몽"])
    ids = {morphemes[0][1] for morphemes in alike}
    assert nearest[0] == nightmare
    assert len(ids & set(nearest)) >= 2


def test_a_second_call_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_computed", lambda: pytest.fail("computed again"))
    assert len(morpheme_vectors()) > 70_000
    assert [entry.path.parent.name for entry in cache.entries(cache.CACHE)] == [module.KIND]


@pytest.mark.parametrize("damage", [b"", b"not an array", None])
def test_a_damaged_cache_is_made_again(
    damage: bytes | None, made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = morpheme_vectors()
    monkeypatch.setattr(cache, "CACHE", tmp_path)
    monkeypatch.setattr(module, "_computed", lambda: whole.astype(np.float32))
    morpheme_vectors()
    (file,) = tmp_path.rglob("*.npy")
    file.write_bytes(file.read_bytes()[:5000] if damage is None else damage)
    assert np.array_equal(morpheme_vectors(), whole)
    assert np.array_equal(np.load(file), whole)


def test_starts_at_the_same_time_do_not_disturb_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = morpheme_vectors()
    monkeypatch.setattr(cache, "CACHE", tmp_path)
    monkeypatch.setattr(module, "_computed", lambda: whole.astype(np.float32))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: morpheme_vectors(), range(4)))
    assert all(np.array_equal(one, whole) for one in found)
    assert len(list(tmp_path.rglob("*.npy"))) == 1


def test_a_place_that_cannot_be_written_to_is_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = morpheme_vectors()
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cache, "CACHE", tmp_path / "file")
    monkeypatch.setattr(module, "_computed", lambda: whole.astype(np.float32))
    assert np.array_equal(morpheme_vectors(), whole)


def test_eojeols_are_analysed_by_themselves() -> None:
    found = eojeol_morphemes(["악몽을", "갔다", "", "ㅋ" * 5000])
    assert [name for name, _ in found[0]] == ["악몽/NNG", "을/JKO"]
    assert [name for name, _ in found[1]] == ["가/VV", "었/EP", "다/EF"]
    assert len(found) == 4 and all(found)
