"""What the server does from its start on, so that the first visitor need not wait for it."""

import importlib
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st

logger = logging.getLogger(__name__)


@asynccontextmanager
async def warming(app: st.App) -> AsyncIterator[None]:
    """Import the pages and load the model that the app begins with, beside the server.

    Args:
        app: that is being started.
    """
    threading.Thread(target=_warm, name="warming", daemon=True).start()
    yield


def _warm() -> None:
    try:
        for page in importlib.import_module("app.navigation").PAGES:
            importlib.import_module(f"app.views.{page.module}")
        importlib.import_module("app.model_choice").load_first()
    except Exception:  # the page that needs it says what is wrong
        logger.debug("nothing loaded ahead", exc_info=True)
