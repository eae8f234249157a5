"""Members of the open project and their roles; the audit trail; how to keep a copy."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.invitations import become_owner, draw_own_link, link
from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.plain_text import escaped
from malmoi.app.projects.audit_sentences import sentence
from malmoi.app.projects.joining import draw_joining
from malmoi.app.projects.overview import ROLES
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError
from malmoi.labels.access_keys import (
    AccessKey,
    asks_for_invitation,
    list_keys,
    make_key,
    people_at_work,
    withdraw,
)
from malmoi.labels.assigning import given_texts
from malmoi.labels.people import AccessError, person_name
from malmoi.labels.projects import audit_trail, members, set_member
from malmoi.labels.roles import ROLES as ROLE_NAMES
from malmoi.labels.roles import Role

_ENTRIES = 500
_REFUSED, _MADE = "settings_role_refused", "settings_invitation_made"


def draw_people(visit: Visit, open_project: OpenProject) -> None:
    """Members with their roles, and whoever else has labelled."""
    # Whoever logged in is neither.
    by_link = visit.person.is_local or visit.person.only_project is not None
    asks = asks_for_invitation(visit.store.engine)
    if by_link and not asks:
        st.info(
            say(
                "Whoever opens the app on this computer is an admin. Once you invite somebody, "
                "everybody but you needs an invitation to come in."
            ),
            icon=":material/lock_open:",
        )
    draw_own_link()
    may, access = open_project.allows("admin"), open_project.access
    try:
        found: dict[str, Role | None] = {**members(access)}
        others = [name for name in people_at_work(access) if name not in found]
        keys = list_keys(access, "invitation") if may and by_link else []
        given = {one.person: one.left for one in given_texts(access)}
    except AccessError as error:
        explain(say("Only reviewers and admins see who else works here."), error)
        return
    if (refused := st.session_state.pop(_REFUSED, None)) is not None:
        _explain_refusal(refused)
    invited = {key.person for key in keys}
    for name, role in sorted(found.items(), key=lambda one: (-_rank(one[1]), one[0])):
        may_invite = may and by_link and name not in invited
        _draw_person(open_project, name, role, may, may_invite, given.get(name, 0))
    if others:
        st.caption(say("Have labelled, and are no members:"))
    for name in others:
        _draw_person(open_project, name, None, may, may and by_link, given.get(name, 0))
    if may:
        _draw_new_member(open_project, by_link)
        _draw_invitations(open_project, keys)
        if visit.person.is_local and asks:
            _draw_owner_link(open_project)
        draw_joining(open_project, sorted({*found, *others}))
    with st.expander(say("What roles may do"), icon=":material/badge:"):
        st.markdown(
            say(
                "- **annotator**: labels texts, without seeing the labels of others.\n"
                "- **reviewer**: decides where annotators differ, sees the status, exports.\n"
                "- **admin**: adds texts, changes labels, guideline, settings and members."
            )
        )


def _rank(role: Role | None) -> int:
    return -1 if role is None else ROLE_NAMES.index(role)


def _draw_person(
    open_project: OpenProject,
    name: str,
    role: Role | None,
    may: bool,
    may_invite: bool,
    left: int,
) -> None:
    """A row: the role of a member, or the one that somebody would get who only has labelled."""
    who, what, link_column, away = st.columns([3, 2.6, 2, 2], vertical_alignment="center")
    who.text(name + (say(" · {left:text} given", left=left) if left else ""))
    key = f"{open_project.project.id}-{name}-{role}"
    chosen: Role = what.selectbox(
        say("Role"),
        list(ROLE_NAMES),
        index=max(0, _rank(role)),
        format_func=lambda one: say(ROLES[one]),
        key=f"role-{key}",
        label_visibility="collapsed",
        disabled=not may,
        on_change=None if role is None else _change_role,
        args=None if role is None else (open_project, name, role, f"role-{key}"),
    )
    if may_invite and link_column.button(
        say("Invite"), key=f"invite-{key}", icon=":material/mail:"
    ):
        _invite(open_project, name, chosen)
    if role is None:
        if (
            may
            and not may_invite
            and away.button(say("Add"), key=f"add-{key}", icon=":material/person_add:")
        ):
            _set(open_project, name, chosen)
    elif away.button(
        say("Remove"), key=f"remove-{key}", icon=":material/person_remove:", disabled=not may
    ):
        _set(open_project, name, None)


def _draw_new_member(open_project: OpenProject, by_link: bool) -> None:
    """Somebody new, or another link for somebody who is there."""
    with st.form(f"member-{open_project.project.id}", clear_on_submit=True, border=False):
        who, what, add = st.columns([4, 3, 2.4], vertical_alignment="bottom")
        name = who.text_input(
            say("Name of whom you invite") if by_link else say("Somebody new (the e-mail)"),
            max_chars=320,
            placeholder="" if by_link else "jieun@example.com",
        )
        role: Role = what.selectbox(
            say("Role"),
            list(ROLE_NAMES),
            format_func=lambda one: say(ROLES[one]),
            help=say("Of somebody new: a member keeps their role.") if by_link else None,
        )
        label = say("Invite") if by_link else say("Add")
        if add.form_submit_button(label, icon=":material/person_add:"):
            if not (name or "").strip():
                st.error(say("Give a name or an e-mail."))
            elif by_link:
                _invite(open_project, name or "", role)
            else:
                _set(open_project, name or "", role)
    if (made := st.session_state.pop(_MADE, None)) is not None:
        person, address = made
        st.success(say("Send this link to {person} alone. It is shown once.", person=person))
        st.code(address, language=None, wrap_lines=True)


def _invite(open_project: OpenProject, name: str, role: Role) -> None:
    access = open_project.access
    try:
        is_first = not asks_for_invitation(access.engine)
        kept = members(access).get(person_name(name), role)
        secret = make_key(access, name, kept, "invitation")
        if is_first:
            become_owner(access)
    except InputError as error:
        _explain_refusal(error)
    else:
        st.session_state[_MADE] = (escaped(name.strip()), link(secret))
        st.rerun()


def _draw_owner_link(open_project: OpenProject) -> None:
    """The link of whoever runs the server, which opens everything, made anew."""
    with st.expander(say("My own link"), icon=":material/key:"):
        st.caption(
            say(
                "A new link takes the place of the one that you have: that one lets nobody in any "
                "more, in no browser but this."
            )
        )
        if st.button(say("Make my link anew"), key="owner-link", icon=":material/autorenew:"):
            become_owner(open_project.access, instead=True)
            st.rerun()


def _draw_invitations(open_project: OpenProject, keys: Sequence[AccessKey]) -> None:
    """Links that are good; each can be taken back."""
    for key in keys:
        who, away = st.columns([7, 2.4], vertical_alignment="center")
        used = key.last_used_at
        when = say("not opened yet") if used is None else f"{local_time(used):%Y-%m-%d %H:%M}"
        who.text(say("Invitation of {person}", person=key.person) + f" · {when}")
        if away.button(say("Take back"), key=f"withdraw-{key.id}", icon=":material/link_off:"):
            try:
                withdraw(open_project.access, key.id)
            except InputError as error:
                _explain_refusal(error)
            else:
                st.rerun()


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
