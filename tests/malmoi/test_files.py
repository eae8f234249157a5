"""Files and folders that appear whole: after a power cut, too."""

from pathlib import Path

from malmoi.files import directory_at_once, file_at_once, write_at_once


def test_what_gets_its_name_is_on_the_disk(tmp_path: Path, named_too_early: list[str]) -> None:
    write_at_once(tmp_path / "small.json", "{}")
    with file_at_once(tmp_path / "table.csv") as scratch:
        scratch.write_text("text,label", "utf-8")
    with directory_at_once(tmp_path / "model") as scratch:
        (scratch / "onnx").mkdir()
        (scratch / "onnx" / "int8.onnx").write_bytes(b"weights")
    assert named_too_early == []
    (tmp_path / "careless").write_text("not synced", "utf-8")
    (tmp_path / "careless").replace(tmp_path / "named")
    assert len(named_too_early) == 1
