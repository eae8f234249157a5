"""Losses that must not rise while a run learns."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WatchedLoss:
    """A loss by which an explosion is seen."""

    key: str
    """Its name in a row of metrics.jsonl."""
    task: str
    """What it is the loss of, such as "guessing a token"."""
    first_steps: int
    """Steps whose middle one is the start that later ones are held against."""


def guessing(key: str) -> WatchedLoss:
    """Cross entropy of guessing a token.

    Guessing is harder in one small batch than in another by more than a nat, so the start is the
    middle one of three; of more, some would be after the explosion.
    """
    return WatchedLoss(key=key, task="guessing a token", first_steps=3)


def telling_apart(key: str) -> WatchedLoss:
    """Cross entropy of telling tokens apart.

    That is as hard in any batch, and a learning rate of 1 undoes it at once.
    """
    return WatchedLoss(key=key, task="telling original from replaced tokens", first_steps=1)
