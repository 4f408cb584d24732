"""Frames that lie, values that are not what they claim, and Go's way to quote bytes."""

from __future__ import annotations

import json
import time
import unicodedata
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import CASES

from headgate.codec.decoder import decoder
from headgate.core.errors import DecodeError
from headgate.core.event import Event
from headgate.formats import load
from headgate.formats.base import Sniffed

OWN_CASES = CASES / "open-protocol"
decode = decoder("open-protocol")

VERSION = (1).to_bytes(8, "big")
ROW_KEY = b'{"ts":415508878783938562,"scm":"test","tbl":"t1","t":1}'
ROW = b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1}}}'
RESOLVED_KEY = b'{"ts":415508878783938562,"t":3}'


def frame(body: bytes, length: int | None = None) -> bytes:
    return (len(body) if length is None else length).to_bytes(8, "big") + body


def key(*bodies: bytes, version: int = 1) -> bytes:
    return version.to_bytes(8, "big") + b"".join(map(frame, bodies))


def one(value: bytes, event_key: bytes = ROW_KEY, **options: Any) -> Event:
    [event] = decoder("open-protocol", **options)(key(event_key), frame(value), None)
    return event


def code_of(run: Callable[[], Any]) -> str:
    with pytest.raises(DecodeError) as caught:
        run()
    return caught.value.code


def column(value: str, type_: int, flags: int) -> bytes:
    return json.dumps({"u": {"c": {"t": type_, "f": flags, "v": value}}}).encode()


@given(st.lists(st.text(max_size=40), min_size=1, max_size=20))
def test_the_bodies_of_frames_come_in_order(texts: list[str]) -> None:
    bodies = [column(text, 15, 64) for text in texts]

    events = decode(key(*[ROW_KEY] * len(bodies)), b"".join(map(frame, bodies)), None)

    assert [{"c": text} for text in texts] == [event.after for event in events]


