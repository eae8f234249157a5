"""Fetching from a folder of files that somebody else has downloaded."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from malmoi.text.public.description import Variant
from tests.malmoi.text.public.test_fetching import DATA, error_of, fetch, sha256, source


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("elsewhere/renamed.tsv", DATA),
        ("ratings.txt.gz", gzip.compress(DATA, mtime=0)),
        ("deep/er/ratings.txt.zst", zstandard.ZstdCompressor().compress(DATA)),
    ],
)
def test_a_mirror_may_name_and_pack_files_its_own_way(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / "mirror" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    outcome = fetch(
        source("https://example.org/ratings.txt"), tmp_path / "out", tmp_path / "mirror"
    )
    assert outcome.fetched == ("ratings.txt",)
    assert (tmp_path / "out" / "ratings.txt").read_bytes() == DATA


def test_a_mirror_may_have_linked_folders(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "ratings.txt").write_bytes(DATA)
    (mirror := tmp_path / "mirror").mkdir()
    (mirror / "linked").symlink_to(tmp_path / "elsewhere")
    (mirror / "up").symlink_to(mirror)
    fetch(source("https://example.org/ratings.txt"), tmp_path / "out", mirror)
    assert (tmp_path / "out" / "ratings.txt").read_bytes() == DATA


def test_a_file_in_the_mirror_that_is_not_the_original_is_refused(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "ratings.txt").write_bytes(b"other")
    out = tmp_path / "out"
    message = error_of(source("https://example.org/ratings.txt"), out, mirror)
    assert message == (
        f"{mirror / 'ratings.txt'}: expected SHA-256 {sha256(DATA)}, found {sha256(b'other')}; "
        "it is not the original ratings.txt and is not taken"
    )
    assert not out.exists()


def test_a_damaged_file_in_the_mirror_leaves_nothing(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "ratings.txt.gz").write_bytes(gzip.compress(DATA, mtime=0)[:-100])
    out = tmp_path / "out"
    message = error_of(source("https://example.org/ratings.txt"), out, mirror)
    assert message.startswith(f"{mirror / 'ratings.txt.gz'}: expected complete .gz data")
    assert not out.exists()


def test_a_known_variant_is_taken_and_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "ratings.txt").write_bytes(b"rebuilt")
    variant = Variant(sha256=sha256(b"rebuilt"), size=7, note="rebuilt, not official")
    described = source("https://example.org/ratings.txt", variants=(variant,))
    fetch(described, tmp_path / "out", mirror)
    assert "rebuilt, not official" in capsys.readouterr().out
    assert "rebuilt, not official" in (tmp_path / "out" / "SOURCE.json").read_text("utf-8")
    assert fetch(described, tmp_path / "out").kept == ("ratings.txt",)
    assert "rebuilt, not official" in capsys.readouterr().out


def test_a_file_of_another_source_with_that_name_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "ratings.txt").write_bytes(b"of another source")
    (other,) = source("https://example.org/other.txt").files
    other = replace(other, sha256=sha256(b"of another source"))
    others = {"other": replace(source("https://example.org/"), files=(other,))}
    monkeypatch.setattr("malmoi.text.public.mirror.sources", lambda: others)
    for known in (True, False):
        described = source("https://example.org/ratings.txt", known=known)
        assert fetch(described, tmp_path / "out", mirror).missing == ("ratings.txt",)
    assert not (tmp_path / "out").exists()


def test_two_unknown_files_of_one_name_are_not_chosen_from(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / "mirror" / folder).mkdir(parents=True)
        (tmp_path / "mirror" / folder / "ratings.txt").write_bytes(folder.encode())
    described = source("https://example.org/ratings.txt", known=False)
    assert "expected one file for ratings.txt" in error_of(
        described, tmp_path / "out", tmp_path / "mirror"
    )
