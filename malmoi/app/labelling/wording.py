"""What the labelling card says."""

from malmoi.app.language import say

# What stands on a key; where two mean the same, the first is shown on the button.
_KEYS = {
    "KeyZ": "Z",
    "KeyX": "X",
    "KeyC": "C",
    "KeyV": "V",
    "KeyB": "B",
    "Minus": "-",
    "Equal": "=",
    "Slash": "/",
    "Quote": "'",
    "Backspace": "Backspace",
    "Enter": "Enter",
    "Help": "?",
}


def keys() -> dict[str, str]:
    """Names of keys, by `event.code`."""
    pad = say("숫자판 ", "numpad ")
    signs = {"Subtract": "-", "Add": "+", "Divide": "/", "Multiply": "*"}
    return _KEYS | {f"Numpad{name}": pad + sign for name, sign in signs.items()}


def sentences() -> dict[str, object]:
    """The sentences of `card.js`, by the names that it has for them."""
    return {"keys": keys(), **_progress(), **_acts(), **_text()}


def _progress() -> dict[str, str]:
    """How far it is, and what has become of the acts."""
    return {
        "progress": say(
            "내 라벨 {mine} · 작업 {done} / {total}", "Mine {mine} · project {done} / {total}"
        ),
        "progressOfSeveral": say(
            "내 라벨 {mine} · {k}명이 모두 붙인 글 {done} / {total}",
            "Mine {mine} · labelled by all {k}: {done} / {total}",
        ),
        "projectProgress": say("작업의 진행", "Progress of the project"),
        "pace": say("시간당 {}건", "{} an hour"),
        "left": say("이 속도로 {h}시간 {m}분 남음", "{h} h {m} min left at this pace"),
        "leftMinutes": say("이 속도로 {m}분 남음", "{m} min left at this pace"),
        "soon": say("거의 끝났습니다", "nearly done"),
        "saving": say("저장 중…", "saving…"),
        "saved": say("저장됨 ✓", "saved ✓"),
        "unsaved": say("저장 중 {}건", "{} not saved yet"),
        "offline": say(
            "서버에 닿지 않아 {}건을 이 브라우저에 두었습니다",
            "No server; {} kept in this browser",
        ),
        "failed": say(
            "지금은 할 수 없습니다. 저장하지 못한 것은 이 브라우저에 두고 다시 보냅니다:",
            "Not possible now; what is not saved stays in this browser and is sent again:",
        ),
        "refused": say("저장할 수 없어 뺐습니다:", "Left out, as it cannot be saved:"),
    }


def _acts() -> dict[str, str]:
    """What can be done, and by which names."""
    return {
        "text": say("라벨을 붙일 글", "Text to label"),
        "labels": say("라벨: 누르면 저장하고 다음 글로", "Labels: one press saves and goes on"),
        "labelsMulti": say("라벨: 여러 개를 고른 뒤 저장", "Labels: choose any number, then save"),
        "tools": say("다른 일", "Other acts"),
        "save": say("저장", "Save"),
        "undo": say("되돌리기", "Undo"),
        "skip": say("건너뛰기", "Skip"),
        "flag": say("깃발", "Flag"),
        "note": say("메모", "Note"),
        "noteHint": say(
            "이 글에 대한 메모. Enter로 저장, Esc로 그만둡니다.",
            "Note on this text. Enter saves, Esc cancels.",
        ),
        "words": say("근거 낱말", "Words behind it"),
        "help": say("도움말", "Help"),
        "helpTitle": say("단축키 (한글 상태에서도 됩니다)", "Keys (in Hangul mode, too)"),
        "stop": say("그만하기", "Stop"),
        "close": say("닫기", "Close"),
    }


def _text() -> dict[str, str]:
    """What is said of the text on screen, or in place of one."""
    return {
        "model": say("모델의 생각:", "The model says:"),
        "unsure": say("모델도 아직 잘 모릅니다:", "The model hardly knows yet:"),
        "previous": say("지금 붙어 있는 라벨:", "Its label now:"),
        "skipped": say("건너뜀", "skipped"),
        "none": say("해당 없음", "none"),
        "together": say(
            "거의 같은 글 {}건에도 같은 라벨 붙이기", "The same label for texts nearly the same: {}"
        ),
        "recent": say("내가 붙이거나 건너뛴 글 보기", "What I labelled or skipped"),
        "noWork": say("아직 없습니다.", "None yet."),
        "change": say("고치기", "Change"),
        "coming": say("글을 받아 오는 중입니다…", "Fetching texts…"),
        "nothing": say(
            "지금은 라벨을 붙일 글이 남아 있지 않습니다. 다른 사람이 맡은 글이 돌아오거나 새 글이 "
            "들어오면 이어집니다. 건너뛴 글과 붙인 라벨은 아래에서 다시 볼 수 있습니다.",
            "Nothing is left for you to label now. It goes on when texts of others come back or "
            "new ones are imported. Below are your labels and what you skipped, to look at again.",
        ),
        "others": say(
            "남은 글 {n}건은 다른 사람이 맡고 있습니다. 그 사람이 그만하거나 {m}분 동안 쉬면 "
            "여기로 돌아옵니다. 20초마다 다시 찾아봅니다.",
            "The last texts are with other people: {n}. They come here when those stop or rest for "
            "{m} min. It looks again every 20 s.",
        ),
        "lookAgain": say("다시 찾아보기", "Look again"),
        "stopped": say(
            "맡은 글을 돌려놓았습니다. 붙인 라벨은 모두 저장되어 있습니다.",
            "Your texts are given back. All labels are saved.",
        ),
        "resume": say("이어서 하기", "Go on"),
    }
