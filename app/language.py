"""In which language the app speaks: Korean, or English by the switch in the sidebar."""

from typing import Literal

import streamlit as st

Language = Literal["ko", "en"]
LANGUAGE = "language"
NAMES: dict[Language, str] = {"ko": "한국어", "en": "English"}


def language() -> Language:
    """What the visitor chose; Korean until they choose."""
    return "en" if st.session_state.get(LANGUAGE) == "en" else "ko"


def say(korean: str, english: str) -> str:
    """One of two sentences that say the same."""
    return english if language() == "en" else korean
