"""How the app tells a person that their input cannot be used."""

import logging

import streamlit as st

from malmoi.app.language import say
from malmoi.errors import InputError
from malmoi.paths import home

logger = logging.getLogger(__name__)


def explain(sentence: str, error: InputError) -> None:
    """Say what cannot be done, and below it, folded, the message that also goes to the log.

    Args:
        sentence: in the visitor's language.
        error: whose message is in English.
    """
    logger.warning("%s", error)
    st.error(sentence)
    with st.expander(say("Details")):
        st.code(for_visitors(error), language=None, wrap_lines=True)


def for_visitors(error: Exception | str) -> str:
    """A message without the directories of this machine, which are nobody else's."""
    shown = str(error)
    for place in (home().absolute(), home().resolve()):
        shown = shown.replace(f"{place}/", "")
    return shown
