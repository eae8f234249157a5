"""Who is at the browser: by OpenID Connect where it is set up, else whoever sits at this computer.

Login is on where Streamlit's secrets have a section `[auth]`; who may come in stands in `[malmoi]`
(docs/how-to/app.md).
"""

from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from malmoi.app.language import say
from malmoi.errors import InputError
from malmoi.labels.people import Person

# Keys of `[malmoi]`.
_ALLOWED, _TRUSTED = "allowed", "trusted_issuers"


def needs_login() -> bool:
    """Whether people have to log in."""
    # Asked for before there is a secrets file, `st.secrets` would show an error of its own.
    return bool(st.secrets.load_if_toml_exists()) and "auth" in st.secrets


def logged_in() -> Person | None:
    """Who has logged in; None until they have, with what they need on the page.

    A person is an e-mail address; see `verified_address`.

    Raises:
        InputError: the settings in `[malmoi]` cannot be understood; then nobody comes in.
    """
    if not st.user.is_logged_in:
        _ask_to_log_in()
        return None
    settings = _settings()
    address = verified_address(st.user.to_dict(), settings.get(_TRUSTED, ()))
    if not address:
        refused = say("The account has no verified e-mail address. Ask your administrator.")
    elif not may_come_in(address, settings.get(_ALLOWED)):
        refused = say("The account may not come in here. Ask your administrator.")
    else:
        with st.sidebar:
            st.text(address)
            st.button(say("Log out"), icon=":material/logout:", on_click=st.logout)
        return Person(name=address)
    st.error(refused, icon=":material/no_accounts:")
    st.button(say("Another account"), on_click=st.logout)
    return None


def verified_address(claims: Mapping[str, Any], trusted_issuers: Collection[str]) -> str:
    """The e-mail address that the provider answers for; "" for none.

    One that it does not call verified is nobody's, for whoever may choose their own address there
    could be anyone. A provider that calls none so has to be named.

    Args:
        claims: of the account.
        trusted_issuers: those whose addresses are right although they are not called verified.
    """
    verified = claims.get("email_verified")
    if verified is None:
        verified = claims.get("iss") in trusted_issuers
    if verified is not True and str(verified).lower() != "true":
        return ""
    try:
        return Person(name=str(claims.get("email") or "").strip().lower()).name
    except InputError:
        return ""


def may_come_in(address: str, allowed: Collection[str] | None) -> bool:
    """Whether an address, or its domain, is among these; None: every address is."""
    if allowed is None:
        return True
    listed = {one.strip().lower().removeprefix("@") for one in allowed}
    return address in listed or address.rpartition("@")[2] in listed


def _settings() -> dict[str, list[str]]:
    found = st.secrets.get("malmoi", {})
    if unknown := set(found) - {_ALLOWED, _TRUSTED}:
        raise InputError(
            "expected {known} in [malmoi] of secrets.toml, found {unknown}",
            known=f"{_ALLOWED}, {_TRUSTED}",
            unknown=", ".join(sorted(unknown)),
        )
    for name, listed in found.items():
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise InputError(
                "expected {name} in [malmoi] of secrets.toml as a list of texts, found {listed}",
                name=name,
                listed=listed,
            )
    return dict(found)


def _ask_to_log_in() -> None:
    st.title("말모이", anchor=False)
    st.markdown(say("A team labels texts here. Log in with the account that was invited."))
    if st.button(say("Log in"), type="primary", icon=":material/login:"):
        try:
            st.login()
        except StreamlitAPIException as error:  # a setting is missing, or Authlib
            raise InputError("login is set up, but not completely: {error}", error=error) from error
