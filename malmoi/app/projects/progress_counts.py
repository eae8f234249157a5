"""How far projects are: a count goes over all their texts, so it is not made at every click."""

import streamlit as st

from malmoi.app.jobs import import_key, jobs
from malmoi.app.visit import Visit
from malmoi.labels.review import ProjectProgress, progress

_SECONDS = 10


def counted(visit: Visit, project_id: int) -> ProjectProgress:
    """How far a project is, at most ten seconds ago, and not before its last import ended.

    Raises:
        AccessError: the visitor is no member.
    """
    url = visit.store.engine.url.render_as_string(hide_password=False)
    imported = jobs().of(import_key(visit.store.engine, project_id))
    ended = None if imported is None else imported.ended
    return _progress(visit, (url, project_id, visit.person.name, visit.person.is_local), ended)


def count_again() -> None:
    """Count anew at the next time."""
    _progress.clear()


@st.cache_data(ttl=_SECONDS, max_entries=1_000, show_spinner=False)
def _progress(
    _visit: Visit, key: tuple[str, int, str, bool], imported: float | None
) -> ProjectProgress:
    """Asked for the person in the key, once more when an import has ended."""
    return progress(_visit.store.access(_visit.person, key[1]))
