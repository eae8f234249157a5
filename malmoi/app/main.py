"""The labelling app: `streamlit run app/main.py`, or with its full path from any other folder.

Streamlit takes the settings in `.streamlit/` beside this file whichever folder it is started from.
"""

import importlib
import logging
import os
import signal
import time

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.warming import page_drawn, warming
from malmoi.command_line import spare_the_collector
from malmoi.errors import InputError

logger = logging.getLogger(__name__)

# Long enough for the page to get the sentence that says why the server ends.
_SECONDS_TO_READ = 2


def main(script: str = __file__) -> None:
    """Draw the app once; Streamlit calls this again at every interaction.

    Args:
        script: what Streamlit was told to run.
    """
    st.set_page_config(page_title="말모이", page_icon="🧺", layout="wide")
    if _open_to_all():
        _refuse(script)
        return
    try:
        # What follows takes long to import the first time: the page stands before that.
        with st.spinner(say("Opening…")):
            navigation = importlib.import_module("malmoi.app.navigation")
        navigation.draw()
    except InputError as error:
        explain(say("The input cannot be used."), error)
    except Exception:
        # Streamlit's own page for this is in English. Its control flow is not an Exception.
        logger.exception("unexpected error")
        st.error(
            say("Something unexpected happened. Load the page again; if it goes on, send the log.")
        )
    finally:
        page_drawn.set()


def _leave(request: Request) -> Response:
    """A browser has closed its labelling card."""
    presence = importlib.import_module("malmoi.app.labelling.presence")
    presence.close_card(request.query_params.get("card", ""))
    return Response(status_code=204)


def _join(request: Request) -> Response:
    """A browser opens the link of an invitation."""
    answer: Response = importlib.import_module("malmoi.app.invitations").join(request)
    return answer


# Beside the pages. Streamlit looks for `st.App` in the script that it is given.
ROUTES = (Route("/leave", _leave, methods=["POST"]), Route("/join", _join))


def _open_to_all() -> bool:
    """Whether a browser is connected to a server that nobody told which address to listen on.

    Streamlit listens on every interface then. It happens where its settings were not found, as in
    a copy without hidden folders; an address that somebody gave is theirs to give.
    """
    return bool(st.context.headers) and not st.get_option("server.address")


def _refuse(script: str) -> None:
    """Say why, on the page and in the log, and end the server: the app has no login."""
    logger.error(
        "expected an address to listen on, found none, so that the whole network could come in; "
        "start the app as streamlit run %s, or name one with --server.address",
        os.path.realpath(script),
    )
    st.error(
        "이 서버는 로그인 없이 모든 네트워크에 열려 있어 끝냅니다. 로그에 있는 명령으로 다시 "
        "시작하거나, 여러 사람이 쓰려면 `--server.address`로 주소를 정해 주세요."
    )
    time.sleep(_SECONDS_TO_READ)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
elif __name__ == "main":  # as `streamlit run` imports it, once, to start the server
    spare_the_collector()
    app = st.App(__file__, lifespan=warming, routes=ROUTES)
