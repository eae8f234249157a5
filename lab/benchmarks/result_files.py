"""How the results of a benchmark are written."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from malmoi.files import write_at_once


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write results as JSON, whole or not at all; the last line ends as that of any text file."""
    write_at_once(path, json.dumps(result, ensure_ascii=False, indent=1) + "\n")
