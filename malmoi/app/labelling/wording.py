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
    pad = say("numpad ")
    signs = {"Subtract": "-", "Add": "+", "Divide": "/", "Multiply": "*"}
    return _KEYS | {f"Numpad{name}": pad + sign for name, sign in signs.items()}


def sentences() -> dict[str, object]:
    """The sentences of `card.js`, by the names that it has for them."""
    return {"keys": keys(), **_progress(), **_acts(), **_text()}


def _progress() -> dict[str, str]:
    """How far it is, and what has become of the acts."""
    return {
        "progress": say("Mine {mine} · project {done} / {total}"),
        "progressOfSeveral": say("Mine {mine} · labelled by all {k}: {done} / {total}"),
        "projectProgress": say("Progress of the project"),
        "pace": say("{} an hour"),
        "saving": say("saving…"),
        "saved": say("saved ✓"),
        "unsaved": say("{} not saved yet"),
        "offline": say("No server; {} kept in this browser"),
        "failed": say(
            "Not possible now; what is not saved stays in this browser and is sent again:"
        ),
        "refused": say("Not saved, and kept below:"),
        "refusedTitle": say("Not saved, for you to decide: {}"),
        "retry": say("Send all of them again"),
        "decide": say("Label it again"),
        "discard": say("Throw away"),
        "textNumber": say("text {}"),
        "elsewhere": say(
            "{} of another project or person are not saved yet. They stay in this browser until "
            "that is open again."
        ),
    }


def _acts() -> dict[str, str]:
    """What can be done, and by which names."""
    return {
        "text": say("Text to label"),
        "labels": say("Labels: one press saves and goes on"),
        "labelsMulti": say("Labels: choose any number, then save"),
        "tools": say("Other acts"),
        "save": say("Save"),
        "undo": say("Undo"),
        "skip": say("Skip"),
        "flag": say("Flag"),
        "note": say("Note"),
        "noteHint": say("Note on this text. Enter saves, Esc cancels."),
        "words": say("Words behind it"),
        "similar": say("Similar texts"),
        "help": say("Help"),
        "helpTitle": say("Keys (in Hangul mode, too)"),
        "stop": say("Stop"),
        "close": say("Close"),
    }


def _text() -> dict[str, str]:
    """What is said of the text on screen, or in place of one."""
    return {
        "model": say("The model says:"),
        "unsure": say("The model hardly knows yet:"),
        "previous": say("Its label now:"),
        "skipped": say("skipped"),
        "none": say("none of them"),
        "together": say("The same label for texts nearly the same: {}"),
        "recent": say("What I labelled or skipped"),
        "answered": say("answered: {}"),
        "noWork": say("None yet."),
        "change": say("Change"),
        "coming": say("Fetching texts…"),
        "nothing": say(
            "Nothing is left for you to label now. It goes on when texts of others come back or "
            "new ones are imported. Below are your labels and what you skipped, to look at again."
        ),
        "others": say(
            "The last texts are with other people: {n}. They come here when those stop or rest "
            "for {m} min. It looks again every 20 s."
        ),
        "lookAgain": say("Look again"),
        "stopped": say("Your texts are given back. All labels are saved."),
        "resume": say("Go on"),
    }
