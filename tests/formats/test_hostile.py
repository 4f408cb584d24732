"""The contract of every codec under bad input: events or one `invalid` event, in bounds."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import FOLDERS, content, settings_of
from effort import one_in
from hostile_messages import assert_sound
from paths import DOCS

from headgate.codec.decoder import decode_message, decoder
from headgate.core.errors import INTERNAL_ERROR
from headgate.core.limits import KEPT_BYTES, MAX_MESSAGE_BYTES
from headgate.formats import MODULES, load

FORMATS = list(MODULES)
DECODERS = {name: decoder(name) for name in [*FORMATS, "auto"]}
GOLDEN = [f for f in FOLDERS if content(f, "value") and len(content(f, "value") or b"") < 5_000]


def golden(format: str) -> list[Path]:
    """The cases of a format."""
    return [folder for folder in GOLDEN if folder.parent.name == format]


def format_of(folder: Path) -> str:
    return str(settings_of(folder).get("format", folder.parent.name)).partition(":")[0]


def decode(
    name: str, value: bytes | None, key: bytes | None = None
) -> list[tuple[str, str | None]]:
    """Kind and error code of each event; an exception here would fail a Spark task."""
    found = decode_message(DECODERS[name], key, value, "a.b.c", MAX_MESSAGE_BYTES)
    assert_sound(found)
    for event in found:
        if event.kind == "invalid":
            large = event.error is not None and event.error[0] == "too-large"
            assert event.raw == (value[:KEPT_BYTES] if value and large else value)
            assert key == event.raw_key
            assert event.error
            assert event.error[1].count("; ") >= 1  # what is wrong; what to try
            assert event.error[0] != INTERNAL_ERROR  # no defect passes for bad input
    return [(e.kind, e.error[0] if e.error else None) for e in found]


@pytest.mark.parametrize("name", [*FORMATS, "auto"])
@pytest.mark.parametrize(
    ("value", "codes"),
    [
        (b"", {"empty-value"}),
        (b"  \n", {"empty-value"}),
        (b"[]", {"wrong-type"}),
        (b'"x"', {"wrong-type"}),
        (b"0", {"wrong-type"}),
        (b"{}", {"missing-member", "unrecognised", "unknown-type", "wrong-type"}),
        (b'{"a":1} x', {"malformed-json", "missing-member"}),
        (b"{'a':1}", {"malformed-json"}),
        (b'{"a":NaN}', {"malformed-json"}),
        (b'{"type":"\\ud800"}', {"malformed-json"}),
        (b'{"type":"\xff"}', {"invalid-utf8"}),
        (b'{"type":"\xc0\xaf"}', {"invalid-utf8"}),
        (b"\xef\xbb\xbf{}", {"malformed-json"}),
        ('{"type":"x"}'.encode("utf-16"), {"malformed-json", "invalid-utf8"}),
        (b'{"a":01}', {"malformed-json"}),
        (b'{"a":.5}', {"malformed-json"}),
    ],
    ids=lambda v: repr(sorted(v) if isinstance(v, set) else v)[:30],
)
def test_bad_json_is_one_invalid_event(name: str, value: bytes, codes: set[str]) -> None:
    if name == "open-protocol":
        codes = {"malformed-frame"}

    ((kind, code),) = decode(name, value)

    assert "invalid" == kind
    assert code in codes


@pytest.mark.parametrize("name", [*FORMATS, "auto"])
@pytest.mark.parametrize(
    "opening", [b"[", b'{"a":', b'[{"a":', b'{"data":[', b'{"payload":{"after":']
)
@pytest.mark.parametrize("depth", [5_000, 1_000_000])
def test_deep_nesting_is_refused(name: str, opening: bytes, depth: int) -> None:
    closing = bytes({91: 93, 123: 125}[c] for c in opening[::-1] if c in b"[{")
    ((kind, _),) = decode(name, opening * depth + b"1" + closing * depth)

    assert "invalid" == kind


def test_depth_inside_a_string_is_just_text() -> None:
    row = {"doc": "[" * 100_000}
    message = json.dumps({"type": "INSERT", "isDdl": False, "data": [row], "id": 1}).encode()

    assert [("row", None)] == decode("canal-json", message)


EVERY_BYTE = {
    "canal-json": {"canal-update-leaking-columns", "oms-doc-update", "ticdc-only-handle-key"},
    "debezium": {"values-propagated", "v2.7-update", "schema-change-create"},
    "maxwell": {"insert-every-member", "json-update", "ddl-table-create", "oms-doc-update"},
    "oms-default": {"insert"},
    "dataworks": {"insert"},
    "shareplex": {"insert"},
}
"""Cases that are cut at every byte; the others are at a hundred and fifty places."""
CUT_CODES = {"malformed-json", "invalid-utf8", "empty-value"}


@pytest.mark.parametrize("name", one_in(3, FORMATS))
def test_a_message_cut_anywhere_is_one_invalid_event(name: str) -> None:
    every = EVERY_BYTE.get(name, set())
    chosen = [f for f in FOLDERS if f.parent.name == name and (f in GOLDEN or f.name in every)]
    assert every <= {folder.name for folder in chosen}
    for folder in chosen:
        value, key = content(folder, "value") or b"", content(folder, "key")
        whole = len(value.rstrip())
        step = 1 if folder.name in every else max(1, whole // 150)
        for end in range(1, whole, step):
            ((kind, code),) = decode(format_of(folder), value[:end], key)
            assert "invalid" == kind, (folder.name, end)
            assert code in CUT_CODES or folder.name not in every, (folder.name, end)


@pytest.mark.parametrize("name", FORMATS)
def test_trailing_bytes_are_refused(name: str) -> None:
    for folder in golden(name):
        value, key = content(folder, "value") or b"", content(folder, "key")
        kinds = {kind for kind, _ in decode(format_of(folder), value + b" {}", key)}

        assert {"invalid"} == kinds, folder.name


ANY_OBJECT = "debezium-smt"
"""Its row is any JSON object, so its users name it; and it passes Debezium's others through."""