class TestHostileFrames:
    @pytest.mark.parametrize("size", range(8))
    def test_key_without_room_for_a_version(self, size: int) -> None:
        short = VERSION[:size]

        assert code_of(lambda: decode(short, frame(ROW), None)) == "malformed-frame"

    def test_null_key(self) -> None:
        assert code_of(lambda: decode(None, frame(ROW), None)) == "malformed-frame"

    @pytest.mark.parametrize("version", [0, 2, 256, 2**63, 2**64 - 1])
    def test_other_version_is_named(self, version: int) -> None:
        with pytest.raises(DecodeError, match="version is not 1") as caught:
            decode(key(ROW_KEY, version=version), frame(ROW), None)

        assert caught.value.code == "malformed-frame"

    def test_bare_json_key(self) -> None:
        with pytest.raises(DecodeError, match="bare JSON"):
            decode(ROW_KEY, ROW, None)

    lengths = pytest.mark.parametrize(
        "delta_or_length", [0, -1, +1, 2**31, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1]
    )

    @lengths
    def test_lying_key_length(self, delta_or_length: int) -> None:
        length = lie(ROW_KEY, delta_or_length)
        lying = VERSION + frame(ROW_KEY, length)

        assert code_of(lambda: decode(lying, frame(ROW), None)) == "malformed-frame"

    @lengths
    def test_lying_value_length(self, delta_or_length: int) -> None:
        lying = frame(ROW, lie(ROW, delta_or_length))

        assert code_of(lambda: decode(key(ROW_KEY), lying, None)) == "malformed-frame"

    def test_lengths_that_wrap_around(self) -> None:
        lying = frame(ROW) + frame(b"", 2**64 - 8 - len(ROW))

        assert code_of(lambda: decode(key(ROW_KEY, ROW_KEY), lying, None)) == "malformed-frame"

    @pytest.mark.parametrize(("keys", "bodies"), [(2, 1), (1, 2), (3, 1), (0, 1)])
    def test_unpaired_frames(self, keys: int, bodies: int) -> None:
        assert (
            code_of(lambda: decode(key(*[ROW_KEY] * keys), frame(ROW) * bodies, None))
            == "malformed-frame"
        )

    def test_empty_event_key(self) -> None:
        assert code_of(lambda: decode(key(b""), frame(ROW), None)) == "malformed-frame"

    @pytest.mark.parametrize("value", [b"", None])
    def test_row_without_value(self, value: bytes | None) -> None:
        assert code_of(lambda: decode(key(ROW_KEY), value, None)) == "malformed-frame"

    def test_row_with_empty_body(self) -> None:
        assert code_of(lambda: one(b"")) == "empty-value"

    @pytest.mark.parametrize("value", [bytes(8_000_000), b"", None, frame(ROW)])
    def test_a_million_empty_frames_are_refused_at_once(self, value: bytes | None) -> None:
        start = time.perf_counter()

        assert code_of(lambda: decode(VERSION + bytes(8_000_000), value, None)) == "malformed-frame"
        assert time.perf_counter() - start < 0.5

    def test_too_many_events(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headgate.formats.open_protocol.frames.MAX_EVENTS_PER_MESSAGE", 3)

        assert len(decode(key(*[RESOLVED_KEY] * 3), bytes(24), None)) == 3
        assert code_of(lambda: decode(key(*[RESOLVED_KEY] * 4), bytes(32), None)) == "too-large"

    def test_resolved_with_a_body(self) -> None:
        assert code_of(lambda: one(b"{}", RESOLVED_KEY)) == "malformed-frame"

    @pytest.mark.parametrize("type_", [0, 4, -1, 2**40])
    def test_unknown_event_type(self, type_: int) -> None:
        event_key = b'{"ts":1,"t":%d}' % type_

        assert code_of(lambda: one(ROW, event_key)) == "unknown-type"

    @pytest.mark.parametrize("case", ["doc-log-05", "update-complete", "batch", "lz4"])
    @pytest.mark.parametrize("part", ["key", "value"])
    def test_truncation_at_every_byte(self, case: str, part: str) -> None:
        whole = {n: (OWN_CASES / case / f"{n}.bin").read_bytes() for n in ("key", "value")}
        for size in range(len(whole[part])):
            cut = whole | {part: whole[part][:size]}
            assert code_of(lambda c=cut: decode(c["key"], c["value"], None)) == "malformed-frame"


def lie(body: bytes, delta_or_length: int) -> int:
    return len(body) + delta_or_length if abs(delta_or_length) == 1 else delta_or_length


class TestBodies:
    @pytest.mark.parametrize(
        ("value", "code"),
        [
            (b'{"x":1}', "missing-member"),
            (b'{"u":{}}', "missing-member"),
            (b'{"d":{}}', "missing-member"),
            (b'{"p":{"a":{"t":3,"f":65,"v":1}}}', "missing-member"),
            (b'{"u":{"a":{"t":3,"v":1}},"d":{"a":{"t":3,"v":1}}}', "invalid-value"),
            (b'{"p":{"a":{"t":3,"v":1}},"d":{"a":{"t":3,"v":1}}}', "invalid-value"),
            (b'{"u":{"a":{"t":3,"f":65}}}', "missing-member"),
            (b'{"u":{"a":{"f":65,"v":1}}}', "missing-member"),
            (b'{"u":{"a":{"t":300,"f":65,"v":1}}}', "wrong-type"),
            (b'{"u":{"a":{"t":3,"f":-1,"v":1}}}', "wrong-type"),
            (b'{"u":{"a":{"t":3,"f":4294967296,"v":1}}}', "wrong-type"),
            (b'{"u":{"a":{"t":3,"f":65,"v":[1]}}}', "wrong-type"),
            (b'{"u":{"a":{"t":3,"f":65,"v":{}}}}', "wrong-type"),
            (b'{"u":{"a":1}}', "wrong-type"),
            (b'{"u":{"a":{"t":3,"f":65,"v":null}},"p":{"x":1}}', "wrong-type"),
            (b'{"u":{"a":{"t":3,"f":65,"v":null}},"p":{"t":3}}', "missing-member"),
            (b'{"u":{"a":{"t":3,"f":65,"v":null}},"p":{"t":[],"v":1}}', "wrong-type"),
            (b"[]", "wrong-type"),
            (b"null", "wrong-type"),
            (b'{"u":', "malformed-json"),
            (b'{"u":{"a":{"t":15,"f":64,"v":"\xff"}}}', "invalid-utf8"),
            (b'{"u":{"a":{"t":252,"f":64,"v":"/w=="}}}', "invalid-utf8"),
            (b'{"u":{"a":{"t":252,"f":65,"v":"?"}}}', "invalid-binary"),
            (b'{"u":{"a":{"t":252,"f":64,"v":"YQ"}}}', "invalid-binary"),
            (b'{"u":{"a":{"t":252,"v":"?"}}}', "invalid-binary"),
            (b'{"u":{"a":{"t":15,"f":65,"v":"\\\\q"}}}', "invalid-binary"),
            (b'{"u":{"a":{"t":3,"f":65,"v":' + b"1" * 5000 + b"}}}", "wrong-type"),
            (b'{"u":{"a":{"t":3,"f":65,"v":' + b"[" * 100_000, "too-deep"),
        ],
    )
    def test_refused_row(self, value: bytes, code: str) -> None:
        assert code == code_of(lambda: one(value))

    @pytest.mark.parametrize("depth", [50, 900, 990, 10_000])
    def test_nesting_in_a_nameless_old_value(self, depth: int) -> None:
        nested = b"[" * depth + b"]" * depth
        value = b'{"u":{"a":{"t":3,"f":65,"v":null}},"p":{"t":3,"f":65,"v":' + nested + b"}}"

        assert code_of(lambda: one(value)) in ("wrong-type", "too-deep")

    @pytest.mark.parametrize(
        "event_key",
        [b"{}", b'{"ts":1}', b'{"t":1}', b'{"ts":"1","t":1}', b'{"ts":9223372036854775808,"t":1}'],
    )
    def test_refused_key(self, event_key: bytes) -> None:
        assert code_of(lambda: one(ROW, event_key)) in ("missing-member", "wrong-type")

    @pytest.mark.parametrize("value", [b'{"q":"x","t":"three"}', b'{"t":3}', b'{"q":"x","t":3.5}'])
    def test_refused_ddl(self, value: bytes) -> None:
        event_key = b'{"ts":1,"scm":"a","tbl":"b","t":2}'

        assert code_of(lambda: one(value, event_key)) in ("missing-member", "wrong-type")

    def test_true_and_false_are_numbers(self) -> None:
        event = one(b'{"u":{"a":{"t":1,"f":65,"v":true},"b":{"t":1,"f":65,"v":false}}}')

        assert event.after == {"a": "1", "b": "0"}

    def test_old_column_that_is_not_in_the_new_row(self) -> None:
        event = one(b'{"u":{"a":{"t":3,"f":65,"v":1}},"p":{"b":{"t":8,"f":65,"v":2}}}')

        assert event.before == {"a": "1", "b": "2"}
        assert event.types is not None
        assert {"a", "b"} == event.types.keys()

    def test_old_value_is_read_by_its_own_type(self) -> None:
        event = one(b'{"u":{"a":{"t":15,"f":64,"v":"x"}},"p":{"a":{"t":252,"f":64,"v":"eQ=="}}}')

        assert event.before == {"a": "y"}

    def test_negative_zero_beside_a_nameless_old_value(self) -> None:
        event = one(
            b'{"u":{"f":{"t":5,"f":65,"v":-0},"g":{"t":4,"f":65,"v":null}},'
            b'"p":{"t":4,"f":65,"v":-0}}'
        )

        assert event.after == {"f": "-0", "g": None}
        assert event.before == {"f": "-0", "g": "-0"}

    def test_local_timestamp_in_both_images(self) -> None:
        event = one(
            b'{"u":{"a":{"t":7,"f":65,"v":"2020-01-01 08:00:00"}},'
            b'"p":{"a":{"t":7,"f":65,"v":"0000-00-00 00:00:00"}}}',
            timezone="Asia/Shanghai",
        )

        assert event.after == {"a": "2020-01-01 00:00:00"}
        assert event.before == {"a": "0000-00-00 00:00:00"}

    def test_events_of_one_table_share_key_and_types(self) -> None:
        first, second = one(ROW), one(ROW)
        again = decode(key(ROW_KEY), frame(ROW), None)[0]
        more = decode(key(ROW_KEY), frame(ROW), None)[0]

        assert (first.key, first.types) == (second.key, second.types)
        assert again.types is more.types
        assert again.key is more.key

    def test_handles_are_not_mixed_up_without_flags(self) -> None:
        first = decode(key(ROW_KEY), frame(b'{"u":{"a":{"t":3,"h":true,"v":1}}}'), None)[0]
        second = decode(key(ROW_KEY), frame(b'{"u":{"a":{"t":3,"v":1}}}'), None)[0]

        assert first.key == ("a",)
        assert second.key is None

    def test_many_tables_do_not_grow_without_end(self) -> None:
        run = decoder("open-protocol")
        for number in range(10_005):  # more than are cached
            value = b'{"u":{"c%d":{"t":3,"f":65,"v":1}}}' % number
            assert {f"c{number}": "1"} == run(key(ROW_KEY), frame(value), None)[0].after

    @pytest.mark.parametrize("code", [*range(1, 85), 230, 231])
    def test_ddl_codes(self, code: int) -> None:
        event = one(b'{"q":"x","t":%d}' % code, b'{"ts":1,"scm":"a","tbl":"b","t":2}')

        assert (op_of(code), str(code)) == (event.op, (event.extra or {})["ddlType"])


def op_of(code: int) -> str:
    """The Canal word that TiCDC has for a DDL type code, as our op."""
    words = {
        "create": {3},
        "drop": {4},
        "truncate": {11},
        "rename": {14, 47},
        "create_index": {7, 9, 32},
        "drop_index": {8, 10, 33},
        "alter": {5, 6, 12, 13, 15, 17, 18, 19, 20, 22, 23, 37, 38, 41, 61, 64, 71, 72},
    }
    return next((op for op, codes in words.items() if code in codes), "query")


class TestCompression:
    def test_a_bomb_is_refused(self) -> None:
        bomb = lz4(b"[" * 5_000_000)

        assert code_of(lambda: one(bomb, max_message_bytes=1_000_000)) == "too-large"

    def test_many_bodies_together_are_bounded(self) -> None:
        body = lz4(ROW + b" " * 400_000)
        run = decoder("open-protocol", max_message_bytes=1_000_000)

        assert code_of(lambda: run(key(*[ROW_KEY] * 3), frame(body) * 3, None)) == "too-large"

    @pytest.mark.parametrize("name", ["lz4", "snappy"])
    def test_plain_body_is_not_compressed(self, name: str) -> None:
        assert code_of(lambda: one(ROW, compression=name)) in ("malformed-compression", "too-large")


def lz4(body: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(body)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


class TestNoValue:
    @pytest.mark.parametrize("no_key", [None, b"", b"id=1", b'{"id":1}'])
    def test_null_value_without_a_framed_key_is_a_tombstone(self, no_key: bytes | None) -> None:
        assert [e.kind for e in decode(no_key, None, None)] == ["tombstone"]

    @pytest.mark.parametrize("value", [b"", None])
    def test_version_alone_is_an_empty_message(self, value: bytes | None) -> None:
        assert [(e.kind, e.op) for e in decode(VERSION, value, None)] == [("marker", "empty")]

    @pytest.mark.parametrize("value", [bytes(16), b"", None])
    def test_several_resolved_points(self, value: bytes | None) -> None:
        events = decode(key(RESOLVED_KEY, RESOLVED_KEY), value, None)

        assert [e.position for e in events] == [{"row": "0"}, {"row": "1"}]
        assert {"watermark"} == {e.kind for e in events}


class TestGoUnquote:
    @given(st.binary() | st.text().map(lambda t: t.encode("utf-8", "replace")))
    def test_undoes_quoting(self, data: bytes) -> None:
        assert data == unquoted(go_quote(data))

    @pytest.mark.parametrize(
        ("text", "data"),
        [
            (r"\101\377\000", b"A\xff\x00"),
            (r"\xFF\xfF", b"\xff\xff"),
            (r"\u00A0\uffff", b"\xc2\xa0\xef\xbf\xbf"),
            (r"\U0010ffff", b"\xf4\x8f\xbf\xbf"),
            (r"\\x41", rb"\x41"),
            ("'", b"'"),
            ("", b""),
        ],
    )
    def test_accepts(self, text: str, data: bytes) -> None:
        assert data == unquoted(text)

    @pytest.mark.parametrize(
        "text",
        [
            *("\\", '"', "\n", "a\\", r"\q", r"\'", r"\x", r"\x4", r"\xgg", r"\12", r"\400", r"\8"),
            *(r"\u12", r"\ud800", r"\U0001", r"\U00110000", r"\Uffffffff"),
        ],
    )
    def test_refuses(self, text: str) -> None:
        assert code_of(lambda: unquoted(text)) == "invalid-binary"


def unquoted(text: str) -> bytes:
    """The bytes of a binary column that is sent as such text."""
    row = one(column(text, 15, 65)).after or {}
    return b64decode(row["c"] or "")


GO_LETTERS = {7: "a", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t", 11: "v", 92: "\\", 34: '"'}


def go_quote(data: bytes) -> str:
    """Go's strconv.Quote without the outer quotes, written from its description."""
    out = []
    # surrogateescape marks each byte that is not UTF-8
    for rune in map(ord, data.decode("utf-8", "surrogateescape")):
        if rune in GO_LETTERS:
            out.append("\\" + GO_LETTERS[rune])
        elif 0xDC80 <= rune <= 0xDCFF:
            out.append(f"\\x{rune - 0xDC00:02x}")
        elif rune < 0x20 or rune == 0x7F:
            out.append(f"\\x{rune:02x}")
        elif rune == 0x20 or unicodedata.category(chr(rune))[0] in "LMNPS":
            out.append(chr(rune))
        else:
            out.append(f"\\u{rune:04x}" if rune < 0x10000 else f"\\U{rune:08x}")
    return "".join(out)


def test_recognises_by_the_version_alone() -> None:
    recognises = load("open-protocol").recognises
    assert recognises(Sniffed(VERSION, {}))
    assert recognises(Sniffed(key(ROW_KEY), {}))
    assert not recognises(Sniffed(None, {}))
    assert not recognises(Sniffed(b"{}", {}))
    assert not recognises(Sniffed(key(ROW_KEY, version=2), {}))


def test_a_named_dialect_labels_every_event() -> None:
    run = decoder("open-protocol:new")
    messages = [
        (key(ROW_KEY), frame(ROW)),
        (key(RESOLVED_KEY), bytes(8)),
        (key(b'{"ts":1,"t":2}'), frame(b'{"q":"x","t":1}')),
        (VERSION, b""),
        (None, None),
    ]

    assert [run(k, v, None)[0].dialect for k, v in messages] == ["new"] * 5


def test_errors_carry_no_payload() -> None:
    with pytest.raises(DecodeError) as caught:
        one(b'{"u":{"secret":{"t":252,"f":65,"v":"top secret"}}}')

    assert "top secret" not in str(caught.value)
