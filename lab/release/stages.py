"""What the stages of a release in a working folder were made with, so that no two are mixed."""

import json
from pathlib import Path
from typing import Any

from lab.release.check import read_json
from malmoi.errors import InputError
from malmoi.files import write_at_once

SETTINGS = "settings.json"
# The first stage that each decides.
DECIDED = {
    "reviews_sha256": "corpus",
    "sources": "corpus",
    "tokens": "encoder",
    "preset": "encoder",
    "encoder_flags": "encoder",
    "init_sha256": "encoder",
    "reviews_per_label": "reviews.csv",
    "written_sha256": "reviews.csv",
    "rated_sha256": "reviews.csv",
    "ratings_per_label": "ratings",
    "ratings_settings": "ratings",
    "ratings_beside_sha256": "ratings",
    "ratings_encoder_sha256": "ratings",
    "reviews_flags": "reviews",
    "reviews_encoder_sha256": "reviews",
    "reviews_begin_sha256": "reviews",
    "memos_flags": "memos",
    "memos_encoder_sha256": "memos",
    "memos_sha256": "memos",
}
# Settings without a flag.
OF_RECIPE = {"sources", "ratings_settings", *(name for name in DECIDED if name.endswith("_flags"))}


def keep(work: Path, ours: dict[str, Any]) -> None:
    """Write into the working folder what its next stages are made with.

    Args:
        work: the folder that the stages lie in.
        ours: values by their names in DECIDED.

    Raises:
        InputError: a stage that is there was made with another value.
    """
    path = work / SETTINGS
    before = read_json(path) if path.is_file() else {}
    for name, value in ours.items():
        stage = work / DECIDED[name]
        if stage.exists() and before.get(name) != value:
            what = "this recipe has another;" if name in OF_RECIPE else "give the same, or"
            raise InputError(
                f"expected {stage} made with {name} {value}, found it made with "
                f"{before.get(name, 'an unknown one')}; {what} name another folder by --work"
            )
    if before | ours != before:
        write_at_once(path, json.dumps(before | ours, ensure_ascii=False, indent=2) + "\n")
