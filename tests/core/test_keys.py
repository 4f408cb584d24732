"""A declared key tells its name, its default, what reads it, and what its section looks like."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from headgate.core.errors import UsageError
from headgate.core.keys import key, keys, one_of
from headgate.core.scalars import duration, truth, whole_number


@dataclass(frozen=True)
class Part:
    names: tuple[str, ...] | None = key("some names", None, name="name")


@dataclass(frozen=True)
class Whole:
    folder: str = key("where it is", path=True, missing="there is no folder; add folder: DIR")
    pause: float = key("how long it waits", "5s", read=duration, aliases={"wait": str})
    most: int | None = key("the limit", None, default_text="no limit")
    quiet: bool = key("say nothing", False)
    patterns: tuple[str, ...] = key("what is taken", ("*", "?"))
    part: Part = key("a part", Part)
    parts: tuple[Part, ...] = key("more of them", ())
    settings: dict[str, str] = key("whatever", dict, name="spark", open=True, secret=True)


def test_defaults_are_declared_as_they_are_written() -> None:
    whole = Whole("d")

    assert (5.0, None, False, Part(), {}) == (
        whole.pause,
        whole.most,
        whole.quiet,
        whole.part,
        whole.settings,
    )
    assert ["required", "`5s`", "no limit", "`false`", "`*` `?`", "none", "none", "none"] == [
        each.default for each in keys(Whole).values()
    ]


def test_a_key_is_read_as_its_type_says() -> None:
    declared = keys(Whole)

    assert [str, duration, whole_number, truth, str, Part, Part, dict[str, str]] == [
        each.read for each in declared.values()
    ]
    assert ["patterns", "parts"] == [each.name for each in declared.values() if each.many]
    assert keys(Part)["name"].many


def test_names_and_aliases() -> None:
    declared = keys(Whole)

    assert {"pause": duration, "wait": str} == declared["pause"].names
    assert "settings" == declared["spark"].attribute
    assert declared["spark"].open
    assert declared["folder"].path


def test_a_secret_is_not_shown() -> None:
    assert "hidden" not in repr(Whole("d", settings={"spark.x": "hidden"}))


def test_one_of_several_words() -> None:
    read = one_of("operation", ("create", "create_index"))

    assert "create_index" == read("create-index")
    with pytest.raises(UsageError, match=r"unknown operation 'creat'; did you mean 'create'\?"):
        read("creat")
