"""How far projects are: a count goes over all their texts, so it is not made at every click."""

import streamlit as st

from app.visit import Visit
from malmoi.labels.review import ProjectProgress, progress

_SECONDS = 10


def counted(visit: Visit, project_id: int) -> ProjectProgress:
    """How far a project is, at most ten seconds ago.

    Raises:
        AccessError: the visitor is no member.
    """
    url = visit.store.engine.url.render_as_string(hide_password=False)
    return _progress(visit, (url, project_id, visit.person.name, visit.person.is_local))


def count_again() -> None:
    """Count anew at the next time, as after an import."""
    _progress.clear()


@st.cache_data(ttl=_SECONDS, max_entries=1_000, show_spinner=False)
def _progress(_visit: Visit, key: tuple[str, int, str, bool]) -> ProjectProgress:
    """Asked for the person in the key."""
    return progress(_visit.store.access(_visit.person, key[1]))
