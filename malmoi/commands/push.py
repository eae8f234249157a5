"""`malmoi push --model M OWNER/NAME`: a classifier to the Hugging Face Hub."""

from dataclasses import dataclass

import tyro

ABOUT = (
    "Send a classifier to the Hugging Face Hub: an exported folder as it is, another model as "
    "malmoi export writes it. The token is that of HF_TOKEN or of hf auth login."
)


@dataclass(kw_only=True)
class PushSettings:
    """What is sent, to where."""

    model: str
    """Folder of malmoi export, or a classifier: name of a run or of a released model, or
    directory."""
    repository: tyro.conf.Positional[str]
    """OWNER/NAME on the Hub; made unless it is there."""
    private: bool = False
    """Only its owners see it."""


def main(settings: PushSettings) -> None:
    """Export unless it is, and send."""
    import tempfile
    from pathlib import Path

    from malmoi.inference.onnx_exports import find_published
    from malmoi.installed import INSTALL_TORCH, TORCH, need
    from malmoi.messages import Phrase
    from malmoi.model_folders import check_source
    from malmoi.publishing.hub_upload import check_push, push_folder

    check_push(settings.repository)
    source = Path(check_source(settings.model))
    with tempfile.TemporaryDirectory() as scratch:
        folder = source
        if find_published(source) is None:
            need(Phrase("a model that is not exported yet"), *TORCH, instead=INSTALL_TORCH)
            from malmoi.publishing.folder import export_folder

            folder = Path(scratch) / "model"
            export_folder(settings.model, folder, say=lambda line: print(line, flush=True))
        address = push_folder(folder, settings.repository, private=settings.private)
    print(f"{settings.model} -> {address}")
