"""The pre-trained discriminator's view: word pieces in their places, the odd one out on top."""

from pathlib import Path

import pytest

from malmoi import InputError
from malmoi.inference.discriminator import Discriminator

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def released() -> Discriminator:
    return Discriminator.load(ROOT / "checkpoints" / "malmoi-small")


def test_pieces_stand_where_the_text_has_them(released: Discriminator) -> None:
    for text in (
        "이 영화   정말 재밌게 봤어요 ㅋㅋㅋㅋㅋㅋ",
        "오늘 점심은 <b>김치찌개</b>를 먹었습니다 👍🏻👍🏻👍🏻",
        "각\u1100\u1161\u11a8 뷁쀍 e\u0301",
        "[SEP] 는 글자다 [MASK]",
    ):
        pieces = released.out_of_place(text)
        assert pieces, text
        for piece in pieces:
            assert text[piece.start : piece.end] == piece.text
            assert piece.text.strip() == piece.text != "", text
            assert 0 <= piece.replaced <= 1, text
        starts = [piece.start for piece in pieces]
        assert starts == sorted(starts), text


def test_every_letter_of_a_plain_text_is_in_a_piece(released: Discriminator) -> None:
    text = "배송은 빨랐는데 향이 너무 세요"
    pieces = released.out_of_place(text)
    assert "".join(piece.text for piece in pieces) == text.replace(" ", "")


def test_a_word_put_in_by_chance_looks_more_out_of_place(released: Discriminator) -> None:
    sentences = (ROOT / "corpora" / "comments" / "videos.txt").read_text("utf-8").splitlines()
    ranks = []
    for sentence in [line for line in sentences if 5 <= len(line.split()) <= 12][:40]:
        words = sentence.split()
        place = len(words) // 2
        words[place] = "냉장고를"
        text = " ".join(words)
        start = len(" ".join(words[:place])) + 1
        pieces = released.out_of_place(text)
        inside = max(p.replaced for p in pieces if start <= p.start < start + len("냉장고를"))
        others = [p.replaced for p in pieces if not start <= p.start < start + len("냉장고를")]
        ranks.append(sum(other < inside for other in others) / len(others))
    # 0.5 is what chance would give.
    assert sum(ranks) / len(ranks) > 0.75


def test_any_text_is_read(released: Discriminator) -> None:
    for text in ("", "  ", "\u200b", "ㅋ" * 1_000_000, "재미있다 " * 200_000, "a\ud800b", "\x00"):
        pieces = released.out_of_place(text)
        assert len(pieces) <= 510, ascii(text[:20])
        assert bool(pieces) == any(character.isalnum() for character in text)


def test_a_run_and_a_small_model(encoder: Path) -> None:
    (run := Discriminator.load(encoder.parent)).out_of_place("내일 회의")
    assert run.out_of_place("내일 회의") == Discriminator.load(encoder).out_of_place("내일 회의")


def test_what_is_no_discriminator_is_refused(classifier_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a pre-trained discriminator"):
        Discriminator.load(classifier_directory)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no config\.json that names a class"):
        Discriminator.load(tmp_path / "empty")
    with pytest.raises(InputError, match="no model directory"):
        Discriminator.load(tmp_path / "missing")
    with pytest.raises(InputError, match="expected a text"):
        Discriminator.load(ROOT / "checkpoints" / "malmoi-small").out_of_place(None)  # type: ignore[arg-type]
