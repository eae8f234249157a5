"""Copies of the whole label database: made by a button or each day, and gone back to."""

from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from malmoi.app import learning
from malmoi.app.cached_results import forget_results
from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.plain_text import escaped
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError
from malmoi.labels.backup import back_up, days_kept, keep_days
from malmoi.labels.going_back import LostRows, go_back, what_would_be_lost
from malmoi.paths import home

_WENT_BACK = "backup_went_back"


def draw_backup(visit: Visit, open_project: OpenProject) -> None:
    """How to keep a copy."""
    st.caption(
        say("This copies the whole database as it is at one moment, whoever works on it meanwhile.")
    )
    url = visit.store.engine.url
    if url.get_backend_name() != "sqlite":
        st.info(
            say("Whoever keeps the database server makes its copies, with pg_dump."),
            icon=":material/dns:",
        )
        return
    if st.button(
        say("Make a copy"),
        icon=":material/backup:",
        key="backup",
        disabled=not open_project.allows("admin"),
    ):
        # No backup is written over another one.
        name = f"labels-{local_time(datetime.now(UTC)):%Y-%m-%d-%H%M%S}.db"
        path = _folder() / name
        try:
            with open_project.access.reading("admin"):
                pass
            size = back_up(path, url.render_as_string(hide_password=False))
        except (InputError, OSError) as error:
            explain(say("No copy was made."), error)
        else:
            copy = f"backups/{name}"
            st.success(say("Copied to {copy} ({size:,.1f} MB).", copy=copy, size=size / 2**20))
            # It has all projects, which an admin of one need not see.
            if visit.person.is_local:
                st.download_button(
                    say("Download"),
                    path.read_bytes,
                    name,
                    "application/vnd.sqlite3",
                    on_click="ignore",
                    icon=":material/download:",
                )
    # They have all projects, too.
    if visit.person.is_local:
        _draw_schedule()
        _draw_going_back(visit)


def _draw_schedule() -> None:
    """For how many days a copy of each day is kept."""
    days = st.number_input(
        say("Keep a copy of each day for so many days (0: none)"),
        *(0, 365, days_kept(_folder())),
        key="backup_days",
    )
    if days != days_kept(_folder()):
        keep_days(_folder(), int(days))


def _draw_going_back(visit: Visit) -> None:
    """A copy to choose, what would be lost, and the button behind a box that must be ticked."""
    if st.session_state.pop(_WENT_BACK, False):
        st.success(say("All is as it was in the copy."), icon=":material/restore:")
    copies = sorted(_folder().glob("*.db"), key=lambda path: path.stat().st_mtime, reverse=True)
    with st.expander(say("Go back to a copy"), icon=":material/restore:"):
        copy = st.selectbox(
            say("Copy"), copies, index=None, format_func=lambda path: path.name, key="backup_copy"
        )
        if copy is None:
            return
        engine = visit.store.engine
        try:
            lost = what_would_be_lost(engine, copy)
            st.markdown("\n".join(f"- {line}" for line in _lines(lost)))
            st.caption(
                say(
                    "A copy of what is there now is made before. Members, invitations, tokens and "
                    "webhooks stay as they are now."
                )
            )
            sure = st.checkbox(
                say("I know that all people lose this."), key=f"backup_sure_{copy.name}"
            )
            if st.button(say("Go back"), type="primary", key="backup_back", disabled=not sure):
                moment = f"{local_time(datetime.now(UTC)):%Y-%m-%d-%H%M%S}"
                go_back(engine, copy, _folder() / f"before-going-back-{moment}.db")
                forget_results()
                st.cache_data.clear()
                learning.forget()
                st.session_state[_WENT_BACK] = True
                st.rerun()
        except (InputError, OSError) as error:
            explain(say("This copy cannot be gone back to."), error)


def _lines(lost: LostRows) -> list[str]:
    lines = [
        say(
            "Lost are {texts:text}, {acts:label}, skips, flags and notes, and {decisions:,} "
            "decisions that are newer than the copy",
            texts=lost.texts,
            acts=lost.acts,
            decisions=lost.decisions,
        )
    ]
    if lost.people:
        names = ", ".join(map(escaped, lost.people))
        lines.append(say("Of these people there is no label in it: {names}", names=names))
    if lost.projects:
        names = ", ".join(map(escaped, lost.projects))
        lines.append(say("Projects that are not in it: {names}", names=names))
    return lines


def _folder() -> Path:
    return home() / "backups"
