"""The documents name what is there: links, paths, recipes, commands; and their Python runs."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
READMES = [ROOT / "README.md", ROOT / "README.ko.md"]
DOCUMENTS = sorted(
    [*READMES, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")]
    + [*(ROOT / "checkpoints").glob("*/README.md"), *(ROOT / "corpora").glob("*/README.md")]
    + [*(ROOT / "lab").glob("**/*.md")]
)
PICTURE_BYTES = 300_000
_LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^()\s]+)\)")
_ROOMS = "malmoi|tokenizer|pretrain|finetune|app|lab|tests|docs|corpora|checkpoints"
_PATH = re.compile(rf"(?<![\w/.-])(?:{_ROOMS})/[\w./-]*\w\.(?:py|md|toml|json|csv|tsv|txt|png)\b")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(path: Path) -> str:
    """The text without its fenced blocks."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a file."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    kept = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {re.sub(r"\s", "-", heading) for heading in kept}


def broken(path: Path) -> list[str]:
    """Links of a document to files and headings that are not there."""
    found = []
    for link in _LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        missing = not target.exists() or (anchor and anchor not in anchors(target))
        if missing:
            found.append(link)
    return found


def test_links_lead_to_files_and_headings() -> None:
    found = {named(path): broken(path) for path in DOCUMENTS}
    assert not {name: links for name, links in found.items() if links}


def test_paths_that_are_named_exist() -> None:
    found = [
        (named(path), name)
        for path in DOCUMENTS
        for name in set(_PATH.findall(path.read_text(encoding="utf-8")))
    ]
    # NAME is the reader's to choose.
    assert not [each for each in found if "NAME" not in each[1] and not (ROOT / each[1]).exists()]


def test_modules_of_the_lab_that_are_named_exist_or_are_of_a_named_commit() -> None:
    """The log is of its day: its README names the commit."""
    pattern = re.compile(r"`(?:python\s-m\s)?(lab\.[\w.]+)[^`]*`(?:\sat\scommit\s\w{7}|\sthere)?")
    for path in DOCUMENTS:
        if ROOT / "lab" / "log" in path.parents:
            continue
        for found in pattern.finditer(path.read_text(encoding="utf-8")):
            module = ROOT / found[1].replace(".", "/")
            there = module.is_dir() or module.with_suffix(".py").is_file()
            assert there or not found[0].endswith("`"), f"{named(path)}: {found[0]}"


def test_documents_are_of_a_readable_size_and_name_no_folder_beside_the_repository() -> None:
    texts = {named(path): path.read_text(encoding="utf-8") for path in DOCUMENTS}
    assert not [name for name, text in texts.items() if len(text.splitlines()) >= 600]
    assert not [named(path) for path in DOCUMENTS if "../shared" in texts[named(path)]]


