"""What the card was handed with a text, sealed: a browser shows it, and cannot make it up."""

import secrets
from datetime import UTC, datetime

import streamlit as st
from itsdangerous import BadSignature, URLSafeTimedSerializer

from malmoi.app.login import needs_login
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Suggestion

LONGEST_LOOK = 3_600.0  # seconds of one text that are believed
_KEY_OF_THIS_SERVER = secrets.token_bytes(32)


class Offers:
    """Seals and opens what is offered to one person in one project.

    With login the key is the server's own secret for cookies, which outlives a start and is the
    same on all servers. Without, everybody may do everything anyway.
    """

    def __init__(self, access: ProjectAccess) -> None:
        self._key = st.secrets["auth"]["cookie_secret"] if needs_login() else _KEY_OF_THIS_SERVER
        self._whose = f"{access.project_id}/{access.person.name}"

    def seal(self, text_id: int, suggestion: Suggestion | None) -> str:
        """What the browser gives back with an act on the text."""
        said = suggestion and (suggestion.label, suggestion.score, suggestion.model)
        return str(self._sealer(text_id).dumps(said))

    def open(
        self, text_id: int, sealed: str, seconds: float | None
    ) -> tuple[Suggestion | None, float | None]:
        """The suggestion that was offered, and the seconds, no more than there have been since.

        Of a seal that is none of this server's nothing is known.
        """
        try:
            said, moment = self._sealer(text_id).loads(sealed, return_timestamp=True)
        except BadSignature:
            return None, None
        suggestion = None
        if said is not None:
            label, score, model = said
            suggestion = Suggestion(label=label, score=score, model=model)
        if seconds is not None:
            # A seal tells its moment in whole seconds.
            since = (datetime.now(UTC) - moment).total_seconds() + 1
            seconds = min(seconds, since, LONGEST_LOOK)
        return suggestion, seconds

    def _sealer(self, text_id: int) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key, salt=f"{self._whose}/{text_id}")
