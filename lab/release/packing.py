"""Packing finished runs for release: half precision, and no path of the machine that trained."""

import json
import shutil
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from safetensors.torch import load_file, save_file

from lab.release.check import CHECKED_STEPS
from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.inference.learnt_texts import LEARNT
from malmoi.inference.linear.cross_fitting import strongest
from malmoi.inference.linear.linear_part import load_linear
from malmoi.model_folders import LINEAR, LINEAR_WEIGHTS

# Stock files and the classifier's own temperature; a folder may hold more, such as a lock.
_FILES = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "calibration.json", LEARNT),
    *(LINEAR, LINEAR_WEIGHTS),
)
_WEIGHTS = "model.safetensors"
# N-grams of each kind that travel. Of the 57,000 of characters that memos had the others changed
# none of 5,149 labels, nor of 236 that were kept from it; 5 of 586 comments.
_MOST_NGRAMS = 45_000


def pack_encoder(run: Path, folder: Path) -> None:
    """Write a run's networks for release: the discriminator itself, its generator below.

    With `run.json` and rows of `metrics.jsonl`, what the run says of itself.

    Args:
        run: a finished run of pretrain/run.py.
        folder: new.

    Raises:
        InputError: `folder` exists, or the run is not finished.
    """
    record = _finished(run)
    _check_new(folder)
    with directory_at_once(folder) as scratch:
        _halve(run / "discriminator", scratch)
        if (run / "generator").is_dir():
            _halve(run / "generator", scratch / "generator")
        _write_records(run, record, scratch)


def pack_classifier(run: Path, folder: Path) -> None:
    """Write the classifier of a run of finetune/kfold.py for release, with its report.json.

    Raises:
        InputError: `folder` exists.
    """
    _check_new(folder)
    with directory_at_once(folder) as scratch:
        _halve(run / "model", scratch)
        keep_strongest(scratch)
        _write(scratch / "report.json", _without_folders(_read(run / "report.json")))


def keep_strongest(folder: Path, most: int = _MOST_NGRAMS) -> None:
    """Write the linear part in a model's folder anew, with so many n-grams of each kind at most."""
    part = load_linear(folder)
    if part is None:
        return
    kept = [(one, strongest(one, most)) for one in part.ngrams]
    ngrams = [
        replace(one, vocabulary=one.vocabulary[k], idf=one.idf[k], weights=one.weights[k])
        for one, k in kept
    ]
    replace(part, ngrams=ngrams).save(folder, _read(folder / LINEAR))


def _finished(run: Path) -> dict[str, Any]:
    """The record of a run that has come to its end."""
    record = _read(run / "run.json")
    if record.get("status") != "finished":
        raise InputError(f"expected a finished run to pack, found {run} {record.get('status')}")
    return record


def _write_records(run: Path, record: dict[str, Any], folder: Path) -> None:
    _write(folder / "run.json", _without_folders(record))
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line, parse_float=_six_digits) for line in lines]
    # All rows that a check compares, then a hundred or so and the last one.
    apart = max(1, len(rows) // 100)
    kept = [
        row
        for left, row in zip(reversed(range(len(rows))), rows, strict=True)
        if row["step"] <= CHECKED_STEPS or left % apart == 0
    ]
    text = "".join(f"{_in_few_bytes(row)}\n" for row in kept)
    (folder / "metrics.jsonl").write_text(text, encoding="utf-8")


def _six_digits(number: str) -> float:
    return float(f"{float(number):.6g}")


def _in_few_bytes(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _check_new(folder: Path) -> None:
    if folder.exists():
        raise InputError(f"expected a new folder to pack into, found {folder}; move it away first")


def _halve(source: Path, target: Path) -> None:
    """Copy a model with its weights in float16, its tokenizer in one line.

    Its configuration still says float32, into which transformers then loads them: on a CPU
    computing in half precision is slow.
    """
    target.mkdir(exist_ok=True)
    for name in _FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    tokenizer = _read(target / "tokenizer.json")
    (target / "tokenizer.json").write_text(_in_few_bytes(tokenizer), encoding="utf-8")
    weights = {name: value.half() for name, value in load_file(source / _WEIGHTS).items()}
    save_file(weights, target / _WEIGHTS, metadata={"format": "pt"})
    (target / _WEIGHTS).chmod(0o644)  # safetensors gives 0o600
    _write(target / "config.json", _read(target / "config.json") | {"dtype": "float32"})


def _without_folders(value: Any) -> Any:
    """The same record, of every path to a file or folder only the last part."""
    if isinstance(value, dict):
        return {key: _without_folders(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_folders(inner) for inner in value]
    if isinstance(value, str) and Path(value).is_absolute():
        return PurePath(value).name
    return value


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
