"""The rated reviews: made of raw files, and never with one that is held out."""

import csv
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from malmoi.errors import InputError
from malmoi.text.public import made_files
from malmoi.text.public.catalog import find_source
from malmoi.text.public.fetching import fetch_source
from malmoi.text.public.held_out import LIST, HeldOutReviews
from malmoi.text.public.made_files import rated_table
from malmoi.text.reading.records import iter_records
from tests.malmoi.text.public.test_fetching import Server, answer, error_of, sha256
from tests.malmoi.text.public.test_fetching import server as server  # the fixture

MIRROR = Path(__file__).parents[5] / "shared" / "data"
NAME = "reviews_rated.tsv"
SOURCE = find_source("nsmc_rated")

HEADER = "id\tmovie_id\tdate\trating\tdocument\n"
HELD_OUT_TEXT = "이 리뷰는 시험에 나오는 글입니다"
RAW = {
    "10001": [
        {"review": "처음부터  끝까지\n좋았다", "review_id": "11", "rating": "10"},
        {"review": "아무나 쓴 다른 글입니다", "review_id": "12", "rating": "1"},
    ],
    "9": [
        {"review": HELD_OUT_TEXT.replace(" ", "\t "), "review_id": "13", "rating": "5"},
        {"review": '재밌다 "최고', "review_id": "14", "rating": "9"},
    ],
}
MADE = HEADER + (
    '14\t9\t15.08.25\t9\t재밌다 "최고\n11\t10001\t15.08.25\t10\t처음부터 끝까지 좋았다\n'
)


def number(text: str) -> bytes:
    return bytes.fromhex(sha256(text.encode())[:16])


@pytest.fixture
def held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list with one id, one text, and a text that is too short to count."""
    numbers = sorted(map(number, ("id:12", f"text:{HELD_OUT_TEXT}", 'text:재밌다 "최고')))
    (tmp_path / "held_out.u64").write_bytes(b"".join(numbers))
    ours = HeldOutReviews(tmp_path / "held_out.u64")
    monkeypatch.setattr(made_files, "HeldOutReviews", lambda: ours)


def members() -> Iterator[tuple[str, bytes]]:
    for movie, reviews in RAW.items():
        rows = [review | {"movie_id": movie, "date": "15.08.25"} for review in reviews]
        yield f"raw/{movie}.json", json.dumps(rows).encode()


def archive() -> bytes:
    """As GitHub packs a repository: below a folder, and with more in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in (("README.md", b"# NSMC"), ("code/1.json", b"[1]"), *members()):
            entry = tarfile.TarInfo(f"nsmc-cc0670e/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def source(url: str = "https://example.org/archive/abc.tar.gz", made: str = MADE):
    (file,) = SOURCE.files
    hashed = sha256(made.encode())
    return replace(SOURCE, files=(replace(file, url=url, sha256=hashed, size=len(made.encode())),))


@pytest.mark.usefixtures("held_out")
def test_a_held_out_review_is_left_out_by_its_id_and_by_its_text() -> None:
    assert "".join(rated_table(members())) == MADE
    backwards = reversed(list(members()))
    assert "".join(rated_table(backwards)) == MADE


@pytest.mark.usefixtures("held_out")
def test_the_table_is_made_of_the_archive_that_the_server_sends(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = archive()
    server.plan = [answer(200, packed, Content_Type="application/x-gzip")]
    out, nsmc = tmp_path / "out", source(f"{server.url}.tar.gz")
    assert fetch_source(nsmc, out).fetched == (NAME,)
    assert (out / NAME).read_text(encoding="utf-8") == MADE
    assert sorted(path.name for path in out.iterdir()) == ["SOURCE.json", NAME]
    assert "SHA-256 verified" in capsys.readouterr().out
    labels = [record.label for record in iter_records(out)]
    assert labels == ["9", "10"]
    assert fetch_source(nsmc, out).kept == (NAME,)


@pytest.mark.usefixtures("held_out")
@pytest.mark.parametrize("kind", ["NSMC-abc.tar.gz", "folder"])
def test_a_mirror_may_have_the_raw_files(kind: str, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    if kind == "folder":
        for name, content in members():
            path = mirror / "clone" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    else:
        mirror.mkdir()
        (mirror / kind).write_bytes(archive())
    out = tmp_path / "out"
    fetch_source(source(), out, mirror=mirror)
    assert (out / NAME).read_text(encoding="utf-8") == MADE


@pytest.mark.usefixtures("held_out")
def test_raw_files_that_make_another_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "abc.tar.gz").write_bytes(archive())
    message = error_of(source(made="other"), tmp_path / "out", tmp_path / "mirror")
    assert f"found some that make {sha256(MADE.encode())}" in message
    assert not (tmp_path / "out").exists()


def test_a_cut_archive_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.plan = [answer(200, archive()[:-40], Content_Type="application/x-gzip")]
    message = error_of(source(f"{server.url}.tar.gz"), tmp_path / "out")
    assert "expected a .tar.gz of a repository, found something else or a damaged one" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"{}x", b'{"a": 1}', b"[{}]", b'[{"review": 3}]'])
def test_a_raw_file_of_something_else_is_named(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^raw/7\.json: expected a movie's number as its name"):
        list(rated_table(iter([("raw/7.json", content)])))


def test_the_list_is_sorted_and_whole() -> None:
    numbers = LIST.read_bytes()
    assert len(numbers) == 8 * 181_906
    parts = [numbers[place : place + 8] for place in range(0, len(numbers), 8)]
    assert parts == sorted(set(parts))


@pytest.mark.skipif(not MIRROR.is_dir(), reason="the mirror ../shared/data is not here")
def test_no_review_of_the_rebuilt_test_file_can_come_in() -> None:
    path = MIRROR / "nsmc" / "ratings_test.txt"
    with path.open(encoding="utf-8", newline="") as file:
        tested = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(tested) == 50_000
    held_out = HeldOutReviews()
    for row in tested:
        assert held_out.holds(row["id"], "")
        if len(" ".join(row["document"].split())) >= 10:
            assert held_out.holds("", row["document"])
    reviews = [
        {"review_id": row["id"], "movie_id": "1", "date": "", "rating": "1"}
        | {"review": row["document"]}
        for row in tested
    ]
    assert list(rated_table(iter([("raw/1.json", json.dumps(reviews).encode())]))) == [HEADER]


@pytest.mark.skipif(not MIRROR.is_dir(), reason="the mirror ../shared/data is not here")
def test_the_table_of_the_mirror_is_taken_and_has_nothing_of_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nsmc = MIRROR / "nsmc"
    assert fetch_source(SOURCE, tmp_path, mirror=nsmc).fetched == (NAME,)
    assert "in the order that the released encoders read them in" in capsys.readouterr().out
    held_out = HeldOutReviews()
    with (tmp_path / NAME).open(encoding="utf-8", newline="\n") as file:
        assert next(file) == HEADER
        cells = [line.rstrip("\n").split("\t") for line in file]
    assert len(cells) == SOURCE.texts
    assert not any(held_out.holds(row[0], row[-1]) for row in cells)
