"""How the app tells a person that their input cannot be used."""

import logging

import streamlit as st

from app.language import say
from malmoi.errors import InputError

logger = logging.getLogger(__name__)


def explain(sentence: str, error: InputError) -> None:
    """Say what cannot be done, and below it, folded, the message that also goes to the log.

    Args:
        sentence: in the visitor's language.
        error: whose message is in English.
    """
    logger.warning("%s", error)
    st.error(sentence)
    with st.expander(say("자세한 내용", "Details")):
        st.code(str(error), language=None, wrap_lines=True)
