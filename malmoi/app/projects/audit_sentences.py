"""The audit trail as a person reads it: a sentence for each change."""

from collections.abc import Mapping
from typing import Any

from malmoi.app.language import number_of, say
from malmoi.app.projects.overview import ROLES
from malmoi.app.projects.settings_work import ORDERS
from malmoi.labels.projects import AuditEntry

_SETTINGS = {
    "annotators_per_text": ("글마다 사람 수", "annotators per text"),
    "show_suggestion": ("모델의 제안 보이기", "show the suggestion"),
    "text_order": ("글이 나오는 차례", "order of texts"),
    "random_share": ("무작위로 섞는 비율", "random share"),
    "model": ("모델", "model"),
    "lease_seconds": ("잡아 두는 시간(초)", "lease (seconds)"),
}


def sentence(entry: AuditEntry) -> str:
    """What was done. Plain text: names in it are people's words."""
    details = entry.details
    try:
        match entry.action:
            case "create":
                return say("작업을 만들었습니다: ", "Made the project: ") + str(details["name"])
            case "import":
                return say(
                    f"글을 가져왔습니다: {details['rows']:,}행, 새 글 {details['new_texts']:,}건, "
                    f"뺀 행 {details['bad_rows']:,}개",
                    f"Imported {number_of(details['rows'], 'row')}: "
                    f"{number_of(details['new_texts'], 'new text')}, "
                    f"{details['bad_rows']:,} left out",
                )
            case "guideline":
                return say(
                    f"지침을 고쳤습니다: {details['version']}판",
                    f"Changed the guideline: version {details['version']}",
                )
            case "settings":
                return say("진행 방식을 바꿨습니다: ", "Changed settings: ") + _settings(details)
            case "labels":
                return say("라벨을 바꿨습니다: ", "Changed labels: ") + _labels(details)
            case "member":
                return _member(details)
            case "archive":
                return say("작업을 보관했습니다", "Archived the project")
            case "open again":
                return say("작업을 다시 열었습니다", "Opened the project again")
            case "adjudicate":
                return _adjudication(details)
            case "relabel":
                named = ", ".join(details["labels"]) or say("라벨 없음", "no label")
                return say(
                    f"글 {details['texts']:,}건의 라벨을 한꺼번에 정했습니다: {named}",
                    f"Decided {number_of(details['texts'], 'text')} at once: {named}",
                )
            case "undo relabel":
                return say(
                    f"한꺼번에 정한 라벨을 되돌렸습니다: 글 {details['texts']:,}건",
                    f"Took back what was decided at once: {number_of(details['texts'], 'text')}",
                )
    except (KeyError, TypeError, ValueError):
        pass
    # Written by another version.
    told = ", ".join(f"{name} {_told(value)}" for name, value in details.items())
    return say(f"그 밖의 변경({entry.action})", f"Another change ({entry.action})") + (
        f": {told}" if told else ""
    )


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_told, value))
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_told(one)}" for name, one in value.items())
    return _value("", value)


def _settings(details: Mapping[str, Any]) -> str:
    parts = []
    for name, (before, after) in details.items():
        title = say(*_SETTINGS[name]) if name in _SETTINGS else name
        parts.append(f"{title} {_value(name, before)} → {_value(name, after)}")
    return ", ".join(parts)


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return say("예", "yes") if value else say("아니요", "no")
    if value is None:
        return say("없음", "none")
    if name == "text_order" and value in ORDERS:
        return say(*ORDERS[value])
    return f"{value:.0%}" if name == "random_share" else str(value)


def _labels(details: Mapping[str, Any]) -> str:
    before = {label["id"]: label for label in details["before"]}
    parts = []
    for label in details["after"]:
        old, name = before.get(label["id"]), label["name"]
        if old is None:
            parts.append(say(f"더함 {name}", f"added {name}"))
        elif old["name"] != name:
            parts.append(f"{old['name']} → {name}")
        elif label["retired"] and not old["retired"]:
            parts.append(say(f"그만 씀 {name}", f"retired {name}"))
        elif old["retired"] and not label["retired"]:
            parts.append(say(f"다시 씀 {name}", f"offered again {name}"))
        else:
            parts.append(say(f"{name}의 색·키·뜻", f"colour, key or meaning of {name}"))
    return ", ".join(parts) or say("차례만", "their order")


def _member(details: Mapping[str, Any]) -> str:
    person, role = details["person"], details["role"]
    if role is None:
        return say(f"사람을 뺐습니다: {person}", f"Removed {person}")
    title = say(*ROLES[role])
    return say(f"역할을 정했습니다: {person}, {title}", f"{person} is {title} now")


def _adjudication(details: Mapping[str, Any]) -> str:
    labels = details["labels"]
    if labels is None:
        return say(
            f"글 {details['text']}의 결정을 거뒀습니다",
            f"Withdrew the decision about text {details['text']}",
        )
    named = ", ".join(labels) or say("라벨 없음", "no label")
    return say(
        f"글 {details['text']}의 라벨을 정했습니다: {named}",
        f"Decided text {details['text']}: {named}",
    )
