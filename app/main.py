"""The labelling app: `streamlit run app/main.py`. The code is in malmoi/app."""

import streamlit as st

from malmoi.app.main import ROUTES, main, warming
from malmoi.command_line import spare_the_collector

if __name__ == "__main__":
    main(__file__)
elif __name__ == "main":  # as `streamlit run` imports it, once, to start the server
    spare_the_collector()
    app = st.App(__file__, lifespan=warming, routes=ROUTES)
