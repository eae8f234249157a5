"""Programs at the open project: tokens that let them in, addresses that are told what happens."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.projects.overview import ROLES
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.access_keys import AccessKey, list_keys, make_key, withdraw
from malmoi.labels.people import person_name
from malmoi.labels.projects import members
from malmoi.labels.roles import ROLES as ROLE_NAMES
from malmoi.labels.roles import Role
from malmoi.labels.webhooks import (
    EVENTS,
    Event,
    Webhook,
    list_webhooks,
    make_webhook,
    send_again,
    withdraw_webhook,
)
from malmoi.messages import Phrase

_EVENTS: dict[Event, str] = {
    "text.labelled": Phrase("labels"),
    "text.decided": Phrase("decisions"),
    "model.learnt": Phrase("rounds of learning"),
}
_TOKEN, _SECRET = "settings_token_made", "settings_webhook_made"


def draw_programs(open_project: OpenProject) -> None:
    """Tokens, then webhooks; nothing for who is no admin."""
    if open_project.allows("admin"):
        _draw_tokens(open_project)
        st.divider()
        _draw_webhooks(open_project)


def _draw_tokens(open_project: OpenProject) -> None:
    st.subheader(say("Tokens"), anchor=False)
    st.caption(
        say(
            "A program that gives a token to `malmoi serve --labels` may do in this project what "
            "the token's person may do here."
        )
    )
    known = members(open_project.access)
    with st.form(f"token-{open_project.project.id}", clear_on_submit=True, border=False):
        who, what, add = st.columns([4, 3, 2.4], vertical_alignment="bottom")
        name = who.text_input(say("Whose token"), max_chars=320, placeholder=say("import robot"))
        role: Role = what.selectbox(
            say("Role"),
            list(ROLE_NAMES),
            format_func=lambda one: say(ROLES[one]),
            help=say("Of somebody new: a member keeps their role."),
        )
        pressed = add.form_submit_button(say("Make a token"), icon=":material/key:")
    name = (name or "").strip()
    if pressed and not name:
        st.error(say("Give a name."))
    elif pressed:
        access = open_project.access
        _do(lambda: make_key(access, name, known.get(person_name(name), role), "token"), _TOKEN)
    _draw_secret(_TOKEN, say("Keep this token: it is shown once."))
    for key in list_keys(open_project.access, "token"):
        told, away = st.columns([7, 2.4], vertical_alignment="center")
        told.text(_token_line(key, known.get(key.person, key.role)))
        if away.button(say("Take back"), key=f"token-{key.id}", icon=":material/key_off:"):
            _do(partial(withdraw, open_project.access, key.id))


def _token_line(key: AccessKey, role: Role) -> str:
    used = key.last_used_at
    when = say("never used")
    if used is not None:
        when = say("last used {when}", when=f"{local_time(used):%Y-%m-%d %H:%M}")
    made = say("made {when}", when=f"{local_time(key.created_at):%Y-%m-%d}")
    return f"{key.person} · {say(ROLES[role])} · {made} · {when}"


def _draw_webhooks(open_project: OpenProject) -> None:
    access = open_project.access
    st.subheader(say("Webhooks"), anchor=False)
    st.caption(
        say(
            "An address is told of what is labelled, decided or learnt here, by signed requests. "
            "What it does not take is sent again, for three days."
        )
    )
    with st.form(f"webhook-{open_project.project.id}", clear_on_submit=True, border=False):
        where, what, add = st.columns([4, 3, 2.4], vertical_alignment="bottom")
        url = where.text_input(say("Address"), placeholder="https://example.com/labels")
        events = what.multiselect(
            say("Told of"),
            list(EVENTS),
            format_func=lambda one: say(_EVENTS[one]),
            placeholder=say("all"),
            select_all=False,
        )
        pressed = add.form_submit_button(say("Add"), icon=":material/webhook:")
    if pressed:
        address, which = (url or "").strip(), events or EVENTS
        _do(lambda: make_webhook(access, address, which).secret, _SECRET)
    _draw_secret(_SECRET, say("Deliveries are signed by this secret. It is shown once."))
    for webhook in list_webhooks(access):
        told, again, away = st.columns([5.4, 2, 2], vertical_alignment="center")
        told.text(_webhook_line(webhook))
        if webhook.waiting + webhook.given_up and again.button(
            say("Send again"), key=f"again-{webhook.id}", icon=":material/replay:"
        ):
            _do(partial(send_again, access, webhook.id))
        if away.button(say("Remove"), key=f"webhook-{webhook.id}", icon=":material/delete:"):
            _do(partial(withdraw_webhook, access, webhook.id))


def _webhook_line(webhook: Webhook) -> str:
    parts = [webhook.url, ", ".join(say(_EVENTS[one]) for one in webhook.events)]
    if webhook.delivered_at is not None:
        when = f"{local_time(webhook.delivered_at):%Y-%m-%d %H:%M}"
        parts.append(say("last taken {when}", when=when))
    if webhook.waiting:
        parts.append(say("{waiting:,} waiting", waiting=webhook.waiting))
    if webhook.given_up:
        parts.append(say("{given_up:,} given up", given_up=webhook.given_up))
    if webhook.error:
        # Of the others the words are the system's; `malmoi labels webhook` shows them.
        is_answer = webhook.error.startswith("HTTP ")
        error = webhook.error if is_answer else say("it cannot be reached")
        parts.append(say("last failure: {error}", error=error))
    return " · ".join(parts)


def _do(change: Callable[[], str | None], shown: str | None = None) -> None:
    """Change something and draw the page anew, with the secret that was made."""
    try:
        made = change()
    except InputError as error:
        explain(say("That cannot be."), error)
        return
    if shown is not None:
        st.session_state[shown] = made
    st.rerun()


def _draw_secret(key: str, told: str) -> None:
    if (secret := st.session_state.pop(key, None)) is not None:
        st.success(told)
        st.code(secret, language=None, wrap_lines=True)
