"""A classifier in seconds: learnt from real memos, kept, and opened as any other."""

import json
import pickle
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from malmoi.errors import InputError
from malmoi.inference.batching import padded
from malmoi.inference.classifier import Classifier
from malmoi.inference.learnt_texts import text_keys, write_learnt
from malmoi.inference.linear.frozen_encoder import FrozenEncoder
from malmoi.inference.linear.quick import QuickResult, QuickTrainer
from malmoi.inference.linear.torch_encoder import TorchEncoder
from malmoi.inference.vectors.sentence_encoder import SentenceEncoder
from malmoi.model_folders import find_classifiers
from malmoi.paths import checkpoint
from malmoi.text.cleaning.cleaner import clean_batch

Memos = list[tuple[str, str]]


def some(memos: Memos, count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    chosen = random.Random(seed).sample(memos, count)
    return [text for text, _ in chosen], [label for _, label in chosen]


@pytest.fixture(scope="module")
def quick(memos: Memos, shared_cache: Path) -> QuickResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("malmoi.cache.CACHE", shared_cache)
        return QuickTrainer().fit(*some(memos, 600))


@pytest.fixture
def saved(quick: QuickResult, tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "finetune" / "memos" / "model"
    folder.parent.mkdir(parents=True)
    quick.save(folder)
    (folder.parent / "report.json").write_text("{}", encoding="utf-8")
    return folder


def test_memos_are_learnt(quick: QuickResult, memos: Memos) -> None:
    assert quick.macro_f1 > 0.8
    learnt = set(some(memos, 600)[0])
    new = [(text, label) for text, label in memos if text not in learnt][:500]
    found = quick.classifier.predict([text for text, _ in new])
    right = np.mean([one.label == label for one, (_, label) in zip(found, new, strict=True)])
    # What it says of itself holds for texts that it has never met.
    assert right == pytest.approx(quick.macro_f1, abs=0.05)
    assert sum(found[0].probabilities.values()) == pytest.approx(1, abs=1e-5)


def test_a_kept_one_says_the_same(quick: QuickResult, saved: Path, memos: Memos) -> None:
    texts = [text for text, _ in memos[:200]]
    loaded = Classifier.load(saved)
    assert loaded.labels == quick.labels and loaded.engine == "linear"
    assert loaded.parts == quick.classifier.parts
    for one, other in zip(loaded.predict(texts), quick.classifier.predict(texts), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=5e-3)


def test_an_engine_that_it_cannot_use_is_not_ignored_in_silence(saved: Path) -> None:
    said: list[str] = []
    for engine in ("auto", "linear"):
        Classifier.load(saved, engine, say=said.append)
    assert said == []
    assert Classifier.load(saved, "onnx-int8", say=said.append).engine == "linear"
    assert "onnx-int8" in said[0] and len(said) == 1
    with pytest.raises(InputError, match="found 'onnx-int4'"):
        Classifier.load(saved, "onnx-int4")


def test_one_in_memory_alone_cannot_be_pickled(quick: QuickResult) -> None:
    with pytest.raises(InputError, match="save it and give the folder"):
        pickle.dumps(quick.classifier)


def test_it_is_found_and_named_by_its_run(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_classifiers(tmp_path) == [saved]
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))
    assert Classifier.load("memos").name == "memos"


def test_alone_and_in_a_batch_and_from_threads_a_text_gets_the_same(
    quick: QuickResult, memos: Memos
) -> None:
    texts = ["", "😀", *(text for text, _ in memos[:40])]
    together = [one.probabilities for one in quick.classifier.predict(texts)]
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda text: quick.classifier.predict([text])[0], texts))
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other.probabilities, abs=1e-5)


def test_more_labels_cost_little(memos: Memos) -> None:
    """A ratio within this process: the second fit reads only what is new."""
    texts, labels = some(memos, 1000, seed=1)
    trainer = QuickTrainer()
    trainer.fit(texts[:40], labels[:40])  # MeCab is loaded
    began = time.process_time()
    first = trainer.fit(texts[:980], labels[:980])
    middle = time.process_time()
    second = trainer.fit(texts, labels)
    again = time.process_time() - middle
    assert again < middle - began
    assert second.macro_f1 == pytest.approx(first.macro_f1, abs=0.05)


def test_twenty_labels_are_enough(memos: Memos) -> None:
    texts, labels = some(memos, 20)
    result = QuickTrainer(morphemes=False).fit(texts, labels)
    assert set(result.classifier.parts) == {"characters"}
    assert len(result.probabilities) == 20


