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

_OF_KEYS = {
    "make invitation": ("person", Phrase("Made an invitation for {person}")),
    "withdraw invitation": ("person", Phrase("Took back the invitation of {person}")),
    "make token": ("person", Phrase("Made a token for {person}")),
    "withdraw token": ("person", Phrase("Took back the token of {person}")),
    "make webhook": ("host", Phrase("Made a webhook to {host}")),
    "withdraw webhook": ("host", Phrase("Took back the webhook to {host}")),
}


def sentence(entry: AuditEntry) -> str:
    """What was done. Plain text: names in it are people's words."""
    details = entry.details
    try:
        if entry.action in _OF_KEYS:
            fact, phrase = _OF_KEYS[entry.action]
            return say(phrase, **{fact: details[fact]})
        match entry.action:
            case "create":
                return say("Made the project: ") + str(details["name"])
            case "import":
                return say(
                    "Imported {rows:row}: {new_texts:new text}, {bad_rows:,} left out",
                    rows=details["rows"],
                    new_texts=details["new_texts"],
                    bad_rows=details["bad_rows"],
                )
            case "import labels":
                return say("Imported {labels:label} of other people", labels=details["labels"])
            case "guideline":
                return say("Changed the guideline: version {version}", version=details["version"])
            case "settings":
                return say("Changed settings: ") + _settings(details)
            case "labels":
                return say("Changed labels: ") + _labels(details)
            case "member":
                return _member(details)
            case "renew owner link":
                return say("Made the link of whoever runs the server anew")
            case "join people":
                return say(
                    "Joined {name} and {into} as one person: {texts:text}",
                    name=details["from"],
                    into=details["into"],
                    texts=details["texts"],
                )
            case "archive":
                return say("Archived the project")
            case "open again":
                return say("Opened the project again")
            case "merge labels":
                return say(
                    "Merged {name} into {into}: {texts:text}",
                    name=details["from"],
                    into=details["into"],
                    texts=details["texts"],
                )
            case "erase":
                return _erasing(details)
            case "adjudicate":
                return _adjudication(details)
            case "relabel":
                named = ", ".join(details["labels"]) or say("no label")
                return say(
                    "Decided {texts:text} at once: {named}", texts=details["texts"], named=named
                )
            case "undo relabel":
                return say(
                    "Took back what was decided at once: {texts:text}", texts=details["texts"]
                )
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
