"""Saved chats: what was said, and not who said it and when."""

import re
from pathlib import Path

import pytest

from malmoi.errors import InputError
from malmoi.text.reading.records import load_table
from tests.malmoi.text.reading.test_strangers_files import notes_of, texts, write

CHATS = {
    "computer": (
        "민들레 님과 카카오톡 대화\n저장한 날짜 : 2024-05-20 09:00:00\n\n"
        "--------------- 2024년 5월 20일 월요일 ---------------\n"
        "[민들레] [오전 9:02] 오늘 회의는 몇 시에 하나요\n"
        "제비꽃님이 들어왔습니다.\n"
        "[제비꽃] [오전 9:05] 열 시에 합니다 @민들레\n자료도 가져와 주세요\n"
        "[민들레] [오전 9:06] 사진\n"
    ),
    "android": (
        "2024년 5월 20일 오전 9:01\n"
        "2024년 5월 20일 오전 9:02, 민들레 : 오늘 회의는 몇 시에 하나요\n"
        "2024년 5월 20일 오전 9:03, 민들레님이 제비꽃님을 초대했습니다.\n"
        "2024년 5월 20일 오전 9:05, 제비꽃 : 열 시에 합니다 \n자료도 가져와 주세요\n"
    ),
    "ios": (
        "2024년 5월 20일 월요일\n"
        "2024. 5. 20. 오전 9:02, 민들레 : 오늘 회의는 몇 시에 하나요\n"
        "2024. 5. 20. 오전 9:05, 제비꽃 : 열 시에 합니다 \n자료도 가져와 주세요\n"
    ),
}


def test_a_saved_chat_gives_what_was_said_and_no_names(tmp_path: Path) -> None:
    for content in CHATS.values():
        path = write(tmp_path / "chat.txt", content)
        found = [re.sub(r"\s*\n", "\n", text) for text in texts(path)]
        assert found == ["오늘 회의는 몇 시에 하나요", "열 시에 합니다\n자료도 가져와 주세요"]
        assert not {"민들레", "제비꽃"} & set(re.findall(r"[가-힣]+", " ".join(found)))
        assert "chat" in notes_of(path)[1]
        assert len(load_table("chat.txt", path.read_bytes())) == 2


