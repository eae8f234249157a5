"""Put the faults of faults.toml in, one at a time, and tell which no test finds: `make faults`.

With words behind it, only faults in whose names or files one of them stands.
"""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAILED, PASSED = 1, 0  # pytest's exit codes


def what_became_of(fault: dict[str, str]) -> str:
    """`found`, or what is wrong; the file is as it was afterwards, Ctrl-C or not."""
    path = ROOT / fault["file"]
    if not path.is_file():
        return f"no such file: {fault['file']}"
    before = path.read_bytes()
    text = before.decode()
    if text.count(fault["old"]) != 1:
        return f"stands {text.count(fault['old'])} times in {fault['file']}, not once"
    try:
        path.write_text(text.replace(fault["old"], fault["new"]), "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", fault["test"]],
            cwd=ROOT,
            # A compiled file of the fault could be taken for that of the mended one.
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    finally:
        path.write_bytes(before)
    if done.returncode == FAILED:
        return "found"
    return "NOT FOUND" if done.returncode == PASSED else f"no test ran: {done.stdout[-300:]}"


def main(words: list[str]) -> int:
    """0 if all were found."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    faults = tomllib.loads((ROOT / "tests" / "faults.toml").read_text("utf-8"))["fault"]
    chosen = [f for f in faults if not words or any(w in f["name"] + f["file"] for w in words)]
    missed = 0
    for number, fault in enumerate(chosen, 1):
        became = what_became_of(fault)
        missed += became != "found"
        print(f"{number}/{len(chosen)} {became}: {fault['name']} ({fault['file']})", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults found")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