def test_little_is_loaded_to_predict(memos: Memos, tmp_path: Path) -> None:
    QuickTrainer().fit(*some(memos, 200)).save(tmp_path / "model")
    code = (
        "import sys; from malmoi import Classifier\n"
        f"print(Classifier.load({str(tmp_path / 'model')!r}).predict(['내일 회의'])[0].label)\n"
        "print([m for m in ('kiwipiepy', 'sklearn', 'torch', 'scipy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[1] == "[]"


def test_a_frozen_encoder_is_a_part_and_is_kept(
    encoder: Path, memos: Memos, tmp_path: Path
) -> None:
    texts, _ = some(memos, 300)
    frozen = FrozenEncoder.load(encoder)
    numbers = frozen.features(texts)
    assert numbers.shape == (300, 64)
    assert np.allclose(numbers[3], frozen.features([texts[3]])[0], atol=1e-4)
    # A label that the encoder knows, and n-grams hardly.
    high = numbers[:, 5] > np.median(numbers[:, 5])
    labels = ["높음" if one else "낮음" for one in high]
    result = QuickTrainer([frozen], morphemes=False).fit(texts, labels)
    assert result.encoder is not None
    result.save(tmp_path / "model")
    loaded = Classifier.load(tmp_path / "model")
    assert "encoder" in loaded.parts
    for one, other in zip(loaded.predict(texts), result.classifier.predict(texts), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=5e-3)


def test_the_encoder_is_taken_that_knows_the_labels_unless_it_has_learnt_them(
    encoder: Path, memos: Memos, tmp_path: Path
) -> None:
    texts, _ = some(memos, 300)
    other = FrozenEncoder.load(checkpoint("malmoi-small"))
    own = FrozenEncoder.load(shutil.copytree(encoder, tmp_path / "own"))
    known = own.features(texts)[:, 5]
    labels = ["높음" if one else "낮음" for one in known > np.median(known)]
    trainer = QuickTrainer([other, own], morphemes=False)
    result = trainer.fit(texts, labels)
    assert result.encoder is own
    # Chosen again by twice as many texts, and what was fitted before is still asked its own.
    write_learnt(tmp_path / "own", text_keys(clean_batch(texts).texts))
    twice = texts + [f"{text} 둘" for text in texts]
    assert trainer.fit(twice, labels * 2).encoder is not own
    assert np.allclose(
        trainer.probabilities(result, texts),
        [list(one.probabilities.values()) for one in result.classifier.predict(texts)],
        atol=5e-3,
    )


def test_an_encoder_of_ours_says_without_torch_what_it_says_with_it(
    memos: Memos, tmp_path: Path
) -> None:
    folder, (texts, _) = checkpoint("malmoi-small"), some(memos, 60)
    by_torch = TorchEncoder.load(folder)
    tokens = by_torch.tokenizer(texts)
    expected = by_torch.logits(padded(tokens, np.arange(len(texts))))
    exact, frozen = FrozenEncoder.load(folder, exact=True), FrozenEncoder.load(folder)
    assert np.allclose(exact.features(texts), expected, atol=1e-4)
    cosines = (frozen.features(texts) * expected).sum(axis=1) / (expected**2).sum(axis=1)
    assert np.abs(cosines - 1).max() < 0.01
    frozen.save(tmp_path / "encoder")
    code = (
        "import sys; from pathlib import Path\n"
        "from malmoi.inference.linear.frozen_encoder import FrozenEncoder\n"
        f"FrozenEncoder.load(Path({str(tmp_path / 'encoder')!r})).features(['내일 회의'])\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_the_encoder_reads_what_is_new_and_the_last_texts_alone_are_kept(
    encoder: Path, memos: Memos, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, labels = some(memos, 120)
    frozen = FrozenEncoder.load(encoder)
    features = frozen.features
    read: list[list[str]] = []

    def noting(_: FrozenEncoder, new: Sequence[str]) -> np.ndarray:
        read.append(list(new))
        return features(new)

    monkeypatch.setattr(FrozenEncoder, "features", noting)
    monkeypatch.setattr("malmoi.inference.linear.quick._MOST_TEXTS", 80)
    trainer = QuickTrainer([frozen], morphemes=False)
    for chosen in (slice(0, 60), slice(0, 80), slice(40, 120), slice(0, 80)):
        trainer.fit(texts[chosen], labels[chosen])
    clean = clean_batch(texts).texts
    assert read == [clean[:60], clean[60:80], clean[80:], clean[:40]]
    assert trainer._numbers["encoder"]._known.keys() == set(clean[:80])


def test_sentence_vectors_are_a_part_and_are_kept(tmp_path: Path) -> None:
    kinds = {
        "날씨": "비가 온다 눈이 내린다 하늘이 흐리다 바람이 세다 안개가 꼈다 소나기가 쏟아진다",
        "음식": "국이 짜다 밥을 짓는다 빵을 굽는다 나물을 무친다 생선을 조린다 만두를 빚는다",
    }
    endings = ("", "고 한다", "지요", "더라")
    rows = [
        (f"{two} {end}".strip(), kind)
        for kind, words in kinds.items()
        for two in (" ".join(words.split()[at : at + 2]) for at in range(0, 12, 2))
        for end in endings
    ]
    texts, labels = zip(*rows, strict=True)
    sentences = SentenceEncoder(checkpoint("malmoi-vectors"))
    trainer = QuickTrainer(sentences=sentences, morphemes=False)
    # No fold shares a phrase with another, so that only the meaning helps.
    result = trainer.fit(texts, labels, fold_of=np.repeat(np.arange(12) % 6 + 1, 4))
    assert "sentences" in result.weights
    result.save(tmp_path / "model")
    loaded = Classifier.load(tmp_path / "model")
    assert "sentences" in loaded.parts
    new = ["우박이 떨어졌다", "떡을 쪘다", "천둥이 친다", "김치를 담갔다"]
    said = trainer.probabilities(result, new)
    for one, row in zip(loaded.predict(new), said, strict=True):
        assert list(one.probabilities.values()) == pytest.approx(row.tolist(), abs=5e-3)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["가"] * 19, ["a", "b"] * 9 + ["a"], "at least 20 texts with two labels"),
        (["가"] * 30, ["a"] * 30, "found 30 texts with 1"),
        (["가"] * 30, ["a"] * 29, "expected a label for each of 30 texts, found 29"),
    ],
)
def test_what_cannot_be_learnt_is_refused(
    texts: list[str], labels: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        QuickTrainer(morphemes=False).fit(texts, labels)


def test_a_rare_label_does_not_stop_it(memos: Memos) -> None:
    texts, labels = some(memos, 60)
    result = QuickTrainer(morphemes=False).fit([*texts, "처음 보는 것"], [*labels, "드문 것"])
    assert "드문 것" in result.labels
    assert len(result.classifier.predict(["처음 보는 것"])[0].probabilities) == len(result.labels)


def test_a_label_of_one_text_beside_one_other_label() -> None:
    texts = [f"내일 {hour}시에 회의" for hour in range(19)] + ["꿈에서 날았다"]
    result = QuickTrainer(morphemes=False).fit(texts, ["일정"] * 19 + ["꿈"])
    assert set(result.labels) == {"일정", "꿈"}
    assert result.classifier.predict(["내일 회의"])[0].label == "일정"


class TestDamage:
    """Files of a linear part that are not what they should be."""

    def message(self, folder: Path) -> str:
        with pytest.raises(InputError) as caught:
            Classifier.load(folder)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_weights_cut_off(self, saved: Path) -> None:
        weights = saved / "linear.safetensors"
        weights.write_bytes(weights.read_bytes()[:1000])
        assert "expected a linear part in" in self.message(saved)

    def test_weights_missing(self, saved: Path) -> None:
        (saved / "linear.safetensors").unlink()
        assert "expected a linear part in" in self.message(saved)

    def test_of_a_later_version(self, saved: Path) -> None:
        self.change(saved, version=9)
        assert "expected version 3" in self.message(saved)

    def test_of_other_labels(self, saved: Path) -> None:
        self.change(saved, labels=["가", "나"])
        assert "for 2 labels" in self.message(saved)

    def change(self, folder: Path, **changes: object) -> None:
        path = folder / "linear.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(found | changes), encoding="utf-8")


def test_only_the_strongest_ngrams_are_kept(memos: Memos, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = some(memos, 600)
    whole = QuickTrainer(morphemes=False).fit(texts, labels)
    most = len(whole.part.ngrams[0].vocabulary) // 2
    monkeypatch.setattr("malmoi.inference.linear.cross_fitting._MOST_NGRAMS", most)
    pruned = QuickTrainer(morphemes=False).fit(texts, labels)
    assert len(pruned.part.ngrams[0].vocabulary) == most
    learnt = set(texts)
    new = [text for text, _ in memos if text not in learnt][:500]
    pairs = zip(pruned.classifier.predict(new), whole.classifier.predict(new), strict=True)
    assert np.mean([one.label == other.label for one, other in pairs]) > 0.95
