"""What the manifest holds: named entries, each a hash of what a command gave, without what varies.

The manifest has two parts: entries that are equal on every machine, and those that a CPU's own
kernels round differently, which are compared on the same kind of CPU only.
"""

import hashlib
import json
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
# Times, versions, speeds and sizes of memory, by the names that reports give them.
_VOLATILE = re.compile(
    r".*_at|seconds|versions|transformers_version|.*_per_second|model_flops_utilization|"
    r"peak_memory_gib"
)
# What stands in lines and pages for people; days are those of the run, for a day of a text counts.
_DAYS = "|".join(str(datetime.now(UTC).date() + timedelta(days=days)) for days in (0, 1))
_IN_TEXTS = {
    re.compile(r"\b\d+(\.\d+)? s\b"): "N s",
    re.compile(rf"({_DAYS})[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?"): "TIME",
    re.compile(r"<dd>\d+\.\d+\.\d+[^<]*</dd>"): "<dd>VERSION</dd>",
}


@dataclass
class Golden:
    """The entries of a run.

    Attributes:
        work: folder in which the commands run; what they print of it is left out.
        keep: folder for the contents of every entry, for `diff -r`; None keeps none.
        everywhere: equal on every machine.
        of_cpu: equal on the same kind of CPU.
        skipped: beginnings of the names of what could not be run here, and why.
        failed: kinds of which something failed that should not, and how.
    """

    work: Path
    keep: Path | None = None
    everywhere: dict[str, Entry] = field(default_factory=dict)
    of_cpu: dict[str, Entry] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: Any, *, of_cpu: bool = False, **beside: Any) -> None:
        """Enter the hash of a value, and beside it what tells a person what differs."""
        content = value if isinstance(value, bytes) else self._written(value).encode()
        entry = {"sha256": hashlib.sha256(content).hexdigest(), **self.without_volatile(beside)}
        (self.of_cpu if of_cpu else self.everywhere)[name] = entry
        if self.keep is not None:
            place = self.keep / f"{name}.txt"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def keep_skipped(self, everywhere: Mapping[str, Entry]) -> None:
        """Take over the entries of a manifest that could not be made here."""
        kept = {name: entry for name, entry in everywhere.items() if self.skips(name)}
        self.everywhere = kept | self.everywhere

    def skips(self, name: str) -> bool:
        """Whether an entry could not be made here."""
        return name.startswith(tuple(self.skipped))

    def without_volatile(self, value: Any) -> Any:
        """A value without times, versions, speeds and the paths of this machine."""
        if isinstance(value, Mapping):
            kept = {str(key): inside for key, inside in value.items()}
            return {
                key: self.without_volatile(inside)
                for key, inside in kept.items()
                if not _VOLATILE.fullmatch(key)
            }
        if isinstance(value, list | tuple):
            return [self.without_volatile(inside) for inside in value]
        if isinstance(value, str):
            value = value.replace(str(self.work), "WORK")
            for pattern, instead in _IN_TEXTS.items():
                value = pattern.sub(instead, value)
        return value

    def _written(self, value: Any) -> str:
        if isinstance(value, str):
            return str(self.without_volatile(value))
        return json.dumps(
            self.without_volatile(value),
            ensure_ascii=False,
            indent=1,
            sort_keys=True,
            default=lambda cell: f"{type(cell).__name__} {cell}",
        )


def this_cpu() -> str:
    """What the results of kernels depend on: the CPU, what torch uses of it, and torch itself."""
    import torch

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    return f"{model}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}"


def write_manifest(path: Path, found: Golden) -> None:
    """Write the manifest, sorted, one entry a line."""

    def section(entries: Mapping[str, Entry]) -> str:
        return ",\n".join(f'  "{name}": {_line(entry)}' for name, entry in sorted(entries.items()))

    path.write_text(
        f'{{\n"everywhere": {{\n{section(found.everywhere)}\n}},\n'
        f'"made_on": {json.dumps(this_cpu())},\n'
        f'"of_cpu": {{\n{section(found.of_cpu)}\n}}\n}}\n',
        encoding="utf-8",
    )


def changes(manifest: Mapping[str, Any], found: Golden, *, whole: bool) -> Iterator[str]:
    """What differs from the manifest, a line each.

    Args:
        manifest: as `write_manifest` wrote it.
        found: what was run now.
        whole: whether all of it was; else an entry is missing only where others of its group are
            there, those of which the first two parts of the name are equal.
    """
    sections = [(manifest["everywhere"], found.everywhere)]
    if manifest["made_on"] == this_cpu():
        sections.append((manifest["of_cpu"], found.of_cpu))
    for expected, entries in sections:
        groups = {_group(name) for name in entries}
        for name in sorted({*expected, *entries}):
            if name not in expected:
                yield f"new: {name}: {_line(entries[name])}"
            elif name in entries:
                if entries[name] != expected[name]:
                    before, now = _line(expected[name]), _line(entries[name])
                    yield f"changed: {name}:\n  {before}\n  {now}"
            elif (whole or _group(name) in groups) and not found.skips(name):
                yield f"missing: {name}"


def _group(name: str) -> str:
    return "/".join(name.split("/")[:2])


def _line(entry: Entry) -> str:
    return json.dumps(entry, ensure_ascii=False)
