"""`malmoi doctor`: what is installed, what was found, and what is missing for which feature."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from malmoi.cache import CACHE, entries
from malmoi.installed import INSTALL_TORCH, installed_version
from malmoi.model_folders import find_classifiers, is_encoder, read_config, unsupported_task
from malmoi.paths import HOME_VARIABLE, home, label_database, runs

ABOUT = (
    "Say what is installed, on which device and in which number format work is done, which models "
    "are found, how much disk is free, and what is missing for which feature."
)
OK, MISSING = "ok", "--"
# Extras of the package, and what each is for.
_FEATURES = {
    "train": "training, and models that were not exported",
    "app": "the labelling app",
    "plots": "pictures of tokenizers compared, with Hangul in them",
    "tensorboard": "TensorBoard files of a pre-training run",
    "llm": "a chat model as a baseline of k-fold",
    "postgres": "labels of a team in PostgreSQL",
    "login": "the app with a login",
    "cluster": "cleaning, tokenising and predicting on a Ray cluster",
    "test": "make test",
    "bench": "the benchmarks",
}
# A run of pre-training on a laptop writes about this much: checkpoints, cache, logs (assumption).
_ENOUGH_BYTES = 5 * 2**30
# The newest models that engines were compared on.
_SHOWN_ENGINES = 5
_FONTS = ("Nanum", "NotoSansCJK", "NotoSansKR", "malgun", "AppleSDGothic", "AppleGothic")


@dataclass(kw_only=True)
class DoctorSettings:
    """No flags."""


@dataclass(frozen=True)
class Finding:
    """One line of the answer.

    Attributes:
        good: nothing has to be done.
        name: what was looked at.
        found: what there is.
        advice: what to do where something is missing.
    """

    good: bool
    name: str
    found: str
    advice: str = ""


def main(settings: DoctorSettings) -> None:
    sections: dict[str, Callable[[], Iterator[Finding]]] = {
        "Installed": _installed,
        "Features": _features,
        "Work is done on": _device,
        "Models": _models,
        "Places": _places,
    }
    missing = 0
    for title, look in sections.items():
        print(f"\n{title}")
        for finding in look():
            missing += not finding.good
            mark = OK if finding.good else MISSING
            advice = f"\n       {' ' * 22}{finding.advice}" if finding.advice else ""
            print(f"  {mark}   {finding.name:<22}{finding.found}{advice}", flush=True)
    print(
        f"\n{missing} missing; see the lines with {MISSING}" if missing else "\nnothing is missing"
    )


def _installed() -> Iterator[Finding]:
    own = installed_version("malmoi") or "not installed"
    yield Finding(True, "malmoi", f"{own}, code in {Path(__file__).resolve().parents[1]}")
    yield Finding(sys.version_info >= (3, 11), "Python", platform.python_version())
    absent = [name for name in _packages(None) if installed_version(name) is None]
    install = f"pip install -c constraints.txt {' '.join(absent)}" if absent else ""
    shown = ", ".join(
        f"{name} {installed_version(name) or 'missing'}"
        for name in ("torch", "transformers", "streamlit")
    )
    yield Finding(not absent, "packages", shown, install)


def _features() -> Iterator[Finding]:
    for extra, purpose in _FEATURES.items():
        absent = [name for name in _packages(extra) if installed_version(name) is None]
        found = purpose if not absent else f"{purpose}: without {', '.join(absent)}"
        command = f"pip install -c constraints.txt -e '.[{extra}]'"
        yield Finding(not absent, extra, found, command if absent else "")
    if shutil.which("chromium") or shutil.which("google-chrome"):
        yield Finding(True, "browser for tests", "found")
    else:
        advice = "only the tests that open a browser need it: apt-get install chromium"
        yield Finding(False, "browser for tests", "none", advice)
    font = _hangul_font()
    advice = "" if font else "labels in a browser may show as boxes: apt-get install fonts-nanum"
    yield Finding(bool(font), "Hangul font", font or "none found", advice)


def _device() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        found = "not installed" if isinstance(error, ModuleNotFoundError) else str(error)
        yield Finding(False, "torch", f"{found}: only ONNX engines work here", INSTALL_TORCH)
        return
    from malmoi.devices import attention_for, choose_device, matrix_dtype

    device = choose_device()
    name = torch.cuda.get_device_name() if device.type == "cuda" else _processor()
    yield Finding(True, "device", f"{device}: {name}")
    number = str(matrix_dtype(device)).removeprefix("torch.")
    yield Finding(True, "number format", f"matrix products in {number}, weights in float32")
    yield Finding(True, "attention", attention_for(device))
    spin = os.environ.get("GOMP_SPINCOUNT", "default")
    yield Finding(True, "threads", f"{torch.get_num_threads()} (GOMP_SPINCOUNT={spin})")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield Finding(memory > 4 * 2**30, "memory", f"{memory / 2**30:.0f} GiB")


def _models() -> Iterator[Finding]:
    from malmoi.inference.onnx_exports import all_measurements
    from malmoi.inference.processor import suited_engine

    places = [*runs("pretrain").glob("[!.]*/discriminator"), *(home() / "checkpoints").glob("*")]
    encoders = [path for path in sorted(places) if is_encoder(path)]
    shown = ", ".join(map(str, encoders)) or "none"
    advice = "" if encoders else "python pretrain/run.py --corpus corpora/comments makes one"
    yield Finding(bool(encoders), "encoders", shown, advice)
    classifiers = find_classifiers(every_task=True)
    tasks = {path: unsupported_task(read_config(path)) for path in classifiers}
    shown = ", ".join(f"{path} ({task})" if task else f"{path}" for path, task in tasks.items())
    shown = shown or "none"
    advice = "" if classifiers else "python finetune/kfold.py makes one, which the app then uses"
    yield Finding(bool(classifiers), "classifiers", shown, advice)
    found = all_measurements()
    for values in found[:_SHOWN_ENGINES]:
        others = ", ".join(
            f"{name} {one['texts_per_second']:,}/s ({one['same_labels']:.1%} same)"
            for name, one in values["measured"].items()
        )
        yield Finding(True, "engine", f"{values['engine']} for {values['model']}: {others}")
    if not found:
        line = f"{suited_engine()} by what the processor can do; --engine fastest compares them"
        yield Finding(True, "engine", line)


def _places() -> Iterator[Finding]:
    place = home().resolve()
    given = os.environ.get(HOME_VARIABLE)
    if not place.is_dir():
        found = f"{place} is no folder ({HOME_VARIABLE}={given})"
        advice = f"make it, or let {HOME_VARIABLE} name the folder that has checkpoints/ and runs/"
        yield Finding(False, "data and models", found, advice)
        return
    why = f"by {HOME_VARIABLE}" if given else "the repository or folder"
    yield Finding(True, "data and models", f"{place} ({why})")
    labels = label_database()
    yield Finding(True, "labels", f"{labels}" if labels.is_file() else f"{labels}, not yet made")
    size = sum(entry.num_bytes for entry in entries())
    yield Finding(True, "cache of texts", f"{CACHE}, {size / 2**30:.1f} GiB")
    free = shutil.disk_usage(place).free
    advice = "" if free > _ENOUGH_BYTES else "malmoi cache --clear removes copies of texts"
    yield Finding(free > _ENOUGH_BYTES, "free disk", f"{free / 2**30:.0f} GiB", advice)


def _packages(extra: str | None) -> list[str]:
    """What this package, or one of its extras, asks for."""
    try:
        asked = requires("malmoi") or []
    except PackageNotFoundError:
        return []
    found = []
    for line in asked:
        name = re.split(r"[ ;<>=!~\[]", line, maxsplit=1)[0]
        of = re.search(r"extra == ['\"](\w+)['\"]", line)
        if name != "malmoi" and (of[1] if of else None) == extra:
            found.append(name)
    return found


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        return next(
            line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _hangul_font() -> str:
    """The name of a font file with Hangul; empty where none was found."""
    folders = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts")
    for folder in (*folders, "/System/Library/Fonts", "/Library/Fonts", "C:/Windows/Fonts"):
        for path in sorted(Path(folder).expanduser().rglob("*.[ot]t[fc]")):
            if any(name.lower() in path.name.lower() for name in _FONTS):
                return path.name
    return ""
