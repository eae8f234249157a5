"""In which language the app speaks: Korean, or English by the switch in the sidebar."""

from typing import Literal

import streamlit as st

from malmoi.messages import Phrase

Language = Literal["ko", "en"]
LANGUAGE = "language"
NAMES: dict[Language, str] = {"ko": "한국어", "en": "English"}


def language() -> Language:
    """What the visitor chose; Korean until they choose."""
    chosen = st.session_state.get(LANGUAGE)
    if chosen is None:  # the first run after a reload: the switch has not been drawn yet
        chosen = st.query_params.get(LANGUAGE)
    return "en" if chosen == "en" else "ko"


def say(sentence: str, /, **facts: object) -> str:
    """An English sentence in the visitor's language, with its facts; see `malmoi.messages`."""
    return Phrase(sentence, **facts).in_language(language())


def say_choice_again(key: str) -> None:
    """Tell the browser the words of what is chosen, before a choice is drawn whose words change.

    It sends back the words that it was told, in the language or with the count of then, and is told
    others only with another value. Streamlit knows those of the last run, and would take older ones
    for no choice at all.

    Args:
        key: of the widget; one that is in no form, where it would undo what is not sent yet.
    """
    if key in st.session_state:
        st.session_state[key] = st.session_state[key]
