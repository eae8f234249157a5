"""A guideline as people read it: Markdown, without what would fetch something from elsewhere."""

import re

import streamlit as st

from malmoi.app.language import say
from malmoi.app.plain_text import WORD_JOINER

# A picture of another server would tell it who reads the guideline, and when. Not by a backslash,
# which one before it would turn into a plain character, nor by an entity, which is none in code.
_PICTURE = re.compile(r"!(?=\[)")

# Tables often have long cells beside short ones; those would be a character wide. Of tables in
# guidelines only: the class is that of the container below.
_GUIDELINE = "guideline-text"
_TABLES = f"""
<style>
[class*="st-key-{_GUIDELINE}"] :is(td, th) {{ padding: 0.25rem 0.4rem; min-width: 4rem; }}
[class*="st-key-{_GUIDELINE}"] [data-testid="stMarkdownContainer"]:has(td) {{
  overflow-x: auto; font-size: 0.9rem;
}}
</style>
"""


def show_guideline(markdown: str, *, key: str = "") -> None:
    """Draw it. HTML in it is shown as it is written: Streamlit renders none.

    Args:
        markdown: the guideline; pictures in it become links.
        key: another one for each guideline on a page.
    """
    if markdown.strip():
        with st.container(key=f"{_GUIDELINE}-{key}"):
            st.html(_TABLES)
            st.markdown(_PICTURE.sub(f"!{WORD_JOINER}", markdown))
    else:
        st.caption(say("There is no guideline yet."))


def edit_guideline(value: str, *, key: str) -> str:
    """A field for Markdown, with what it looks like beside it: what stands in it now."""
    left, right = st.columns(2)
    text = left.text_area(
        say("Guideline (Markdown)"),
        value,
        key=key,
        height=260,
        placeholder=say("Which texts get which label, and what to do where it is hard to tell."),
    )
    with right.container(height=290, border=True):
        show_guideline(text or "", key=key)
    return text or ""
