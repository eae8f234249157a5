r"""Chats that a messenger has saved as text: what was said, without who said it and when.

KakaoTalk writes `[이름] [오전 9:02] 말` on a computer, `2024년 5월 20일 오전 9:02, 이름 : 말`
on Android and `2024. 5. 20. 오전 9:02, 이름 : 말` on iOS. Names and times are cut off, day lines
and notices (who came, who left) are left out, and the lines of one message are joined.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

_TIME = r"(?:오전|오후|AM|PM)?\s?\d{1,2}:\d{2}(?:\s?[AP]M)?"
_DAY = r"\d{4}(?:년|\.)\s?\d{1,2}(?:월|\.)\s?\d{1,2}(?:일|\.?)"
_SPOKEN = (
    re.compile(rf"\[(?P<name>[^\]]{{1,60}})\] \[{_TIME}\] (?P<said>.*)"),
    re.compile(rf"{_DAY},? {_TIME}, (?P<name>[^:]{{1,60}}?) : (?P<said>.*)"),
)
_NOTICES = (
    re.compile(rf"-{{5,}} .*{_DAY}.* -{{5,}}"),
    re.compile(rf"{_DAY}(?: \S요일)?(?:,? {_TIME})?"),
    re.compile(
        rf"(?:{_DAY},? {_TIME}, )?.{{1,60}}님(?:이|을) .*"
        r"(?:들어왔습니다|나갔습니다|초대(?:했습|하였습)니다|내보냈습니다|되었습니다)\.?"
    ),
    re.compile(r"저장한 날짜 ?: .*"),
    re.compile(r".*카카오톡 대화(?: 상대)?.*"),
    re.compile(r"채팅방 관리자가 메시지를 가렸습니다\.?"),
)
# What stands where something else than a text was sent.
_PLACEHOLDERS = {
    *("사진", "동영상", "이모티콘", "음성메시지", "지도", "연락처"),
    "삭제된 메시지입니다.",
}
# Of the first lines, this share must be spoken, a day or a notice.
_CERTAIN = 0.5


def is_chat(lines: Sequence[str]) -> bool:
    """Whether the first lines of a file are those of a saved chat."""
    filled = [line for line in lines if line.strip()]
    spoken = sum(_match(line) is not None for line in filled)
    told = spoken + sum(_is_notice(line) for line in filled)
    return spoken >= 1 and told >= 3 and told >= _CERTAIN * len(filled)


def messages(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Each message with the number of its first line; names of who speaks are taken out.

    Args:
        lines: all lines with their numbers.
    """
    names: set[str] = set()
    number, parts = 0, list[str]()
    for place, line in lines:
        found = _match(line)
        if found is not None or _is_notice(line):
            if text := _text(parts, names):
                yield number, text
            number, parts = place, []
            if found is not None:
                names.add(found["name"].strip())
                parts = [found["said"]]
        elif parts:
            parts.append(line)
    if text := _text(parts, names):
        yield number, text


def _text(parts: Sequence[str], names: set[str]) -> str:
    text = "\n".join(parts).strip()
    if text in _PLACEHOLDERS or re.fullmatch(r"사진 \d+장|파일: .*", text):
        return ""
    for name in names:
        text = text.replace(f"@{name}", "")
    return text.strip()


def _match(line: str) -> re.Match[str] | None:
    return next((found for form in _SPOKEN if (found := form.fullmatch(line.rstrip()))), None)


def _is_notice(line: str) -> bool:
    return any(form.fullmatch(line.strip()) for form in _NOTICES)
