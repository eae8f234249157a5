"""Tables that are made of a repository's files."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pandas
import pytest

from malmoi.text.public import made_files
from malmoi.text.public.catalog import find_source
from malmoi.text.public.fetching import fetch_source
from malmoi.text.public.made_files import (
    curse_table,
    dialogue_table,
    note_lines,
    review_table,
    speech_table,
    tale_lines,
    title_table,
)
from tests.malmoi.text.public.test_fetching import Server, answer, sha256
from tests.malmoi.text.public.test_fetching import server as server  # the fixture

MUSIC = [{"turns": [{"user_message": "노래  틀어줘", "system_message": "네\n틀게요"}]}]
MANUAL = {
    "dial_data": {
        "samsung": [
            {
                "turns": [
                    {"role": "user", "utterance": "노래 틀어줘"},
                    {"role": "system", "utterance": "설정을 여세요"},
                ]
            }
        ]
    }
}


def test_a_line_ends_with_its_label_whatever_stands_before() -> None:
    lines = list(curse_table(iter([("dataset.txt", "뭐 |이런\t게|1\n 좋다|0\n".encode())])))
    assert lines == ["text\tlabel\n", "뭐 |이런 게\t1\n", "좋다\t0\n"]


def test_utterances_of_both_kinds_stand_once_in_whatever_order_files_come() -> None:
    members = [
        ("hg/Music_x/dev_dialog.json", json.dumps(MUSIC).encode()),
        ("hg/Manual_x/dev.json", json.dumps(MANUAL).encode()),
    ]
    made = list(dialogue_table(iter(members)))
    assert made == [
        "speaker\ttext\n",
        *("user\t노래 틀어줘\n", "system\t설정을 여세요\n", "system\t네 틀게요\n"),
    ]
    elsewhere = [(f"/mirror/{name}", content) for name, content in reversed(members)]
    assert list(dialogue_table(iter(elsewhere))) == made


def page(body: str, public: str = "true") -> bytes:
    return f"---\nlayout  : wiki\npublic  : {public}\n---\n* TOC\n{{:toc}}\n{body}".encode()


NOTE = """
## 제목은 남기지 않는다
심심해서 [텔레그램](https://telegram.org) 봇을  `만들어` **보았다**.[^1]
* 1. [[/cmd/man]]을 쓰는 [[/cmd/ls]]{다른 명령어}
> 남의 글을 그대로 옮긴 것
```sh
# 파일을 지우는 명령어
```
| 명령어는 | 표에도 있다 |
짧다
[^1]: 어느 책의 몇 번째 쪽
"""


def test_of_a_note_its_own_prose_is_left() -> None:
    members = [
        ("blog-1/_wiki/cmd/b.md", page(NOTE)),
        ("blog-1/_wiki/a.md", page("남에게 보이지 않는 글이다.\n", public="false")),
        ("blog-1/_posts/2017/c.md", page("심심해서 텔레그램 봇을 만들어 보았다.\n")),
    ]
    lines = list(note_lines(iter(members)))
    assert lines == ["심심해서 텔레그램 봇을 만들어 보았다.\n", "man을 쓰는 다른 명령어\n"]
    elsewhere = [(f"/mirror/{name}", content) for name, content in reversed(members)]
    assert list(note_lines(iter(elsewhere))) == lines


def test_korean_lines_of_a_tale_stand_once() -> None:
    members = [
        ("l-1/books/korean_folktales/v2/a.md", "# A\n두더지의  딸\n\n- 새 줄\n".encode()),
        ("l-1/books/korean_folktales/v1/a.md", "# A TALE\n\n## 두더지의 딸\n\nA mole.\n".encode()),
    ]
    lines = ["두더지의 딸\n", "새 줄\n"]
    assert list(tale_lines(iter(members))) == lines
    assert list(tale_lines(iter(reversed(members)))) == lines


def speeches(*rows: tuple[int, str, str]) -> bytes:
    columns = zip(*rows, strict=True)
    table = dict(zip(("division_number", "president", "speech_text"), columns, strict=True))
    pandas.DataFrame(table).to_parquet(packed := io.BytesIO())
    return packed.getvalue()


def test_speeches_are_cut_into_sentences_with_and_without_spaces() -> None:
    content = speeches(
        (2, "노무현", "한.미 관계가 2.5배 좋아졌습니다.고맙습니다!\r\n\n‘잘했다.’ 하고"),
        (1, "김대중", "국민 여러분! 반갑습니다."),
        (3, "이승만", "오래된 말입니다."),
    )
    assert list(speech_table(iter([("speech.parquet", content)]))) == [
        "president\ttext\n",
        *("김대중\t국민 여러분!\n", "김대중\t반갑습니다.\n"),
        *("노무현\t한.미 관계가 2.5배 좋아졌습니다.\n", "노무현\t고맙습니다!\n"),
        "노무현\t‘잘했다.’ 하고\n",
    ]


def zipped(name: str, content: str) -> bytes:
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as file:
        file.writestr(name, content)
    return packed.getvalue()


def test_titles_stand_with_their_categories() -> None:
    table = 'id,category,title\n1,행정,"불법건축물,  양성화"\n2,기타, \n'
    packed = zipped("data/petition_data.csv", table)
    assert list(title_table(iter([("data.zip", packed)]))) == [
        "category\ttitle\n",
        "행정\t불법건축물, 양성화\n",
    ]


REVIEWS = "id,title,review,score,sentiment\n"


def test_a_later_review_is_left_out_if_a_test_review_says_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class HeldOut:
        def holds(self, _: str, text: str) -> bool:
            return text == "감동적인 영화입니다."

    monkeypatch.setattr(made_files, "HeldOutReviews", HeldOut)
    rows = '1,왕,"명작,\n이다 ",10.0,\n2,왕,감동적인  영화입니다.,9.0,\n3,왕,,8.0,\n'
    assert list(review_table(iter([("reviews.csv", (REVIEWS + rows).encode())]))) == [
        "id\trating\treview\n",
        "1\t10\t명작, 이다\n",
    ]


def test_a_table_is_made_of_the_one_file_that_the_server_sends(
    server: Server, tmp_path: Path
) -> None:
    """Not of an archive only: a repository can be hundreds of times as large as what is wanted."""
    titles = find_source("petition_titles")
    (file,) = titles.files
    packed = zipped("data/petition_data.csv", "category,title\n행정,제목\n")
    made = b"category\ttitle\n" + "행정\t제목\n".encode()
    ours = replace(file, url=f"{server.url}/data.zip", sha256=sha256(made), size=len(made))
    source = replace(titles, files=(ours,))
    server.plan = [answer(200, packed)]
    fetch_source(source, tmp_path / "out")
    assert (tmp_path / "out" / file.name).read_bytes() == made
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["SOURCE.json", file.name]
    # From a mirror by its own folder: many a file is called data.zip.
    for folder in ("other/data", file.made_of[0].rpartition("/")[0]):
        path = tmp_path / "mirror" / folder / "data.zip"
        path.parent.mkdir(parents=True)
        path.write_bytes(packed if folder != "other/data" else b"other")
    fetch_source(source, tmp_path / "b", mirror=tmp_path / "mirror")
    assert (tmp_path / "b" / file.name).read_bytes() == made
