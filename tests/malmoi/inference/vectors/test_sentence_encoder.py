"""The released sentence encoder: likeness in meaning, no matter what stands beside a text."""

import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from malmoi.errors import InputError
from malmoi.inference.tokenizing import unread_words
from malmoi.inference.vectors import sentence_encoder
from malmoi.inference.vectors.sentence_encoder import SentenceEncoder
from malmoi.paths import checkpoint


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(checkpoint("malmoi-vectors"))


def test_what_means_the_same_is_nearer_than_what_shares_words(encoder: SentenceEncoder) -> None:
    asked, same, other = encoder(
        ["환불은 언제 되나요?", "돈을 돌려받으려면 며칠 걸려요?", "언제나 친절하셔서 감사해요"]
    )
    assert asked @ same > asked @ other


def test_a_vector_depends_on_its_text_alone(encoder: SentenceEncoder) -> None:
    texts = ["좋아요", "ㅋㅋㅋ 👍", "", "가" * 3000, "쓸 만한데 값이 조금 비싸요"]
    found = encoder(texts)
    assert found.dtype == np.float32 and found.shape == (5, 384)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)
    alone = np.concatenate([encoder([text]) for text in texts])
    assert found == pytest.approx(alone, abs=1e-5)
    assert encoder([]).shape == (0, 384)


def test_a_copy_is_the_same_encoder(encoder: SentenceEncoder, tmp_path: Path) -> None:
    encoder.save(tmp_path / "copy")
    copy = SentenceEncoder(tmp_path / "copy")
    assert copy.identity == encoder.identity
    assert copy(["한 줄"]) == pytest.approx(encoder(["한 줄"]), abs=1e-6)


def test_what_is_no_sentence_encoder_is_named(encoder: SentenceEncoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json, no tokenizer\.json"):
        SentenceEncoder(tmp_path)
    with pytest.raises(InputError, match=r"no onnx/model_q4\.onnx"):
        SentenceEncoder(checkpoint("malmoi-small"))
    shutil.copytree(encoder.folder, tmp_path / "cut")
    network = tmp_path / "cut" / "onnx" / "model_q4.onnx"
    network.write_bytes(network.read_bytes()[:1000])
    with pytest.raises(InputError, match="expected a sentence encoder"):
        SentenceEncoder(tmp_path / "cut")


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("สินค้าแย่มาก!", 1),
        ("สินค้าแย่มากส่งช้า10วัน", 1),
        ("המוצר גרוע, לא מומלץ.", 1),
        ("배송이 แย่มาก", 0.5),
        ("배송이 늦어요! 10일 ㅠㅠ", 0),
        ("iPhone 15 배송 완료.", 0),
        (unicodedata.normalize("NFD", "배송 완료"), 0),
        ("👍👍 5 10 %", 0),
        ("", 0),
    ],
)
def test_words_that_it_cannot_read(encoder: SentenceEncoder, text: str, share: float) -> None:
    assert unread_words(encoder.tokenizer, [text])[0] == share


def test_eight_bits_say_what_four_do(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["환불은 언제 되나요?", "ㅋㅋㅋ 👍", "", "가나다 " * 300, "쓸 만한데 값이 조금 비싸요"]
    found = {}
    for engine in ("onnx-int8", "onnx-fp32"):
        monkeypatch.setattr(sentence_encoder, "suited_engine", lambda engine=engine: engine)
        found[engine] = SentenceEncoder(encoder.folder)
    eight, four = found.values()
    assert (eight(texts) * four(texts)).sum(axis=1).min() > 0.995
    assert eight.identity != four.identity
