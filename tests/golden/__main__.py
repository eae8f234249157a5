"""`make golden`: run everything that the manifest names, and say what changed."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANIFEST = Path(__file__).with_name("manifest.json")
# Commands find models and runs in the folder they stand in, compute in one thread by torch alone,
# and fetch nothing. Set before torch and numpy are imported, as tests/conftest.py does.
SURROUNDINGS = {
    "MALMOI_HOME": ".",
    "MALMOI_ENGINE": "torch",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
    "TZ": "UTC",
    "COLUMNS": "100",
}


def main() -> int:
    """Compare, or with --accept write; returns 1 where something changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--accept", action="store_true", help="write the manifest")
    parser.add_argument("--fast", action="store_true", help="only what takes seconds")
    parser.add_argument("--keep", type=Path, help="keep what is hashed here, for diff -r")
    given = parser.parse_args()
    if given.accept and given.fast:
        parser.error("--accept writes all of the manifest; leave out --fast")
    os.environ.update(SURROUNDINGS)
    time.tzset()
    keep = given.keep.resolve() if given.keep else None
    with tempfile.TemporaryDirectory(prefix="malmoi-golden-") as folder:
        work = Path(folder).resolve()
        lay_out(work)
        os.chdir(work)
        return compare(work, keep, accept=given.accept, fast=given.fast)


def lay_out(work: Path) -> None:
    """What the commands find, by names that are the same on every machine."""
    shutil.copytree(ROOT / "corpora", work / "corpora")
    (work / "checkpoints").symlink_to(ROOT / "checkpoints")
    if (cases := ROOT.parent / "shared" / "cases").is_dir():
        shutil.copytree(cases, work / "cases")
    for name, number in (("memos", 151), ("reviews", 301)):
        lines = (ROOT / "corpora" / name / f"{name}.csv").read_text(encoding="utf-8").split("\n")
        (work / f"{name}.csv").write_text("\n".join(lines[:number]) + "\n", encoding="utf-8")


def compare(work: Path, keep: Path | None, *, accept: bool, fast: bool) -> int:
    """Run the kinds and say what differs from the manifest."""
    # Only now: they import torch and numpy.
    import torch

    from tests.golden import (
        corpora,
        entries,
        labelling,
        mistakes,
        plans,
        predicting,
        rows,
        training,
    )

    torch.set_num_threads(1)
    golden = entries.Golden(work, keep)
    # In this order: some read what those before them have written.
    kinds = [rows.run, plans.run, mistakes.run, labelling.run, corpora.run, training.run_fast]
    for kind in kinds if fast else [*kinds, training.run, predicting.run]:
        started = time.process_time()
        name = kind.__module__.rpartition(".")[2]
        try:
            kind(golden)
        except Exception as error:
            golden.failed[name] = f"{type(error).__name__}: {error}"
        print(f"{name}: {time.process_time() - started:.0f} s of CPU", flush=True)
    for prefix, why in golden.skipped.items():
        print(f"not run: {prefix}…: {why}")
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    if accept:
        if golden.failed:
            print(f"not written, for something failed: {golden.failed}")
            return 1
        golden.keep_skipped(manifest["everywhere"])
        entries.write_manifest(MANIFEST, golden)
        print(f"{len(golden.everywhere)} + {len(golden.of_cpu)} entries -> {MANIFEST}")
        return 0
    if manifest["made_on"] != entries.this_cpu():
        print(
            f"{len(golden.of_cpu)} entries not compared: made on another CPU "
            f"({manifest['made_on']}; this is {entries.this_cpu()})"
        )
    differing = list(entries.changes(manifest, golden, whole=not fast))
    differing += [f"failed: {kind}: {why}" for kind, why in golden.failed.items()]
    print("\n".join(differing) or "nothing changed")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
