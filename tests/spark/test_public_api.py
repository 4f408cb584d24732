"""What `import headgate` shows: to dir(), help(), editors and type checkers."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
import typing
from dataclasses import fields

import pytest

import headgate
from headgate.core.options import CommonOptions, EncodeOptions, OptionValue
from headgate.spark import api

NAMES = [
    "decode", "decoder", "rows", "encode", "encoder", "dead_letters", "losses", "land",
    "table", "verify", "register", "session", "run",
]  # fmt: skip


def test_dir_and_help_show_every_function() -> None:
    assert set(NAMES) <= set(dir(headgate))
    text = pydoc.plain(pydoc.render_doc(headgate))
    for name in NAMES:
        assert f"    {name}(" in text
    assert "max_message_bytes: 'int | None' = None" in text


def test_names_that_are_shown_are_there_and_documented() -> None:
    assert sorted(headgate.__all__) == headgate.__all__
    for name in headgate.__all__:
        assert inspect.getdoc(getattr(headgate, name)), name
    with pytest.raises(AttributeError, match="has no attribute 'decod'"):
        _ = headgate.decod


@pytest.mark.parametrize(
    ("function", "options"), [(api.decode, CommonOptions), (api.encode, EncodeOptions)]
)
def test_options_that_all_formats_have_are_keywords(function: object, options: type) -> None:
    declared = typing.get_type_hints(options)
    hints = typing.get_type_hints(function)
    given = inspect.signature(function).parameters.values()
    keywords = {p.name: hints[p.name] for p in given if p.kind is p.KEYWORD_ONLY}

    assert {f.name: declared[f.name] | None for f in fields(options)} == keywords
    assert OptionValue == hints["options"]


def test_without_spark_the_line_to_type_is_in_the_error() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import headgate\n"
        "print([name for name in dir(headgate) if name in ('losses', 'decode')])\n"
        "help(headgate)\n"
        "try:\n"
        "    from headgate import decode\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    lines = done.stdout.splitlines()
    assert "['losses']" == lines[0], done.stderr
    assert lines[-1] == (
        "headgate.decode needs PySpark, which is not installed; type: pip install 'headgate[spark]'"
    )


def test_a_command_that_needs_spark_says_the_line_to_type() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None\n"
        "sys.argv = ['headgate', 'run', '--from', 'kafka://h/t', '--to', 'delta:///x']\n"
        "from headgate.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert 2 == done.returncode
    assert done.stderr.splitlines() == [
        "headgate: starting",
        "headgate: this command needs PySpark, which is not installed; "
        "type: pip install 'headgate[spark]'",
    ]
