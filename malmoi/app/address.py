"""Widgets whose values stand in the address, so that a reload, a bookmark and a link show the same.

Streamlit's own `bind="query-params"` is not used: it leaves out the first of a list, so that a link
opens another project for whoever has a newer one; it writes choices as they are shown, in the
language in use; and while one stands in the address, no page can be switched by the app.
"""

from collections.abc import Container

import streamlit as st


def take_from_address(key: str, allowed: Container[str] | None = None) -> str | None:
    """Give a widget, before it is drawn, the value that the address has for it.

    Only at its first drawing: afterwards the widget is right, for an address may be on its way.

    Args:
        allowed: the values that there are; None allows any.

    Returns:
        What the address asks for although it is not allowed; None otherwise.
    """
    asked = st.query_params.get(key)
    has_value = key in st.session_state and (
        allowed is None or st.session_state[key] in allowed  # else it is another page's
    )
    if asked is None or has_value:
        return None
    if allowed is not None and asked not in allowed:
        return asked
    st.session_state[key] = asked
    return None


def write_to_address(key: str, value: str) -> None:
    """Write a widget's value into the address; an empty one is left out."""
    if value and st.query_params.get(key) != value:
        st.query_params[key] = value
    elif not value and key in st.query_params:
        del st.query_params[key]
