"""Parts of a page, of which one is drawn; which one stands in the address by its short name."""

from collections.abc import Mapping, Sequence

import streamlit as st

from malmoi.app.address import take_from_address, write_to_address
from malmoi.app.language import say

# Of a part: its name, and its icon where it has one.
Section = tuple[str, str]


def choose_section(
    key: str,
    sections: Mapping[str, Section],
    offered: Sequence[str] | None = None,
    *,
    first: str | None = None,
) -> str:
    """Draw the control; the short name of the part that is chosen.

    Args:
        sections: all parts.
        offered: those that can be chosen now; None: all.
        first: the one where nothing was chosen yet; None: that of all which comes first.
    """
    offered = list(sections) if offered is None else offered
    first = first or offered[0]
    take_from_address(key, offered)
    held = st.session_state.get(key)
    # Set at every run: what another page's control of this key holds does not go over to this one.
    st.session_state[key] = held if held in offered else first
    titles = {
        name: f":material/{icon}: {say(title)}" if icon else say(title)
        for name, (title, icon) in sections.items()
    }
    chosen = st.segmented_control(
        say("View"),
        list(offered),
        required=True,
        format_func=titles.__getitem__,
        key=key,
        label_visibility="collapsed",
    )
    assert chosen is not None  # the control has a value from the start, and cannot lose it
    write_to_address(key, "" if chosen == first else chosen)
    return chosen
