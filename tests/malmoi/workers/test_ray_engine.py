"""The Ray engine on a local cluster of two nodes, one of which dies half-way."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from malmoi.errors import InputError
from malmoi.text.cleaning.cleaner import CleaningSettings
from malmoi.text.corpus import units
from malmoi.text.corpus.clean_corpus import CleaningMeans, build_clean_corpus
from malmoi.text.duplicates.near import NearDuplicates
from malmoi.text.record import Record
from malmoi.workers.ray_cluster import check_nodes


def build(texts: list[Record], folder: Path, means: CleaningMeans) -> dict[str, bytes]:
    (folder / "work").mkdir(parents=True)
    (folder / "out").mkdir()
    build_clean_corpus(
        texts,
        folder / "out",
        folder / "work",
        CleaningSettings(),
        near=NearDuplicates(),
        means=means,
    )
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def test_two_nodes_one_dies_and_the_bytes_are_those_of_one_process(
    cluster: Any, comments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(units, "RECORDS_PER_UNIT", 250)
    texts = [
        Record(id=str(n), text=f"{comments[n % len(comments)]} {n // 3}", source="a.txt")
        for n in range(15_000)
    ]
    node = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    cluster.wait_for_nodes()
    assert ray.cluster_resources()["CPU"] == 2
    killed_at = 0

    def kill_half_way(stage: str, done: int, total: int | None = None) -> None:
        nonlocal killed_at
        if stage == "cleaning" and done >= len(texts) // 2 and not killed_at:
            killed_at = done
            cluster.remove_node(node, allow_graceful=False)

    means = CleaningMeans(engine="ray", progress=kill_half_way)
    on_cluster = build(texts, tmp_path / "ray", means)
    assert 0 < killed_at < len(texts)
    # The cluster takes some seconds to call a silent node dead.
    deadline = time.monotonic() + 300
    while ray.cluster_resources()["CPU"] > 1 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert ray.cluster_resources()["CPU"] == 1
    assert on_cluster == build(texts, tmp_path / "local", CleaningMeans())


def test_a_wrong_address_is_one_line_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="ray is not installed (the [cluster] extra)")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    text = Record(id="1", text="이 텍스트는 남아 있습니다")
    message = r"expected a Ray cluster at RAY_ADDRESS, found nothing at 127\.0\.0\.1:1 \(.*refused"
    with pytest.raises(InputError, match=message):
        build([text], tmp_path, CleaningMeans(engine="ray"))


def test_without_ray_one_line_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    text = Record(id="1", text="이 텍스트는 남아 있습니다")
    with pytest.raises(InputError) as caught:
        build([text], tmp_path, CleaningMeans(engine="ray"))
    assert str(caught.value) == (
        "expected the package ray for a cluster, found none; install it with: "
        "pip install -c constraints.txt -e '.[cluster]'"
    )


def test_another_service_at_the_address_is_one_line_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="ray is not installed (the [cluster] extra)")
    from http.server import HTTPServer, SimpleHTTPRequestHandler

    server = HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{server.server_port}")
    text = Record(id="1", text="이 텍스트는 남아 있습니다")
    began = time.monotonic()
    with pytest.raises(InputError, match=r"found another service at 127\.0\.0\.1"):
        build([text], tmp_path, CleaningMeans(engine="ray"))
    assert time.monotonic() - began < 30
    server.server_close()


def test_a_node_that_does_not_see_the_files_is_named(cluster: Any, tmp_path: Path) -> None:
    import ray

    check_nodes(ray, [tmp_path])
    missing = tmp_path / "elsewhere"
    with pytest.raises(InputError, match=f"expected {missing} on every node, found none on"):
        check_nodes(ray, [tmp_path, missing])
