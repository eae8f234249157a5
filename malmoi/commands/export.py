"""`malmoi export --model M --output DIR`: a classifier as a folder that a stranger uses."""

from dataclasses import dataclass
from pathlib import Path

ABOUT = (
    "Write a classifier into a folder for others: a stock transformers model whose tokenizer "
    "cleans by itself, ONNX networks for onnxruntime and transformers.js, a web page that labels "
    "texts in the browser, and a card. malmoi push sends it to the Hugging Face Hub."
)


@dataclass(kw_only=True)
class ExportSettings:
    """What is exported, to where."""

    model: str
    """A fine-tuned classifier: name of a run or of a released model, directory, or Hub id."""
    output: Path
    """Folder to write, new or empty."""


def main(settings: ExportSettings) -> None:
    from malmoi.errors import InputError
    from malmoi.installed import INSTALL_TORCH, TORCH, need
    from malmoi.model_folders import check_source

    check_source(settings.model)
    output = settings.output
    taken = output.is_symlink() or output.exists()
    if taken and not (output.is_dir() and not any(output.iterdir())):
        found = "a folder with files" if output.is_dir() else "a file"
        raise InputError(
            "expected a new or an empty folder for --output, found {found} at {output}; delete it "
            "or name another",
            found=found,
            output=output,
        )
    need("malmoi export", *TORCH, instead=INSTALL_TORCH)
    from malmoi.publishing.folder import export_folder

    export_folder(settings.model, settings.output, say=lambda line: print(line, flush=True))
    from malmoi.publishing.card import CARD, licence_of

    files = [path for path in settings.output.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 2**20
    print(f"{len(files)} files, {size:,.1f} MiB -> {settings.output}")
    if licence_of(settings.output) == "unknown":
        print(f"nobody says under which licence the model stands: write it into {CARD}")
    print(f"{CARD} says how it is used")
