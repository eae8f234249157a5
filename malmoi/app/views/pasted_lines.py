"""Lines that were pasted on the page "한 건 분류": each a text of its own."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.model_choice import ChosenModel
from malmoi.app.result_table import show_result
from malmoi.app.table_classification import BatchResult, classify_table
from malmoi.app.visit import Visit
from malmoi.errors import InputError

_STATE = "several_result"


@dataclass(frozen=True, kw_only=True)
class _Several:
    """What stands on the page."""

    key: str
    result: BatchResult


def show_several(visit: Visit, chosen: ChosenModel, lines: Sequence[str], *, asked: bool) -> None:
    """Draw the result of these lines once it was asked for.

    Args:
        asked: whether the button was pressed just now.
    """
    column = say("Text")
    said = "\n".join([chosen.key, column, *lines]).encode("utf-8", "replace")
    key = hashlib.sha256(said).hexdigest()[:16]
    if asked:
        table = pd.DataFrame({column: list(lines)}, dtype="str")
        try:
            result = classify_table(table, column, chosen.classifier)
        except InputError as error:
            explain(say("These texts cannot be classified."), error)
            return
        st.session_state[_STATE] = _Several(key=key, result=result)
    kept: _Several | None = st.session_state.get(_STATE)
    if kept is None or kept.key != key:
        return
    show_result(
        visit,
        kept.result,
        labels=chosen.classifier.labels,
        model=chosen.name,
        column=column,
        source=say("one text"),
        key=key,
    )
