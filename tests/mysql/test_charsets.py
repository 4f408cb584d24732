"""Character sets: every character is the one that the servers have."""

from __future__ import annotations

from typing import Any

import pytest
from binlog_capture import Capture

from headgate.mysql import charsets

pytestmark = pytest.mark.slow
SINGLE = sorted(charsets._SINGLE)
DOUBLE = ["big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"]


def converted(capture: Capture, charset: str, codes: list[bytes]) -> list[str | None]:
    """Text as the server makes it of bytes; None where these are no characters."""
    found: list[str | None] = []
    for start in range(0, len(codes), 500):
        parts = [f"HEX(CONVERT(CONVERT(0x{code.hex()} USING {charset}) USING utf32))"
                 for code in codes[start : start + 500]]  # fmt: skip
        (row,) = capture.query(f"SELECT {', '.join(parts)}")
        found += [None if each is None else bytes.fromhex(each).decode("utf-32-be") for each in row]
    return found


def test_single_bytes(server: Any) -> None:
    capture = Capture(server, "headgate_charsets")
    for charset in SINGLE:
        codes = [bytes([code]) for code in range(256)]
        expected = converted(capture, charset, codes)
        assert [charsets.decoder(charset)(code) for code in codes] == expected, charset


def test_double_bytes(mysql: Any) -> None:
    """A third of all characters of two bytes, and those of three with each first byte."""
    capture = Capture(mysql, "headgate_charsets")
    for charset in DOUBLE:
        codes = [bytes([a, b]) for a in range(0x81, 0xFF) for b in range(0x40 + a % 3, 0xFF, 3)]
        if charset in ("ujis", "eucjpms"):
            codes += [bytes([0x8F, a, b]) for a in range(0xA1, 0xFF) for b in range(0xA1, 0xFF, 7)]
        known = {c: text for c, text in zip(codes, converted(capture, charset, codes))
                 if text and len(text) == 1 and text not in "?\ufffd"}  # fmt: skip
        assert len(known) > 1_000
        decode = charsets.decoder(charset)
        assert {code: decode(code) for code in known} == known, charset


def test_collations(server: Any) -> None:
    capture = Capture(server, "headgate_charsets")
    known = capture.query(
        "SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL "
        "AND character_set_name IS NOT NULL"
    )
    assert len(known) > 200
    for number, charset in known:
        assert charsets.charset_of(number) == {"utf8": "utf8mb3"}.get(charset, charset)
    for charset, most in capture.query(
        "SELECT character_set_name, maxlen FROM information_schema.character_sets"
    ):
        assert charsets.widest({"utf8": "utf8mb3"}.get(charset, charset)) == most
