"""Moments by the clock of the visitor's browser."""

from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st


def visitor_zone() -> tzinfo:
    """Where the browser is, as it told; Korea where it did not."""
    try:
        return ZoneInfo(st.context.timezone or "Asia/Seoul")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("Asia/Seoul")


def local_time(moment: datetime) -> datetime:
    """A moment by the visitor's clock."""
    return moment.astimezone(visitor_zone())
