"""Recipes and `--set`: what is given, by whom, and what a mistake is answered."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from malmoi.errors import InputError
from malmoi.messages import Flag, Phrase
from malmoi.settings import (
    flag_as_key,
    keys_by_flag,
    keys_of,
    read_assignments,
    read_given,
    read_recipe,
    read_sections,
)


@dataclass(frozen=True, kw_only=True)
class Heat:
    temperature: float = 1.0
    first: float | None = None
    sharing: Literal["none", "all"] | None = None
    kind: Literal["inverse", "gumbel"] = "inverse"


@dataclass(frozen=True, kw_only=True)
class Size:
    layers: int = 12
    shared: bool = False
    start: str = "random"
    place: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Schema:
    heat: Heat = Heat()
    size: Size = Size()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "paper.toml").write_text("[heat]\ntemperature = 1\n[size]\nlayers = 12\n")
    (tmp_path / "warm.toml").write_text('extends = "paper"\n[heat]\ntemperature = 1.5\n')
    return tmp_path


def test_a_value_given_counts_as_given_even_when_it_is_the_default(folder: Path) -> None:
    given = read_given(None, Schema, read_recipe("paper", folder), {}, "paper")
    assert given.keys == Schema()
    assert given.chosen == {"heat.temperature", "size.layers"} and not given.by_hand


def test_what_is_set_by_hand_holds_before_a_recipe_and_that_before_what_it_extends(
    folder: Path,
) -> None:
    assignments = read_assignments(["size.layers=3", "heat.first=2", "size.start=a=b"])
    given = read_given(None, Schema, read_recipe("warm", folder), assignments, "warm")
    assert given.keys.heat == Heat(temperature=1.5, first=2.0)
    assert given.keys.size == Size(layers=3, start="a=b")
    assert given.by_hand == {"size.layers", "heat.first", "size.start"}


def test_a_recipe_may_be_a_file_of_ones_own(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own recipe.toml"
    own.write_text('extends = "warm"\n[size]\nplace = "somewhere/else"\nshared = true\n')
    given = read_given(None, Schema, read_recipe(str(own), folder), {}, str(own))
    assert given.keys.size == Size(place=Path("somewhere/else"), shared=True)
    assert given.keys.heat.temperature == 1.5


def test_an_open_value_is_left_open_again() -> None:
    given = read_given(
        None, Schema, {"heat.first": 2.0}, read_assignments(["heat.first=none"]), "it"
    )
    assert given.keys.heat.first is None and "heat.first" in given.chosen
    # A choice of that name is a choice.
    for word, expected in (("none", "none"), ("auto", None)):
        given = read_given(None, Schema, {}, read_assignments([f"heat.sharing={word}"]), "it")
        assert given.keys.heat.sharing == expected


def test_a_mistake_is_answered_with_the_nearest_name_or_what_was_expected() -> None:
    for assignment, said in (
        ("heat.temprature=1", "heat.temperature"),
        ("temperature=1", "section.key=value"),
        ("objective.temperature=1", "heat.temperature"),
        ("size.layers=2.5", "whole number, found 2.5"),
        ("size.layers=true", "whole number, found True"),
        ("size.shared=1", "true or false, found 1"),
        ("heat.kind=gumble", "gumbel"),
        ("heat.temperature=warm", "number, found 'warm'"),
        ("heat", "section.key=value"),
    ):
        with pytest.raises(InputError, match=said):
            read_given(None, Schema, {}, read_assignments([assignment]), "it")
    with pytest.raises(InputError, match=r"heat\.first"):
        read_assignments(["heat.first=1", "heat.first=2"])


def test_a_recipe_that_cannot_be_read_is_named(folder: Path) -> None:
    for content, said in (
        ("[heat\n", "circle"),
        ("temperature = 1\n", "temperature"),
        ('extends = "circle"\n', "circle"),
        ('extends = "papr"\n', "paper"),
    ):
        (folder / "circle.toml").write_text(content)
        with pytest.raises(InputError, match=said):
            read_recipe("circle", folder)


def test_every_key_is_known_with_its_default() -> None:
    assert keys_of(Schema)["size.layers"].default == 12 and len(keys_of(Schema)) == 8


def test_a_key_may_be_tried_as_a_flag_by_each_of_its_names() -> None:
    names = keys_by_flag(Schema, {"hot": "heat.kind"})
    assert names["temperature"] == names["heat_temperature"] == "heat.temperature"
    assert names["hot"] == names["kind"] == "heat.kind"


@dataclass(frozen=True, kw_only=True)
class Same:
    heat: Heat = Heat()
    other: Heat = Heat()


def test_a_name_in_two_sections_is_no_name_of_either() -> None:
    names = keys_by_flag(Same, {})
    assert "temperature" not in names and names["other_temperature"] == "other.temperature"


def test_sections_are_read_as_they_were_written() -> None:
    written = Schema(heat=Heat(first=2.0), size=Size(start="none", layers=3))
    values = json.loads(json.dumps(asdict(written)))
    assert read_sections(Schema, values, "it") == written


def test_damaged_sections_are_named() -> None:
    changes: tuple[tuple[Callable[[Any], Any], str], ...] = (
        (lambda v: v.pop("size"), "size with layers, .* found none"),
        (lambda v: v["size"].pop("layers"), "size with layers, .* found shared, start"),
        (lambda v: v["heat"].update(more=1), "heat with temperature, .*more"),
        (lambda v: v["heat"].update(temperature="hot"), "it: heat.temperature: .* number"),
        (lambda v: v["heat"].update(temperature=None), "it: heat.temperature: .* number"),
        (lambda v: v["heat"].update(kind="warm"), "it: heat.kind: .* inverse, gumbel"),
    )
    for change, said in changes:
        values = asdict(Schema())
        change(values)
        with pytest.raises(InputError, match=said):
            read_sections(Schema, values, "it")
    with pytest.raises(InputError, match="heat"):
        read_sections(Schema, [], "it")


def test_an_error_of_several_commands_names_the_keys_of_one() -> None:
    for flag, expected in (
        (Flag("--first"), "--set heat.first=…"),
        (Flag("--kind", "gumbel"), "--set heat.kind=gumbel"),
        (Flag("--shared"), "--set size.shared=true"),
        (Flag("--layers"), "--layers"),
        (Flag("--head", "6379"), "--head 6379"),
    ):
        error = InputError("{why}", place="a.csv", why=Phrase("({flag} does)", flag=flag))
        assert str(error) == f"a.csv: ({flag} does)"
        spelled = error.spelled(lambda one: flag_as_key(one, Schema, {"--layers", "--set"}))
        assert str(spelled) == f"a.csv: ({expected} does)"
