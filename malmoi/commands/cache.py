"""`malmoi cache`: what earlier runs keep of cleaned texts, and away with it."""

from dataclasses import dataclass
from datetime import datetime

from malmoi.cache import CACHE, bound, entries

ABOUT = (
    f"Show what {CACHE} keeps for the next run: cleaned copies of the texts of every corpus, their "
    "tokens, tokenizers, and classifiers in ONNX. All of it is made again when it is missing."
)


@dataclass(kw_only=True)
class CacheSettings:
    """What to do with it."""

    clear: bool = False
    """Remove all of it."""


def main(settings: CacheSettings) -> None:
    if settings.clear:
        print(f"removed {_mebibytes(bound(max_bytes=0))} from {CACHE}")
        return
    found = entries()
    for entry in found:
        used = datetime.fromtimestamp(entry.used_at).strftime("%Y-%m-%d %H:%M")
        print(f"{_mebibytes(entry.num_bytes):>12}  last used {used}  {entry.path}")
    total = _mebibytes(sum(entry.num_bytes for entry in found))
    print(f"{total} in {len(found)} folders; --clear removes them")


def _mebibytes(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.1f} MiB"