@pytest.mark.parametrize("reader", [name for name in FORMATS if name != ANY_OBJECT])
def test_no_format_takes_another_formats_rows_as_its_own(reader: str) -> None:
    others = {name for name in FORMATS if name != reader}
    if reader == "debezium":
        others.remove(ANY_OBJECT)
    for folder in GOLDEN:
        if folder.parent.name not in others or folder.name.startswith("refuse-"):
            continue  # such a case is another format's message on purpose
        found = decode(reader, content(folder, "value"), content(folder, "key"))

        assert not {kind for kind, _ in found} & {"row", "ddl", "watermark"}, folder


@pytest.mark.parametrize("name", [*FORMATS, "auto"])
@pytest.mark.parametrize(
    "number",
    [b"9" * 5_000, b"1e3000000", b"1e-3000000", b"-" + b"9" * 400, b"1" + b"0" * 1_000_000, b"-0"],
    ids=["5000 digits", "1e3000000", "1e-3000000", "-400 digits", "a million digits", "-0"],
)
def test_a_number_never_costs_more_than_its_size(name: str, number: bytes) -> None:
    started = time.process_time()
    for frame in (
        b'{"type":"INSERT","isDdl":false,"mysqlType":{"a":"decimal"},"data":[{"a":%s}]}',
        b'{"type":"insert","database":"d","table":"t","ts":%s,"data":{"a":%s}}',
        b'{"op":"c","source":{"ts_ms":%s},"after":{"a":%s}}',
        b'{"recordType":"INSERT","allMetaData":{},"postStruct":{"a":%s}}',
    ):
        decode(name, frame.replace(b"%s", number))

    assert time.process_time() - started < 2


@pytest.mark.parametrize("name", [f for f in FORMATS if f != "debezium-smt"])
def test_names_and_values_of_a_message_never_reach_its_error(name: str) -> None:
    secret = "hunter2" * 3
    for value in (
        json.dumps({"type": secret, "op": secret, "recordType": secret}).encode()[:-1],
        json.dumps({"type": 5, "data": secret, "op": {secret: 1}, "meta": secret}).encode(),
    ):
        (event,) = decode_message(DECODERS[name], None, value, None, MAX_MESSAGE_BYTES)
        assert event.error
        assert secret not in event.error[1]


BUDGET = """
import resource, sys
from headgate.codec.decoder import decode_message, decoder
value = open(sys.argv[1], "rb").read()
decode = decoder("auto")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = decode_message(decode, None, value, None, 64 * 1024 * 1024)
print(len(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    ["one value", "many rows", "many columns", "nested", "digits"],
)
def test_memory_stays_within_a_small_multiple_of_the_message(shape: str, tmp_path: Path) -> None:
    size = 15_000_000
    data = {
        "one value": b'[{"a":"%s"}]' % (b"x" * size),
        "many rows": b"[%s]" % b",".join([b'{"id":"123456789","v":"abcdefgh"}'] * (size // 33)),
        "many columns": b"[{%s}]" % b",".join(b'"c%d":"v"' % i for i in range(size // 14)),
        "nested": b'[{"a":%s1%s}]' % (b"[" * (size // 2), b"]" * (size // 2)),
        "digits": b'[{"a":%s}]' % (b"7" * size),
    }[shape]
    path = tmp_path / "message"
    path.write_bytes(b'{"type":"INSERT","isDdl":false,"id":1,"data":%s}' % data)
    done = subprocess.run(
        [sys.executable, "-c", BUDGET, str(path)], capture_output=True, timeout=60, check=True
    )
    events, kilobytes = map(int, done.stdout.split())

    assert events >= 1
    assert kilobytes * 1024 < 30 * size


def test_every_codec_is_plain_python() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from headgate.formats import MODULES, load\n"
        "[load(name) for name in MODULES]\n"
        "import headgate.codec.encoder, headgate.arrow.records, headgate.cli.main"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_format_has_a_page_cases_and_dialects() -> None:
    docs = DOCS / "formats"
    for name in MODULES:
        assert (docs / f"{name}.md").exists()
        assert any(f.parent.name == name for f in FOLDERS)
        assert load(name).dialects
