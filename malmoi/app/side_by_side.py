"""Two parts of a page that go below one another where they do not fit side by side."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def side_by_side(key: str) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Places for the two parts; the first gets three fifths of a wide page.

    `st.columns` keeps two columns down to 640 pixels, in which a guideline has two words a line.

    Args:
        key: of the two among widgets, with _first and _second behind it.
    """
    first, second = f"{key}_first", f"{key}_second"
    st.html(f"""
<style>
div:has(> .st-key-{first}) {{ flex: 3 1 26rem; min-width: min(26rem, 100%); }}
div:has(> .st-key-{second}) {{ flex: 2 1 20rem; min-width: 18rem; }}
</style>
""")
    row = st.container(horizontal=True, gap="medium")
    return row.container(width="stretch", key=first), row.container(key=second)
