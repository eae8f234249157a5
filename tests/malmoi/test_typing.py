"""A user's script is read by mypy and by pyright, which see the types of the package."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import pandas as pd

from malmoi import Classifier, InputError, Prediction, clean_text, cross_validate, evaluate
from malmoi.sklearn import MalmoiClassifier

frame = pd.read_csv("texts.csv")
result = cross_validate(
    frame, text="리뷰", label="유형", folds=5, settings={"training.epochs": 3}
)
scores: pd.DataFrame = result.scores
wrong: pd.DataFrame = result.mistakes(20)
classifier: Classifier = result.classifier
frame["label"] = classifier.predict(frame["리뷰"]).label
labels: list[str] = classifier.predict(text for text in ["좋아요"]).label
first: Prediction = classifier.predict([clean_text("좋아요")])[0]
print(first.label, first.confidence, classifier.explain("좋아요").words[0].weight)
classifier.save("my-model", overwrite=True)
other = Classifier.fit(frame, "리뷰", "유형", quick=True)
found = evaluate(Classifier.load("my-model"), frame, text="리뷰", label="유형")
print(found.confusion, other.labels, MalmoiClassifier(folds=3).fit(frame["리뷰"], frame["유형"]))
try:
    evaluate("my-model", frame)
except InputError as error:
    print(error.code, error.facts, error.place)
"""
WRONG = "\nnumber: int = first.label\ncross_validate(frame, fold=5)\n"


def checked(command: list[str], cwd: Path) -> tuple[int, str]:
    """What a checker says of a file."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_users_script_is_typed(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(SCRIPT, encoding="utf-8")
    wrong.write_text(SCRIPT + WRONG, encoding="utf-8")
    settings = {"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    # mypy with the options and the cache of the package's own check.
    for cwd, command, rules in (
        (ROOT, ["mypy"], ("assignment", "call-arg")),
        (tmp_path, ["basedpyright", f"--pythonpath={sys.executable}"], ("Assign", "CallIssue")),
    ):
        code, said = checked([*command, str(right)], cwd)
        assert code == 0, said
        code, said = checked([*command, str(wrong)], cwd)
        assert code == 1 and all(rule in said for rule in rules), said
