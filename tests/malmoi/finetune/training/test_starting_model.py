"""Finished classifiers to begin with: a new head always, or the old one on texts it has not met."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from lab.release.packing import pack_classifier
from malmoi.errors import InputError
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.inference.learnt_texts import LEARNT, read_learnt, text_keys, write_learnt
from tests.malmoi.finetune.conftest import LABELS, WriteCsv, separable
from tests.malmoi.finetune.test_kfold import LEARN, QUICK, Run, average, kfold
from tests.malmoi.finetune.training.test_encoders import same_encoder

__all__ = ["kfold"]  # a fixture

MIXED = [LABELS[2], LABELS[0], LABELS[1]]


def head(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    return {
        name: value for name, value in model.state_dict().items() if name.startswith("classifier.")
    }


def test_the_head_is_new_whatever_the_labels(classifier_directory: Path) -> None:
    for labels in (LABELS, MIXED, LABELS[:2]):
        old = load_for_classification(classifier_directory, LABELS, keep_head=True)
        one = load_for_classification(classifier_directory, labels, seed=5)
        again = load_for_classification(classifier_directory, labels, seed=5)
        other = load_for_classification(classifier_directory, labels, seed=6)
        for name, value in head(one).items():
            assert torch.equal(value, head(again)[name])
            if value.ndim > 1:
                assert not torch.equal(value, head(other)[name])
                assert value.shape != head(old)[name].shape or not torch.equal(
                    value, head(old)[name]
                )
        assert same_encoder(one, old)


def test_a_kept_head_knows_its_labels_by_name(classifier_directory: Path) -> None:
    for labels in (LABELS, MIXED, MIXED[:2]):
        ids = torch.tensor([[2, 7, 8, 9, 3], [2, 20, 21, 5, 3]])
        with torch.inference_mode():
            whole = load_for_classification(classifier_directory, LABELS, keep_head=True).eval()
            found = load_for_classification(classifier_directory, labels, keep_head=True).eval()
            before, after = whole(input_ids=ids).logits, found(input_ids=ids).logits
        assert torch.equal(after, before[:, [LABELS.index(label) for label in labels]])
        assert found.config.id2label == dict(enumerate(labels))
        assert found.config.num_labels == len(labels)


def test_a_kept_head_needs_its_labels_and_its_task(
    classifier_directory: Path, encoder: Path
) -> None:
    with pytest.raises(
        InputError, match=r"has the labels 꿈, 일기, 일정, the data also 메모; give"
    ):
        load_for_classification(classifier_directory, [*LABELS, "메모"], keep_head=True)
    with pytest.raises(InputError, match=r"trained for another task"):
        model = load_for_classification(classifier_directory, LABELS, keep_head=True)
        model.save_pretrained(classifier_directory.with_name("single"))
        load_for_classification(
            classifier_directory.with_name("single"), LABELS, keep_head=True, task="multi"
        )


@pytest.fixture
def trained(kfold: Run, write_csv: WriteCsv) -> Path:
    """A classifier that has learnt every third of the texts."""
    code, _, errors = kfold(
        f"--data={write_csv(separable()[::3])}", "--output=first", "--folds=2", *LEARN
    )
    assert (code, errors) == (0, "")
    return Path("first/model").resolve()


def test_k_fold_begins_with_the_encoder_of_a_classifier(
    kfold: Run, write_csv: WriteCsv, trained: Path
) -> None:
    data = write_csv(separable()[::3])
    results = []
    for labels in (LABELS, MIXED):
        flags = [f"--data={data}", "--folds=2", *QUICK, "--learning-rate=1e-6"]
        code, output, errors = kfold(
            *flags, f"--output={labels[0]}", labels=",".join(labels), model=str(trained)
        )
        assert (code, errors) == (0, "")
        assert "is a finished classifier: its encoder is taken and its head left out" in output
        assert "warning: its encoder has learnt 21 of these 21 texts" in output
        results.append(average(output))
    assert max(results) < 0.9  # its own head knows them all
    report = json.loads(Path(LABELS[0], "report.json").read_text(encoding="utf-8"))
    assert report["plan"]["encoder"]["head"] == "new"


def test_going_on_from_a_classifier(kfold: Run, write_csv: WriteCsv, trained: Path) -> None:
    data = write_csv(separable())
    flags = [
        f"--data={data}",
        f"--set=start.continue_from={trained}",
        "--folds=2",
        "--output=second",
    ]
    flags += [*QUICK, "--learning-rate=1e-6"]  # too little to learn anything anew
    code, output, errors = kfold(*flags, labels=",".join(MIXED), model=None)
    assert (code, errors) == (0, "")
    assert f"going on from the classifier {trained}, with its head" in output
    assert "left out 21 texts that it has learnt" in output
    assert average(output) > 0.6
    report = json.loads(Path("second/report.json").read_text(encoding="utf-8"))
    assert (report["plan"]["encoder"]["head"], report["data"]["texts"]) == ("kept", 42)
    assert report["data"]["left_out"]["learnt"] == 21
    # What goes on from this one knows what both have learnt.
    learnt = read_learnt(Path("second/model"))
    assert learnt is not None
    assert set(learnt.tolist()) == set(text_keys([text for text, _ in separable()]).tolist())
    code, _, errors = kfold(
        *flags[:1], "--set=start.continue_from=second/model", *QUICK, model=None
    )
    assert code == 2
    assert "second/model has learnt 63 of the 63 texts of" in errors
    assert "begin with an encoder by --model" in errors


def test_a_classifier_that_does_not_say_what_it_has_learnt(
    kfold: Run, write_csv: WriteCsv, classifier_directory: Path
) -> None:
    flags = [f"--data={write_csv(separable()[::3])}", "--folds=2", *QUICK]
    for number, more in enumerate(([f"--set=start.continue_from={classifier_directory}"], [])):
        model = None if more else str(classifier_directory)
        code, output, _ = kfold(*flags, *more, f"--output={number}", model=model)
        assert code == 0
        assert f"warning: {classifier_directory} does not list the texts that it has" in output


def test_bad_beginnings(
    kfold: Run, write_csv: WriteCsv, encoder: Path, classifier_directory: Path
) -> None:
    for flags, message in (
        (["--model=ENCODER"], "start.continue_from names what to begin with, and so does --model"),
        (["--set=start.random_weights=true"], "and so does start.random_weights"),
        (["--set=start.continue_from=ENCODER"], "is an encoder; give it as --model"),
        (["--set=start.continue_from=no/such/where"], "no model directory no/such/where"),
    ):
        given = [flag.replace("ENCODER", str(encoder)) for flag in flags]
        if not flags[0].startswith("--set=start.continue"):
            given.append(f"--set=start.continue_from={classifier_directory}")
        code, _, errors = kfold(f"--data={write_csv(separable())}", *given, model=None)
        assert code == 2 and message in errors and errors.count("\n") == 1


def test_the_list_of_learnt_texts(tmp_path: Path) -> None:
    assert read_learnt(tmp_path) is None and read_learnt("someone/on-the-hub") is None
    write_learnt(tmp_path, text_keys(["가", "나"]), text_keys(["다", "가"]))
    found = read_learnt(tmp_path)
    assert found is not None
    assert np.isin(text_keys(["가", "나", "다", "라"]), found).tolist() == [True] * 3 + [False]
    assert not np.isin(text_keys(["가"], ["나"]), found).any()
    same = text_keys(["좋아요!! ㅋㅋㅋㅋ", "좋아요ㅋㅋ", "좋아요 ㅋ…", "ＡＢ 1", "ab1"])
    assert same[0] == same[1] == same[2] and same[3] == same[4]
    other = text_keys(["1000원", "100원", "★", "★★", "싫어요"])
    assert len(set(other.tolist())) == 5
    whole = (tmp_path / LEARNT).read_bytes()
    for broken in (b"", whole[:-3], whole[:20], b"x" * 200):
        (tmp_path / LEARNT).write_bytes(broken)
        with pytest.raises(InputError, match=re.escape(f"{tmp_path / LEARNT}: expected")):
            read_learnt(tmp_path)


def test_the_list_is_released_with_the_classifier(trained: Path, tmp_path: Path) -> None:
    pack_classifier(trained.parent, tmp_path / "packed")
    packed, whole = read_learnt(tmp_path / "packed"), read_learnt(trained)
    assert packed is not None and np.array_equal(packed, whole)
    shutil.rmtree(tmp_path / "packed")


def test_released_classifiers_list_what_they_have_learnt() -> None:
    released = Path(__file__).parents[4] / "checkpoints"
    examples = read_examples(released.parent / "corpora" / "memos")
    learnt = read_learnt(released / "malmoi-small-memos")
    assert learnt is not None and np.isin(text_keys(examples.texts), learnt).mean() > 0.9
    written = read_examples(released.parent / "corpora" / "reviews")
    learnt = read_learnt(released / "malmoi-medium-reviews")
    assert learnt is not None and np.isin(text_keys(written.texts), learnt).mean() > 0.9
    report = json.loads((released / "malmoi-medium-reviews" / "report.json").read_text("utf-8"))
    rows = report["data"]["texts"] + report["ratings_first"]["texts"]
    assert 0.99 * rows < len(learnt) <= rows  # people rate one text differently
