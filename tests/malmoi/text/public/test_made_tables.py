"""Tables that are made of a repository's files."""

import json

import pytest

from malmoi.errors import InputError
from malmoi.text.public.curse_detection import curse_table
from malmoi.text.public.hgtods import dialogue_table

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


@pytest.mark.parametrize("line", ["좋다", "좋다|2"])
def test_a_line_without_a_label_is_named(line: str) -> None:
    with pytest.raises(InputError, match=r"^dataset\.txt:2: expected a text, \| and 0 or 1"):
        list(curse_table(iter([("dataset.txt", f"좋다|0\n{line}\n".encode())])))


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


@pytest.mark.parametrize("content", [b"x", b"[1]", b"{}", b'{"dial_data": {"a": [{}]}}'])
def test_a_file_without_dialogues_is_named(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^hg/dev\.json: expected dialogues with turns"):
        list(dialogue_table(iter([("a/hg/dev.json", content)])))