def test_the_index_leads_to_every_page() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "docs" / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for link in _LINK.findall(prose(path)):
            target = (path.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file():
                waiting.append(target)
    assert set((ROOT / "docs").glob("**/*.md")) <= seen


def test_the_site_describes_every_command_and_recipe_and_loads_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    """`mkdocs build` is strict: a link or heading that is not there ends it."""
    from malmoi.commands.registry import COMMANDS

    (ROOT / "runs" / "site-pages").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for language in ("", "ko"):
        reference = tmp_path / language / "reference"
        page = (reference / "commands" / "index.html").read_text(encoding="utf-8")
        assert {f'id="malmoi-{name}"' for name in COMMANDS.keys() - {"tokenizer"}} <= set(
            re.findall(r'id="malmoi-\w+"', page)
        )
        page = (reference / "recipes" / "index.html").read_text(encoding="utf-8")
        for recipe in (ROOT / "malmoi").glob("*/recipes/*.toml"):
            assert f"<td><code>{recipe.stem}</code></td>" in page
    loaded = re.compile(r'<(?:script|img|link rel="(?:stylesheet|preconnect)")[^>]*"https?:[^>]*>')
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 80
    for each in pages:
        assert not loaded.findall(each.read_text(encoding="utf-8")), each


def test_every_extra_that_a_document_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    named_extras = {name for text in texts for name in re.findall(r"'\.\[([\w,]+)\]'", text)}
    extras = {extra for each in named_extras for extra in each.split(",")}
    assert extras and extras <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("path", READMES, ids=named)
def test_a_readme_is_short_and_begins_with_the_three_commands(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    top = "\n".join(lines[:30])
    for command in ("python pretrain/run.py", "python finetune/kfold.py", "streamlit run app/main"):
        assert command in top


def test_pictures_are_small_and_used() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    pictures = sorted((ROOT / "docs" / "pictures").iterdir())
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size <= PICTURE_BYTES
        assert f"pictures/{picture.name}" in texts


def result(name: str) -> Any:
    return json.loads((ROOT / "lab" / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", READMES, ids=named)
def test_speeds_in_a_readme_are_those_measured(path: Path) -> None:
    text = " ".join(path.read_text(encoding="utf-8").split())
    ratios = result("pretraining.json")["median_ratio_to_plain_loop"].values()
    lowest, highest = round(min(ratios)), round(max(ratios))
    assert re.search(rf"\b{lowest}(?: to |~){highest}\D", text)
    ratios_of_kfold = result("kfold.json")["ratio_to_side_by_side"]
    for ratio in (ratios_of_kfold["trainer"], ratios_of_kfold["trainer-bf16"]):
        assert re.search(rf"\b{ratio:.1f}\D", text)


def test_the_hours_of_a_cluster_follow_from_the_speed_measured() -> None:
    page = (ROOT / "docs" / "how-to" / "cluster.md").read_text(encoding="utf-8")
    found = re.search(r"^([\d,]+) ÷ ([\d,]+) texts/s", page, re.MULTILINE)
    assert found
    texts, a_core = (int(number.replace(",", "")) for number in found.groups())
    speeds = result("prediction.json")["throughput"]
    assert a_core == speeds["onnx-int8 and the linear part"]["texts_per_second"] // 2
    assert f"{speeds['onnx-int8']['texts_per_second']:,} texts/s there" in page
    rows = re.findall(r"^\|.*\| (\d+) \| ([\d.]+)(?: \(.*\))? \| (\d+) \|", page, re.MULTILINE)
    assert len(rows) == 4
    for cores, hours, core_hours in rows:
        assert float(hours) == pytest.approx(texts / a_core / 3600 / int(cores), rel=0.02)
        assert float(core_hours) == pytest.approx(texts / a_core / 3600, abs=0.5)


def test_scores_are_those_of_the_cards() -> None:
    """Their numbers come from lab/benchmarks/results, which other tests assert."""
    page = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")
    card = "".join(
        (ROOT / "checkpoints" / name / "README.md").read_text(encoding="utf-8")
        for name in ("malmoi-small", "malmoi-medium")
    )
    encoder, _, classifiers = page.partition("## The classifiers")
    spreads = re.findall(r"\d\d\.\d\d ± \d\.\d\d", without_bold(encoder))
    assert len(spreads) >= 14
    assert not [each for each in spreads if each not in card]
    rows = re.findall(r"^\| (?!malmoi)[\w-]+ \| [\dM]* \|.*$", encoder, re.MULTILINE)
    assert len(rows) >= 5
    assert not [
        row for row in rows if row.replace("|  |", "| |") not in card.replace("|  |", "| |")
    ]
    for name in ("malmoi-medium-reviews", "malmoi-small-memos"):
        report = json.loads((ROOT / "checkpoints" / name / "report.json").read_text())
        assert f"{report['mean_f1']:.4f} ± {report['sd_f1']:.4f}" in classifiers


def without_bold(text: str) -> str:
    """The text without bold."""
    return text.replace("**", "")


def test_the_python_of_both_readmes_prints_what_they_show() -> None:
    pattern = re.compile(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
    found = [pattern.search(path.read_text(encoding="utf-8")) for path in READMES]
    assert found[0] is not None and found[1] is not None
    assert found[0].groups() == found[1].groups()
    code, expected = found[0].groups()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    shown = [line.split(maxsplit=2) for line in expected.splitlines()]
    printed = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert [(row[0], row[2]) for row in printed] == [(row[0], row[2]) for row in shown]
    # Number formats differ between machines, and with them the last digit of a probability.
    for ours, theirs in zip(printed, shown, strict=True):
        assert abs(int(ours[1].rstrip("%")) - int(theirs[1].rstrip("%"))) <= 3
