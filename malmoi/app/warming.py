"""What the server does from its start on, so that the first visitor need not wait for it."""

import importlib
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st

logger = logging.getLogger(__name__)

# A browser that Streamlit opens itself has come by then.
_SECONDS_ALONE = 5

page_drawn = threading.Event()
"""Set once the first visitor has a page."""


@asynccontextmanager
async def warming(app: st.App) -> AsyncIterator[None]:
    """Import the pages, load the model that the app begins with, and tell webhooks, beside the
    server.

    Args:
        app: that is being started.
    """
    threading.Thread(target=_warm, name="warming", daemon=True).start()
    ended = threading.Event()
    threading.Thread(target=_deliver, args=(ended,), name="webhooks", daemon=True).start()
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


def _import(page: str) -> None:
    importlib.import_module(f"malmoi.app.views.{page}")
