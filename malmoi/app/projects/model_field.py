"""The field by which a model is chosen for a project, when it is made and later."""

from collections.abc import Mapping

import streamlit as st

from malmoi.app.found_models import short_name
from malmoi.app.language import say

# Not None, which to Streamlit is a field in which nothing was chosen.
_NONE = ""


def choose_model(
    names: Mapping[str, str], now: str | None, *, key: str, disabled: bool = False
) -> str | None:
    """Draw the field; the name that is chosen, or None. Nothing where there is nothing to choose.

    Args:
        names: of the models that know labels of the project, with what they are shown as; no
            other can be chosen.
        now: the one that is chosen, which may be gone.
        disabled: for who may not change it.
    """
    known = [_NONE, *names]
    if now is not None and now not in names:
        known.append(now)
    if len(known) == 1:
        return None
    chosen = st.selectbox(
        say("Model that suggests from the start"),
        known,
        index=known.index(now or _NONE),
        format_func=lambda name: _shown(name, names),
        key=key,
        disabled=disabled,
        help=say(
            "It suggests until enough is labelled to learn from; after that whichever has the "
            "higher F1. It must have at least two labels of this project."
        ),
    )
    return chosen if chosen in known and chosen != _NONE else None


def _shown(name: str, names: Mapping[str, str]) -> str:
    if name == _NONE:
        return say("None")
    if name in names:
        return names[name]
    short = short_name(name)
    return say("{short} (not usable now)", short=short)
