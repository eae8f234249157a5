"""Every encoding and compression that a Korean file comes in, and every way it can be broken."""

import gzip
import re
from pathlib import Path

import pytest
import zstandard

from malmoi.errors import InputError
from malmoi.text.reading.decoding import CHUNK_BYTES, TextFile
from malmoi.text.reading.sources import Source, find_sources, source_of_upload

KOREAN = "꿈을 꿨다 ㅋㅋ\n오늘 일정 있음\n"


def lines_of(data: bytes, name: str = "a.txt") -> list[str]:
    source = source_of_upload(name, data)
    with source.open_bytes() as stream:
        text = TextFile(stream, source)
        assert list(text.lines()) == list(text.lines())  # read again from the start
        return list(text.lines())


def encoding_of(source: Source) -> str:
    with source.open_bytes() as stream:
        return TextFile(stream, source).encoding


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def test_encoding_is_found() -> None:
    for data, encoding in (
        (KOREAN.encode("utf-8"), "utf-8"),
        (b"plain ascii\n", "utf-8"),
        (KOREAN.encode("utf-8-sig"), "utf-8-sig"),
        (KOREAN.encode("cp949"), "cp949"),
        (KOREAN.encode("euc-kr"), "cp949"),
        ("똠방각하 햏햏\n".encode("cp949"), "cp949"),  # syllables that EUC-KR lacks
        ("李씨 大韓民國\n".encode("cp949"), "cp949"),
        (KOREAN.encode("utf-16"), "utf-16"),
        (b"\xff\xfe" + KOREAN.encode("utf-16-le"), "utf-16"),
        (b"\xfe\xff" + KOREAN.encode("utf-16-be"), "utf-16"),
    ):
        assert encoding_of(source_of_upload("a.txt", data)) == encoding


def test_other_separators_stay_inside_a_line() -> None:
    line = "하나\u2028둘\x0b셋\x0c넷\x85다섯\u2029여섯\x1c\n"
    assert lines_of(line.encode()) == [line]


def test_korean_that_starts_far_into_the_file() -> None:
    ascii_part = b"a" * (CHUNK_BYTES - 1)
    for codec in ("utf-8", "cp949"):
        assert lines_of(ascii_part + "한글".encode(codec))[0].endswith("a한글")


def test_undecodable_file_names_the_line() -> None:
    for data, message in (
        (b"", "a.txt: the file is empty; expected text in it"),
        (b"PK\x03\x04\x00\x00", "a.txt: not a text file"),
        ("가나".encode("utf-16-le") + b"a\0", "a.txt: not a text file"),
        ("가".encode("utf-32"), "a.txt: not a text file"),
        # One bad byte in UTF-8: CP949 gives up earlier, so the line is UTF-8's.
        ("가나 다라\n둘\n".encode() + b"\xff\n", "a.txt:3: expected UTF-8 or CP949 text"),
        ("가나 다라\r둘\r셋\r\n".encode() + b"\xff\n", "a.txt:4: expected UTF-8 or CP949 text"),
        # Cut off inside a character; these bytes happen to be valid CP949.
        ("밌안밌안".encode()[:-2], "a.txt:1: expected UTF-8 or CP949 text"),
        ("가나\n다라\n".encode("cp949") + b"\xb0", "a.txt:3: expected UTF-8 or CP949 text"),
        ("가나\n".encode("utf-8-sig") + b"\xff", "a.txt:2: expected UTF-8 text"),
        ("가나\n다".encode("utf-16") + b"\x00", "a.txt:2: expected UTF-16 text"),
        (
            b"a\n" * CHUNK_BYTES + "한글\n".encode() * 3 + b"\xff",
            f"a.txt:{CHUNK_BYTES + 4}: expected UTF-8 or CP949 text",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            encoding_of(source_of_upload("a.txt", data))


def test_compressed_text() -> None:
    for name, data in (
        ("a.txt.gz", gzip.compress(KOREAN.encode(), mtime=0)),
        (
            "a.txt.gz",
            gzip.compress(KOREAN.encode()[:10], mtime=0)
            + gzip.compress(KOREAN.encode()[10:], mtime=0),
        ),
        ("A.TXT.GZ", gzip.compress(KOREAN.encode("cp949"), mtime=0)),
        ("a.txt.zst", zstd(KOREAN.encode())),
        ("a.txt.zst", zstd(KOREAN.encode()[:10]) + zstd(KOREAN.encode()[10:])),
        ("a.txt.zst", b"\x50\x2a\x4d\x18\x02\x00\x00\x00ab" + zstd(KOREAN.encode())),
    ):
        assert "".join(lines_of(data, name)) == KOREAN


def test_damaged_compression() -> None:
    for name, data in (
        ("a.txt.gz", gzip.compress(KOREAN.encode() * 100, mtime=0)[:-9]),
        ("a.txt.gz", gzip.compress(KOREAN.encode(), mtime=0)[:-1] + b"\xff"),
        ("a.txt.gz", KOREAN.encode()),
        ("a.txt.zst", zstd(KOREAN.encode() * 100)[:-3]),
        ("a.txt.zst", zstd(KOREAN.encode()) + b"garbage"),
        ("a.txt.zst", KOREAN.encode()),
    ):
        suffix = name[-4:].lstrip("t")
        with pytest.raises(InputError, match=re.escape(f"{name}: expected complete {suffix} data")):
            encoding_of(source_of_upload(name, data))


def test_empty_compressed_file() -> None:
    for name in ("a.txt.gz", "a.txt.zst"):
        empty = gzip.compress(b"", mtime=0) if name.endswith(".gz") else zstd(b"")
        for data in (b"", empty):
            with pytest.raises(InputError, match="the file is empty"):
                encoding_of(source_of_upload(name, data))


def test_file_that_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("가")
    (source,) = find_sources(path)
    path.unlink()
    with pytest.raises(InputError, match=r"a\.txt: cannot be opened \(No such file"):
        encoding_of(source)
