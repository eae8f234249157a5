"""What the server does from its start on, so that the first visitor need not wait for it."""

import importlib
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import streamlit as st

from malmoi.errors import InputError
from malmoi.paths import home

logger = logging.getLogger(__name__)

# A browser that Streamlit opens itself has come by then.
_SECONDS_ALONE = 5
# How often it is looked whether a day has begun.
_SECONDS_BETWEEN_COPIES = 600

page_drawn = threading.Event()
"""Set once the first visitor has a page."""


@asynccontextmanager
async def warming(app: st.App) -> AsyncIterator[None]:
    """Import the pages, load the model that the app begins with, tell webhooks and make daily
    copies, beside the server.

    Args:
        app: that is being started.
    """
    threading.Thread(target=_warm, name="warming", daemon=True).start()
    ended = threading.Event()
    threading.Thread(target=_deliver, args=(ended,), name="webhooks", daemon=True).start()
    threading.Thread(target=_copy_daily, args=(ended,), name="backup", daemon=True).start()
    yield
    ended.set()


def _warm() -> None:
    try:
        first, *others = importlib.import_module("malmoi.app.navigation").PAGES
        _import(first.module)
        # A visitor who came at once would wait for all that follows, which holds Python's lock.
        page_drawn.wait(_SECONDS_ALONE)
        for page in others:
            _import(page.module)
        importlib.import_module("malmoi.app.model_choice").load_first()
    except Exception:  # the page that needs it says what is wrong
        logger.debug("nothing loaded ahead", exc_info=True)


def _deliver(ended: threading.Event) -> None:
    page_drawn.wait(_SECONDS_ALONE)
    visit = importlib.import_module("malmoi.app.visit")
    delivery = importlib.import_module("malmoi.labels.webhook_delivery")
    delivery.deliver_until(ended, visit.known_engine)


def _copy_daily(ended: threading.Event) -> None:
    """Make the copy of each day, where somebody has asked for that in the settings."""
    page_drawn.wait(_SECONDS_ALONE)
    visit = importlib.import_module("malmoi.app.visit")
    backup = importlib.import_module("malmoi.labels.backup")
    folder = home() / "backups"
    while not ended.is_set():
        try:
            days = backup.days_kept(folder)
            engine = visit.known_engine() if days else None
            if engine is not None and engine.dialect.name == "sqlite":
                backup.back_up_daily(folder, engine.url, days, datetime.now(UTC).date())
        except (InputError, OSError) as error:
            logger.warning("no copy of the label database was made: %s", error)
        ended.wait(_SECONDS_BETWEEN_COPIES)


def _import(page: str) -> None:
    importlib.import_module(f"malmoi.app.views.{page}")
