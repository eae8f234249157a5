"""How the app tells a person that their input cannot be used."""

import logging

import streamlit as st

from malmoi.app.language import language, say
from malmoi.errors import InputError
from malmoi.messages import Phrase
from malmoi.paths import home

logger = logging.getLogger(__name__)


def explain(sentence: str, error: Exception) -> None:
    """Say what cannot be done, and below it, folded, why; the log has that in English.

    Args:
        error: an InputError, or what the system says of a file or process.
    """
    logger.warning("%s", error)
    st.error(sentence)
    with st.expander(say("Details")):
        st.code(for_visitors(error), language=None, wrap_lines=True)


def for_visitors(said: Exception | str) -> str:
    """What an error or a phrase says in the visitor's language.

    It is without the directories of this machine, which are nobody else's.
    """
    shown = str(said)
    if isinstance(said, InputError | Phrase):
        shown = said.in_language(language())
    for place in (home().absolute(), home().resolve()):
        shown = shown.replace(f"{place}/", "")
    return shown
