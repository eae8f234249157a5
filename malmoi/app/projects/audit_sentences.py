"""The audit trail as a person reads it: a sentence for each change."""

from collections.abc import Mapping
from typing import Any

from malmoi.app.language import say
from malmoi.app.projects.overview import ROLES
from malmoi.app.projects.settings_work import ORDERS
from malmoi.labels.projects import AuditEntry
from malmoi.messages import Phrase

_SETTINGS = {
    "annotators_per_text": Phrase("annotators per text"),
    "show_suggestion": Phrase("show the suggestion"),
    "text_order": Phrase("order of texts"),
    "random_share": Phrase("random share"),
    "model": Phrase("model"),
    "lease_seconds": Phrase("lease (seconds)"),
}

# What the facts of an entry are enough for; `from` is no name that a sentence can have.
_SENTENCES = {
    "import": Phrase("Imported {rows:row}: {new_texts:new text}, {bad_rows:,} left out"),
    "import labels": Phrase("Imported {labels:label} of other people"),
    "guideline": Phrase("Changed the guideline: version {version}"),
    "make invitation": Phrase("Made an invitation for {person}"),
    "withdraw invitation": Phrase("Took back the invitation of {person}"),
    "make token": Phrase("Made a token for {person}"),
    "withdraw token": Phrase("Took back the token of {person}"),
    "make webhook": Phrase("Made a webhook to {host}"),
    "withdraw webhook": Phrase("Took back the webhook to {host}"),
    "renew owner link": Phrase("Made the link of whoever runs the server anew"),
    "join people": Phrase("Joined {name} and {into} as one person: {texts:text}"),
    "assign": Phrase("Gave {texts:text} to {person}"),
    "take back assigned": Phrase("Took {texts:text} back from {person}"),
    "archive": Phrase("Archived the project"),
    "open again": Phrase("Opened the project again"),
    "merge labels": Phrase("Merged {name} into {into}: {texts:text}"),
    "undo relabel": Phrase("Took back what was decided at once: {texts:text}"),
}


def sentence(entry: AuditEntry) -> str:
    """What was done. Plain text: names in it are people's words."""
    details = entry.details
    try:
        match entry.action:
            case "create":
                return say("Made the project: ") + str(details["name"])
            case "settings":
                return say("Changed settings: ") + _settings(details)
            case "labels":
                return say("Changed labels: ") + _labels(details)
            case "member":
                return _member(details)
            case "erase":
                return _erasing(details)
            case "adjudicate":
                return _adjudication(details)
            case "relabel":
                named = ", ".join(details["labels"]) or say("no label")
                return say(
                    "Decided {texts:text} at once: {named}", texts=details["texts"], named=named
                )
            case action if action in _SENTENCES:
                facts = dict(details)
                if "from" in facts:
                    facts["name"] = facts.pop("from")
                return say(_SENTENCES[action], **facts)
    except (KeyError, TypeError, ValueError):
        pass
    # Written by another version.
    told = ", ".join(f"{name} {_told(value)}" for name, value in details.items())
    return say("Another change ({action})", action=entry.action) + (f": {told}" if told else "")


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_told, value))
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_told(one)}" for name, one in value.items())
    return _value("", value)


def _settings(details: Mapping[str, Any]) -> str:
    parts = []
    for name, (before, after) in details.items():
        title = say(_SETTINGS[name]) if name in _SETTINGS else name
        parts.append(f"{title} {_value(name, before)} → {_value(name, after)}")
    return ", ".join(parts)


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if value is None:
        return say("none")
    if name == "text_order" and value in ORDERS:
        return say(ORDERS[value])
    return f"{value:.0%}" if name == "random_share" else str(value)


def _labels(details: Mapping[str, Any]) -> str:
    before = {label["id"]: label for label in details["before"]}
    parts = []
    for label in details["after"]:
        old, name = before.get(label["id"]), label["name"]
        if old is None:
            parts.append(say("added {name}", name=name))
        elif old["name"] != name:
            parts.append(f"{old['name']} → {name}")
        elif label["retired"] and not old["retired"]:
            parts.append(say("retired {name}", name=name))
        elif old["retired"] and not label["retired"]:
            parts.append(say("offered again {name}", name=name))
        else:
            parts.append(say("colour, key or meaning of {name}", name=name))
    return ", ".join(parts) or say("their order")


def _member(details: Mapping[str, Any]) -> str:
    person, role = details["person"], details["role"]
    if role is None:
        return say("Removed {person}", person=person)
    title = say(ROLES[role])
    return say("{person} is {title} now", person=person, title=title)


def _erasing(details: Mapping[str, Any]) -> str:
    if details["what"] == "person":
        return say("Erased a person's name: they are {now} now", now=details["now"])
    return say("Erased {texts:text} for good", texts=details["texts"])


def _adjudication(details: Mapping[str, Any]) -> str:
    labels = details["labels"]
    if labels is None:
        return say("Withdrew the decision about text {text}", text=details["text"])
    named = ", ".join(labels) or say("no label")
    return say("Decided text {text}: {named}", text=details["text"], named=named)
