"""The words that carried a suggestion, from the model that made it."""

from typing import Any

from malmoi.app.explanation import for_visitors
from malmoi.app.found_models import model_named, stamp
from malmoi.app.language import say
from malmoi.app.model_choice import load_model
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.leasing import suggestion_of
from malmoi.labels.stored_text import sha256_of
from malmoi.labels.text_state import require_text


def words_behind(access: ProjectAccess, text_id: int) -> dict[str, Any]:
    """For the card: `words` as start, end (in characters) and weight, or the `reason` of none.

    `sha256` is of the text that has them.
    """
    try:
        with access.reading() as connection:
            text = require_text(connection, access.project_id, text_id)
        suggestion = suggestion_of(access, text_id)
        if suggestion is None:
            return _none(text_id, say("This text has no suggestion."))
        label, model = suggestion
        path = model_named(model)
        if path is None:
            return _none(text_id, say("Its model cannot be read now."))
        found = load_model(str(path), stamp(path)).explain(text, label=label)
    except InputError as error:
        sentence = say("The words cannot be found:")
        return _none(text_id, f"{sentence} {for_visitors(error)}")
    return {
        "text_id": text_id,
        "sha256": sha256_of(text),
        "words": [[one.start, one.end, one.weight] for one in found.words],
    }


def _none(text_id: int, reason: str) -> dict[str, Any]:
    return {"text_id": text_id, "words": None, "reason": reason}
