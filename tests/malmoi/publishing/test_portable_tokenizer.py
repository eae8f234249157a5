"""The tokenizer of an exported folder: the ids of the model's own, from texts as they are."""

import json
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers

from malmoi.publishing.portable_tokenizer import portable_tokenizer
from malmoi.text.cleaning.cleaner import clean_batch
from tests.malmoi.publishing.conftest import MODULES, RELEASED


@pytest.fixture(scope="module")
def own() -> str:
    return (RELEASED / "tokenizer.json").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def portable(own: str) -> str:
    return portable_tokenizer(own)


def ids(serialized: str, texts: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_str(serialized)
    tokenizer.encode_special_tokens = True
    return [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]


def test_the_sample_comments_have_the_same_ids(
    own: str, portable: str, comments: list[str]
) -> None:
    typed = [line.replace("ㅋㅋ", "ㅋㅋㅋㅋㅋ").replace(". ", "... <br>") for line in comments]
    clean = clean_batch(typed).texts
    assert ids(portable, typed) == ids(own, clean) == ids(portable, clean)


def test_every_syllable_falls_apart_as_before(own: str, portable: str) -> None:
    syllables = [chr(code) for code in range(0xAC00, 0xD7A4)]
    texts = [
        f"{first}{second} {first}" for first, second in zip(syllables, syllables[::-1], strict=True)
    ]
    assert ids(portable, texts) == ids(own, texts)
    assert sum(len(row) > 4 for row in ids(own, syllables)) > 9000


def test_no_table_is_left_that_javascript_takes_for_nfkc(own: str, portable: str) -> None:
    assert '"Precompiled"' in own and '"Precompiled"' not in portable


def test_javascript_makes_the_same_ids(
    own: str, portable: str, comments: list[str], browser_library: Path, tmp_path: Path
) -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("no node on this machine")
    texts = [*comments, "쀍 핰 넼 ㅋㅋㅋㅋㅋ ㅠㅠㅠ 👍🏻👍🏻👍🏻 <br>&lt;", "", "e\u0301 ★★★"]
    (tmp_path / "tokenizer.json").write_text(portable, encoding="utf-8")
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    library = (MODULES / "@huggingface" / "tokenizers" / "dist" / "tokenizers.mjs").resolve()
    (tmp_path / "ids.mjs").write_text(
        f"""import {{ Tokenizer }} from {json.dumps(library.as_uri())};
import {{ readFileSync }} from "node:fs";
const read = (name) => JSON.parse(readFileSync(name, "utf-8"));
const tokenizer = new Tokenizer(read("tokenizer.json"), {{}});
console.log(JSON.stringify(read("texts.json").map((text) => tokenizer.encode(text).ids)));
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [node, "ids.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == ids(own, clean_batch(texts).texts)


def test_tables_and_rules_of_others_stay() -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    rules = json.loads(portable_tokenizer(tokenizer.to_str()))["normalizer"]["normalizers"]
    assert [rule["type"] for rule in rules[-2:]] == ["NFKC", "Lowercase"]

    # As sentencepiece's own: other letters for thousands.
    changes = {
        chr(code): unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFF5F)
    }
    from sentencepiece import SentencePieceNormalizer, sentencepiece_model_pb2

    spec = sentencepiece_model_pb2.NormalizerSpec.FromString(
        SentencePieceNormalizer(norm_map=sorted(changes.items())).serialized_normalizer_spec()
    )
    tokenizer.normalizer = normalizers.Precompiled(spec.precompiled_charsmap)
    assert '"Precompiled"' in portable_tokenizer(tokenizer.to_str())


def test_a_tokenizer_without_rules_gets_those_of_cleaning() -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "좋아요": 1}, unk_token="[UNK]"))
    made = Tokenizer.from_str(portable_tokenizer(tokenizer.to_str()))
    assert made.encode(" 좋아요<br>\u200b ").ids == [1]
