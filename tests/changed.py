"""Run the tests of what changed since main, as far as a time goes: `make check`.

A test file that changed is run itself. Of a module those files are run that name it, in the folder
of tests that mirrors its own; all files of that folder where none names it. What is behind the
command goes to pytest.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 25
TESTS = "test_*.py"


def git(*words: str) -> list[str]:
    """The lines it prints; none where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def changed() -> list[Path]:
    """Relative paths that differ from where this branch left main, committed or not; new ones."""
    (base,) = git("merge-base", "main", "HEAD") or ["HEAD"]
    names = git("diff", "--name-only", base) + git("ls-files", "--others", "--exclude-standard")
    return [Path(name) for name in names if (ROOT / name).is_file()]


def tests_of(path: Path, root: Path = ROOT) -> Iterable[Path]:
    """The test files of a changed one."""
    if path.suffix == ".md":
        return [root / "tests" / name for name in ("test_docs.py", "test_readme.py")]
    if path.suffix != ".py":
        return []
    if path.parts[0] == "tests":
        return [root / path] if path.match(TESTS) else (root / path).parent.glob(TESTS)
    folder = root / "tests" / path.parent
    while not folder.is_dir():
        folder = folder.parent
    package, dotted = ".".join(path.parent.parts), ".".join(path.with_suffix("").parts)
    imported = rf"from {re.escape(package)} import .*\b{path.stem}\b"
    name = re.compile(rf"\b{re.escape(dotted)}\b|{imported}")
    beside = sorted(folder.glob(TESTS))
    return [each for each in beside if name.search(each.read_text("utf-8"))] or beside


def main(flags: list[str]) -> int:
    """pytest's exit code; 0 where the time was over before a test failed."""
    paths = changed()
    found = {test for path in paths for test in tests_of(path)}
    if any(path.suffix == ".py" for path in paths):
        found.add(ROOT / "tests" / "test_house.py")
    if not found:
        print("nothing changed that has tests")
        return 0
    # The short ones first: most of them are run in the time.
    in_order = sorted(found, key=lambda path: (path.stat().st_size, path))
    names = [str(path.relative_to(ROOT)) for path in in_order]
    print(f"{len(names)} files of tests: {' '.join(names)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "pytest", "-x", *flags, *names], cwd=ROOT)
    try:
        return process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
        print(f"no test failed within {SECONDS} s, and not all were run; make test runs all")
        return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
