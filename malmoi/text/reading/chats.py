r"""Chats that a messenger has saved as text: what was said, without who said it and when.

KakaoTalk writes `[이름] [오전 9:02] 말` on a computer, `2024년 5월 20일 오전 9:02, 이름 : 말`
on Android and `2024. 5. 20. 오전 9:02, 이름 : 말` on iOS, and the like in English; on a Mac a table
of Date, User and Message. Names and times are cut off, day lines and notices (who came, who left)
are left out, and the lines of one message are joined.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from malmoi.errors import InputError
from malmoi.messages import Flag
from malmoi.text.reading.delimiters import NO_DELIMITER

# Newer phones put a narrow space that does not break before AM and PM.
_TIME = r"(?:(?:오전|오후|AM|PM)\s?)?\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_DAY = (
    r"(?:(?:[A-Z][a-z]{2,8}, )?"
    r"(?:\d{4}(?:년 ?|\. ?|/|-)\d{1,2}(?:월 ?|\. ?|/|-)\d{1,2}(?:일|\.)?"
    rf"|\d{{1,2}}[/.]\d{{1,2}}[/.](?:\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}}, \d{{4}}"
    rf"|\d{{1,2}} {_MONTH},? \d{{4}}))"
)
_MOMENT = rf"{_DAY},? (?:at )?{_TIME}"
_SPOKEN = (
    re.compile(rf"\[(?P<name>.{{1,80}}?)\] \[{_TIME}\](?: (?P<said>.*))?"),
    re.compile(rf"{_MOMENT}, (?P<name>.{{1,60}}?) :(?: (?P<said>.*))?"),
)
# Lines that nobody has said. Those with a moment in front are certain.
_TOLD = re.compile(rf"{_MOMENT}(?:[,:] .*)?")
_DAY_LINE = re.compile(
    rf"-{{5,}} [^-]{{3,60}} -{{5,}}|{_DAY} \S{{1,3}}요일|(?=[A-Z][a-z]+day, ){_DAY}"
)
_NOTICE = re.compile(
    r".{1,40}님이 (?:들어왔|나갔|나가셨|입장했|퇴장했|입장하셨|퇴장하셨)습니다\.?(?:운영정책.*)?"
    r"|.{1,40}님이 .{1,200}님을 (?:초대했습니다|초대하였습니다|내보냈습니다)\.?"
    r"|\S{1,40}님을 내보냈습니다\.?"
    r"|.{1,40} (?:left|joined|entered) this chatroom\.|.{1,40} invited .{1,200}\."
    r"|채팅방 관리자가 메시지를 가렸습니다\.?|운영정책을 위반한 메시지로 신고 접수 시 .*"
)
# What the first lines of a saved chat say of it; when it was saved is said by nothing else.
_SAVED = re.compile(r"(?:저장한 날짜|Date Saved) ?: .*\d.*")
_HEADING = re.compile(rf".{{1,80}}카카오톡 대화|KakaoTalk Chats? with .*|{_SAVED.pattern}")
_HEADING_LINES = 5
# What stands where something else than a text was sent.
_PLACEHOLDER = re.compile(
    r"사진(?: \d+장)?|동영상|이모티콘|음성메시지|지도|연락처|파일: .*|삭제된 메시지입니다\.?"
    r"|(?:보이스톡|페이스톡|그룹콜|라이브톡) (?:해요|취소|부재중|종료|\d{1,2}:\d{2}(?::\d{2})?)"
    r"|메시지가 삭제되었습니다\.?|Photos?|Videos?|Emoticons?|This message was deleted\."
)
# Without a heading, of the first lines so many must be spoken, alone and with those that tell.
_SPOKEN_SHARE, _TOLD_SHARE = 0.3, 0.5
MAC_COLUMNS = ("date", "user", "message")


def is_chat(lines: Sequence[str], where: str) -> bool:
    """Whether the first lines of a file are those of a saved chat; `where` is what messages name.

    Raises:
        InputError: they say so, and no message is in a form that is known: names and times would
            be taken for texts.
    """
    filled = [line for line in lines if line.strip()]
    spoken = sum(_match(line) is not None for line in filled)
    heading = [line.strip() for line in filled[:_HEADING_LINES]]
    if any(map(_HEADING.fullmatch, heading)):
        others = len(filled) > sum(map(_is_heading, filled))
        if not spoken and others and any(map(_SAVED.fullmatch, heading)):
            raise InputError(
                "expected messages such as {form!r}, found a saved chat in a form that is not "
                "known; save it again on a computer, or read each line as a text by {flag}",
                place=where,
                form="[이름] [오전 9:02] 말",
                flag=Flag("--delimiter", NO_DELIMITER),
            )
        return spoken > 0
    told = spoken + sum(_is_told(line) for line in filled)
    count = len(filled)
    return spoken >= 2 and spoken >= _SPOKEN_SHARE * count and told >= _TOLD_SHARE * count


def speakers(lines: Iterable[str]) -> set[str]:
    """The names of all who speak."""
    return {found["name"].strip() for line in lines if (found := _match(line)) is not None}


def messages(
    lines: Iterable[tuple[int, str]], names: Iterable[str] = ()
) -> Iterator[tuple[int, str]]:
    """Each message with the number of its first line.

    Args:
        lines: all lines with their numbers.
        names: of who speaks; where they are mentioned (@이름) they are taken out.
    """
    known = sorted((re.escape(name) for name in names if name), key=len, reverse=True)
    mention = re.compile(rf"@(?:{'|'.join(known)})(?:님)?(?!\w)") if known else None
    number, parts = 0, list[str]()
    for place, line in lines:
        found = _match(line)
        if found is None:
            # Only such a line is left out: what follows may be of the same message.
            if parts and not _is_told(line):
                parts.append(line)
            continue
        if text := _text(parts, mention):
            yield number, text
        number, parts = place, [found["said"] or ""]
    if text := _text(parts, mention):
        yield number, text


def is_said(text: str) -> bool:
    """Whether a message is a text of somebody, and no notice or placeholder."""
    plain = text.strip()
    return not (_PLACEHOLDER.fullmatch(plain) or _NOTICE.fullmatch(plain))


def _text(parts: Sequence[str], mention: re.Pattern[str] | None) -> str:
    text = "\n".join(parts).strip()
    if not is_said(text):
        return ""
    return (mention.sub("", text) if mention is not None else text).strip()


def _match(line: str) -> re.Match[str] | None:
    plain = line.rstrip("\r\n")
    return next((found for form in _SPOKEN if (found := form.fullmatch(plain))), None)


def _is_heading(line: str) -> bool:
    return _HEADING.fullmatch(line.strip()) is not None or _is_told(line)


def _is_told(line: str) -> bool:
    plain = line.strip()
    return any(form.fullmatch(plain) for form in (_TOLD, _DAY_LINE, _NOTICE))
