"""How the app tells a person that their input cannot be used."""

import logging

import streamlit as st

from malmoi.errors import InputError

logger = logging.getLogger(__name__)


def explain(sentence: str, error: InputError) -> None:
    """A Korean sentence, and below it, folded, the English message that also goes to the log."""
    logger.warning("%s", error)
    st.error(sentence)
    with st.expander("자세한 내용"):
        st.code(str(error), language=None, wrap_lines=True)
