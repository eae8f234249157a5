"""Who is at the browser where people come by invitation: a link that the browser keeps as a cookie.

Without any invitation nobody is asked for one. Whoever makes the first has every right, in that
browser and wherever they open their own link.
"""

import json

import streamlit as st
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from malmoi.app.language import say
from malmoi.app.visit import project_store
from malmoi.labels.access import ProjectAccess
from malmoi.labels.access_keys import asks_for_invitation, make_owner_key, person_of
from malmoi.labels.people import Person

INVITE = "invite"
_COOKIE = "malmoi-invitation"
_OWNER = "invitation_of_owner"
_SECONDS = 400 * 24 * 60 * 60  # as long as a browser keeps a cookie


def join(request: Request) -> Response:
    """Open a link: the browser is its person from then on."""
    secret = request.query_params.get(INVITE, "")
    answer = RedirectResponse("./", status_code=303)
    if person_of(project_store(), secret, "invitation") is not None:
        answer.set_cookie(
            _COOKIE,
            secret,
            max_age=_SECONDS,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
    return answer


def invited() -> Person | None:
    """Who was invited; local without any invitation; None, with a sentence, for anybody else.

    Raises:
        InputError: the database cannot be used.
    """
    store = project_store()
    secret = st.session_state.get(_OWNER) or _kept_by_browser()
    person = person_of(store, secret, "invitation") if secret else None
    if person is not None:
        return person
    if not asks_for_invitation(store.engine):
        return Person(name="local", is_local=True)
    st.title("말모이", anchor=False)
    if secret:
        st.error(
            say("Your invitation was taken back. Ask whoever sent it."), icon=":material/lock:"
        )
    else:
        st.info(say("Open the link of your invitation to come in."), icon=":material/mail:")
    return None


def _kept_by_browser() -> str:
    return str(st.context.cookies.get(_COOKIE, ""))


def become_owner(access: ProjectAccess, *, instead: bool = False) -> None:
    """Keep whoever makes the first invitation from being asked for one.

    Args:
        access: of whoever runs the server.
        instead: their former links let nobody in any more.
    """
    st.session_state[_OWNER] = make_owner_key(access, instead=instead)


def draw_own_link() -> None:
    """Give the browser the cookie of whoever made the first invitation, and show their link."""
    if secret := st.session_state.get(_OWNER):
        address = json.dumps(link(secret))
        st.html(f"<script>fetch({address})</script>", unsafe_allow_javascript=True)
        st.warning(
            say(
                "From now on nobody comes in without an invitation. Keep your own link: it lets "
                "you in from another browser."
            )
        )
        st.code(link(secret), language=None, wrap_lines=True)


def link(secret: str) -> str:
    """The address that lets a person in."""
    base = (st.context.url or "").split("?")[0].rpartition("/")[0]
    return f"{base}/join?{INVITE}={secret}"
