"""Who is at the browser: by OpenID Connect where it is set up, else whoever sits at this computer.

Login is on where Streamlit's secrets have a section `[auth]` (docs/how-to/app.md).
"""

import streamlit as st
from streamlit.errors import StreamlitAPIException

from malmoi.app.language import say
from malmoi.errors import InputError
from malmoi.labels.people import Person


def needs_login() -> bool:
    """Whether people have to log in."""
    # Asked for before there is a secrets file, `st.secrets` would show an error of its own.
    return bool(st.secrets.load_if_toml_exists()) and "auth" in st.secrets


def logged_in() -> Person | None:
    """Who has logged in; None until they have, with what they need on the page.

    A person is an e-mail address. One that the provider has not verified is nobody's: whoever may
    choose their own address there could be anyone.
    """
    if not st.user.is_logged_in:
        _ask_to_log_in()
        return None
    address = str(st.user.get("email") or "").strip().lower()
    verified = st.user.get("email_verified")
    if address and verified is not False and str(verified).lower() != "false":
        try:
            person = Person(name=address)
        except InputError:
            address = ""
        else:
            _offer_to_log_out(address)
            return person
    st.error(
        say("The account has no verified e-mail address. Ask your administrator."),
        icon=":material/no_accounts:",
    )
    st.button(say("Another account"), on_click=st.logout)
    return None


def _ask_to_log_in() -> None:
    st.title("말모이", anchor=False)
    st.markdown(say("A team labels texts here. Log in with the account that was invited."))
    if st.button(say("Log in"), type="primary", icon=":material/login:"):
        try:
            st.login()
        except StreamlitAPIException as error:  # a setting is missing, or Authlib
            raise InputError("login is set up, but not completely: {error}", error=error) from error


def _offer_to_log_out(address: str) -> None:
    with st.sidebar:
        st.text(address)
        st.button(say("Log out"), icon=":material/logout:", on_click=st.logout)