# A message whose later lines look like a day or a notice, names with brackets and colons, mentions.
HARD_CHATS = {
    "days and notices inside a message": (
        "단톡 님과 카카오톡 대화\n저장한 날짜 : 2024-05-20 09:10:11\n\n"
        "[김철수] [오전 9:03] 일정표\n2024.06.01\n강릉 출발\n"
        "선생님이 말씀하신 과제가 마감되었습니다\n"
        "설정 > 카카오톡 대화 백업\n[이영희] [오전 9:05] 넵\n",
        [
            "일정표\n2024.06.01\n강릉 출발\n선생님이 말씀하신 과제가 마감되었습니다\n"
            "설정 > 카카오톡 대화 백업",
            "넵",
        ],
    ),
    "brackets in names": (
        "[박민수 [부장]] [오전 9:05] 회의합시다\n[[스태프] 홍길동] [오전 9:06] 공지입니다\n"
        "[ㅇㅇ] [오후 12:00] \n[ㅇㅇ] [오후 12:01] 네\n",
        ["회의합시다", "공지입니다", "네"],
    ),
    "an empty message": (
        "2024년 5월 20일 오전 9:02, 김철수 : 안녕\n2024년 5월 20일 오전 9:03, 이영희 : \n"
        "2024년 5월 20일 오전 9:04, 서울:이영희 : 네 안녕하세요\n",
        ["안녕", "네 안녕하세요"],
    ),
    "mentions": (
        "[이영희] [오전 9:02] @박민수 이거 봐요\n[박민수] [오전 9:03] 네\n"
        "[김] [오전 9:04] @김치찌개집 맛있음\n[김] [오전 9:05] @박민수님 네\n",
        ["이거 봐요", "네", "@김치찌개집 맛있음", "네"],
    ),
    "English, computer": (
        "KakaoTalk Chats with 단톡\nDate Saved : 2024-05-21\n\n"
        "--------------- Tuesday, May 21, 2024 ---------------\n"
        "[김철수] [9:02 AM] 안녕하세요\n이영희 left this chatroom.\n[김철수] [9:03 AM] Photo\n",
        ["안녕하세요"],
    ),
    "who was sent out, and calls": (
        "[방장] [오전 9:02] 안녕하세요\n이영희님을 내보냈습니다.\n"
        "[방장] [오전 9:03] 보이스톡 해요\n"
        "[방장] [오전 9:04] 페이스톡 12:30\n[방장] [오전 9:05] 보이스톡으로 하죠\n",
        ["안녕하세요", "보이스톡으로 하죠"],
    ),
    "English, Android": (
        "May 20, 2024 9:02 AM, 김철수 : 안녕하세요\nMay 20, 2024 9:03 AM, 이영희 : 네\n",
        ["안녕하세요", "네"],
    ),
    "iOS, notices with a colon behind the time": (
        "들꽃모임 (3명)과 카카오톡 대화.txt\n저장한 날짜 : 2024. 5. 20. 오후 7:30\n\n"
        "2024년 5월 20일 월요일\n"
        "2024. 5. 20. 오전 9:02: 민들레님이 제비꽃님을 초대했습니다.\n"
        "2024. 5. 20. 오전 9:02, 제비꽃 : 안녕하세요\n"
        "2024. 5. 20. 오전 9:05: 나팔꽃님이 퇴장했습니다.\n"
        "2024. 5. 20. 오전 9:06, 민들레 : 네\n",
        ["안녕하세요", "네"],
    ),
    "English, iOS, with narrow spaces": (
        "KakaoTalk Chats with 단톡\nDate Saved : May 20, 2024 at 9:30\u202fAM\n\n"
        "Monday, May 20, 2024\n"
        "May 20, 2024 at 9:02\u202fAM, 김철수 : 안녕하세요\n"
        "May 20, 2024 at 9:03\u202fAM: 이영희 left this chatroom.\n"
        "May 20, 2024 at 9:04\u202fAM, 김철수 : 네\n",
        ["안녕하세요", "네"],
    ),
    "English, the day first": (
        "20 May 2024 at 21:02, 김철수 : 안녕하세요\n20 May 2024 at 21:03, 이영희 : 네\n",
        ["안녕하세요", "네"],
    ),
    "a long message first": (
        "단톡 님과 카카오톡 대화\n저장한 날짜 : 2024-05-20\n[이영희] [오전 9:03] 긴 공지\n"
        + "".join(f"공지의 {n}번째 줄\n" for n in range(30))
        + "[김철수] [오전 9:04] 네\n",
        ["긴 공지\n" + "\n".join(f"공지의 {n}번째 줄" for n in range(30)), "네"],
    ),
}


def test_chats_that_are_hard_to_read(tmp_path: Path) -> None:
    for content, said in HARD_CHATS.values():
        assert texts(write(tmp_path / "chat.txt", content)) == said


def test_a_chat_in_an_unknown_form_is_refused_and_leaks_no_name(tmp_path: Path) -> None:
    heading = "단톡 님과 카카오톡 대화\n저장한 날짜 : 2024-05-20 09:00:00\n"
    path = write(tmp_path / "chat.txt", f"{heading}\n김철수(09시 02분) 안녕하세요\n")
    with pytest.raises(InputError, match=r"a saved chat in a form that is not known; .* none"):
        texts(path)
    assert texts(path, delimiter="none")[-1] == "김철수(09시 02분) 안녕하세요"


def test_a_diary_with_dates_is_no_chat(tmp_path: Path) -> None:
    lines = [
        "2024년 5월 20일 월요일",
        "친구와 카카오톡 대화를 나누다 잠들었다.",
        "2024년 5월 21일 화요일",
    ]
    lines += ["[알림] [오전 7:00] 기상 알람을 놓쳤다", "2024년 5월 22일 수요일", "택배가 왔다."]
    assert texts(write(tmp_path / "a.txt", "\n".join(lines))) == lines


def test_a_chat_saved_on_a_mac_is_a_table_of_what_was_said(tmp_path: Path) -> None:
    rows = "2024-05-20 09:02:00,김철수,안녕하세요\n2024-05-20 09:03:00,이영희,사진\n"
    rows += "2024-05-20 09:04:00,이영희,이영희님이 나갔습니다.\n"
    assert texts(write(tmp_path / "a.csv", f"Date,User,Message\n{rows}")) == ["안녕하세요"]


def test_no_delimiter_reads_a_chat_as_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "chat.txt", CHATS["computer"])
    assert texts(path, delimiter="none")[0] == "민들레 님과 카카오톡 대화"
