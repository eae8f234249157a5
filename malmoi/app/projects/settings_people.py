"""Members of the open project and their roles; the audit trail; how to keep a copy."""

from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.projects.audit_sentences import sentence
from malmoi.app.projects.overview import ROLES
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError
from malmoi.labels.backup import back_up
from malmoi.labels.people import AccessError
from malmoi.labels.projects import audit_trail, members, set_member
from malmoi.labels.roles import ROLES as ROLE_NAMES
from malmoi.labels.roles import Role
from malmoi.paths import home

_ENTRIES = 500
_REFUSED = "settings_role_refused"


def draw_people(visit: Visit, open_project: OpenProject) -> None:
    """Members with their roles."""
    if visit.person.is_local:
        st.info(
            say(
                "The app runs without login: whoever opens it on this computer is an admin. With "
                "login, people come in by the e-mail addresses and roles given here."
            ),
            icon=":material/lock_open:",
        )
    try:
        found = members(open_project.access)
    except AccessError as error:
        explain(say("Only reviewers and admins see who else works here."), error)
        return
    if (refused := st.session_state.pop(_REFUSED, None)) is not None:
        _explain_refusal(refused)
    may = open_project.allows("admin")
    for name, role in sorted(found.items(), key=lambda one: (-ROLE_NAMES.index(one[1]), one[0])):
        _draw_member(open_project, name, role, may)
    if may:
        _draw_new_member(open_project)
    with st.expander(say("What roles may do"), icon=":material/badge:"):
        st.markdown(
            say(
                "- **annotator**: labels texts, without seeing the labels of others.\n"
                "- **reviewer**: decides where annotators differ, sees the status, exports.\n"
                "- **admin**: adds texts, changes labels, guideline, settings and members."
            )
        )


def _draw_member(open_project: OpenProject, name: str, role: Role, may: bool) -> None:
    who, what, away = st.columns([4, 3, 2.4], vertical_alignment="center")
    who.text(name)
    key = f"{open_project.project.id}-{name}-{role}"
    what.selectbox(
        say("Role"),
        list(ROLE_NAMES),
        index=ROLE_NAMES.index(role),
        format_func=lambda one: say(ROLES[one]),
        key=f"role-{key}",
        label_visibility="collapsed",
        disabled=not may,
        on_change=_change_role,
        args=(open_project, name, role, f"role-{key}"),
    )
    if away.button(
        say("Remove"),
        key=f"remove-{key}",
        icon=":material/person_remove:",
        disabled=not may,
    ):
        _set(open_project, name, None)


def _draw_new_member(open_project: OpenProject) -> None:
    with st.form(f"member-{open_project.project.id}", clear_on_submit=True, border=False):
        who, what, add = st.columns([4, 3, 2.4], vertical_alignment="bottom")
        name = who.text_input(
            say("Somebody new (the e-mail, with login)"),
            max_chars=320,
            placeholder="jieun@example.com",
        )
        role: Role = what.selectbox(
            say("Role"), list(ROLE_NAMES), format_func=lambda one: say(ROLES[one])
        )
        if add.form_submit_button(say("Add"), icon=":material/person_add:"):
            if (name or "").strip():
                _set(open_project, name or "", role)
            else:
                st.error(say("Give a name or an e-mail."))


def _change_role(open_project: OpenProject, name: str, role: Role, key: str) -> None:
    """Give a member the role that was chosen; where that is refused, show the one that holds."""
    try:
        set_member(open_project.access, name, st.session_state[key])
    except InputError as error:
        st.session_state[_REFUSED] = error
        # Else it would be asked for again at each run, and be done once another admin is there.
        st.session_state[key] = role


def _set(open_project: OpenProject, name: str, role: Role | None) -> None:
    try:
        set_member(open_project.access, name, role)
    except InputError as error:
        _explain_refusal(error)
    else:
        st.rerun()


def _explain_refusal(error: InputError) -> None:
    if isinstance(error, AccessError):
        explain(say("Only admins change members."), error)
    else:
        explain(say("That cannot be: one admin must stay."), error)


def draw_audit(open_project: OpenProject) -> None:
    """Who changed what, newest first."""
    try:
        entries = audit_trail(open_project.access, limit=_ENTRIES)
    except AccessError as error:
        explain(say("Only admins see the trail."), error)
        return
    frame = pd.DataFrame(
        [
            (f"{local_time(entry.created_at):%Y-%m-%d %H:%M}", entry.person, sentence(entry))
            for entry in entries
        ],
        columns=[say("When"), say("Who"), say("What")],
    )
    st.dataframe(
        frame,
        hide_index=True,
        height=min(560, 35 * (len(frame) + 1) + 3),
        column_config={
            frame.columns[0]: st.column_config.TextColumn(width="small"),
            frame.columns[2]: st.column_config.TextColumn(width="large"),
        },
    )
    if len(entries) == _ENTRIES:
        st.caption(say("The latest {entries}.", entries=_ENTRIES))


def draw_backup(visit: Visit, open_project: OpenProject) -> None:
    """How to keep a copy."""
    st.caption(
        say("This copies the whole database as it is at one moment, whoever works on it meanwhile.")
    )
    url = visit.store.engine.url
    if url.get_backend_name() != "sqlite":
        st.info(say("Whoever keeps the database server makes its copies."), icon=":material/dns:")
    elif st.button(
        say("Make a copy"),
        icon=":material/backup:",
        key="backup",
        disabled=not open_project.allows("admin"),
    ):
        # No backup is written over another one.
        name = f"labels-{local_time(datetime.now(UTC)):%Y-%m-%d-%H%M%S}.db"
        try:
            with open_project.access.reading("admin"):
                pass
            size = back_up(home() / "backups" / name, url.render_as_string(hide_password=False))
        except (InputError, OSError) as error:
            explain(say("No copy was made."), error)
        else:
            copy = f"backups/{name}"
            st.success(say("Copied to {copy} ({size:,.1f} MB).", copy=copy, size=size / 2**20))
    st.caption(say("How to go back to a copy: the guide to the app, “Backups”."))
