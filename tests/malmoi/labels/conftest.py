"""The empty working folder of the app's tests."""

from tests.app.conftest import workplace

__all__ = ["workplace"]
