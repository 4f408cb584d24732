"""Character sets of MySQL and MariaDB: which one a collation is of, and its bytes as text.

Python's codecs agree with the servers' conversion tables except for what is listed here; a test
compares every character with a real server. As there, bytes without a character are `?`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from headgate.mysql.errors import malformed

BINARY = "binary"
_COLLATIONS = """
big5 1 84; latin2 2 9 21 27 77; dec8 3 69; cp850 4 80; latin1 5 8 15 31 47-49 94; hp8 6 72;
koi8r 7 74; swe7 10 82; ascii 11 65; ujis 12 91; sjis 13 88; cp1251 14 23 50-52; hebrew 16 71;
tis620 18 89; euckr 19 85; latin7 20 41-42 79; koi8u 22 75; gb2312 24 86; greek 25 70;
cp1250 26 34 44 66 99; gbk 28 87; cp1257 29 58-59; latin5 30 78; armscii8 32 64;
utf8mb3 33 76 83 192-223 576-607 2048-2303; ucs2 35 90 128-159 640-671 2560-2815; cp866 36 68;
keybcs2 37 73; macce 38 43; macroman 39 53; cp852 40 81;
utf8mb4 45-46 224-247 255-323 608-639 2304-2559; utf16 54-55 101-124 672-703 2816-3071;
utf16le 56 62; cp1256 57 67; utf32 60-61 160-183 736-767 3072-3327; binary 63; geostd8 92-93;
cp932 95-96; eucjpms 97-98; gb18030 248-250
"""
"""The numbers of each character set's collations. MariaDB adds 1024 for those without padding."""
_WIDEST = {
    "utf8mb3": 3, "utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4, "ucs2": 2, "gbk": 2,
    "gb2312": 2, "gb18030": 4, "big5": 2, "sjis": 2, "cp932": 2, "ujis": 3, "eucjpms": 3,
    "euckr": 2,
}  # fmt: skip
"""The most bytes of a character, where that is not 1."""
_SINGLE = {
    "cp850": "cp850", "hp8": "hp_roman8", "koi8r": "koi8_r", "latin1": "cp1252",
    "latin2": "iso8859_2", "ascii": "ascii", "hebrew": "iso8859_8", "tis620": "tis_620",
    "koi8u": "koi8_u", "greek": "iso8859_7", "cp1250": "cp1250", "latin5": "iso8859_9",
    "cp866": "cp866", "macce": "mac_latin2", "macroman": "mac_roman", "cp852": "cp852",
    "latin7": "iso8859_13", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257",
    "dec8": "latin_1", "swe7": "ascii", "armscii8": "latin_1", "keybcs2": "ascii",
    "geostd8": "latin_1",
}  # fmt: skip
_SINGLE_EXCEPTIONS: dict[str, dict[int, str]] = {
    "latin1": {0x81: "\x81", 0x8D: "\x8d", 0x8F: "\x8f\x90", 0x9D: "\x9d"},
    "hebrew": {0xAF: "‾"},
    "koi8u": {0x95: "•"},
    "greek": {0xA1: "ʽʼ", 0xA4: "??", 0xAA: "?"},
    "cp866": {0xFC: "ⁿ²"},
    "cp1256": {
        0x8A: "?", 0x8F: "?", 0x98: "?", 0x9A: "?", 0x9F: "?", 0xAA: "?", 0xC0: "?", 0xFF: "?",
    },
    "dec8": {
        0xA4: "?", 0xA6: "?", 0xA8: "¤", 0xAC: "????", 0xB4: "?", 0xB8: "?", 0xBE: "?", 0xD0: "?",
        0xD7: "Œ", 0xDD: "Ÿ?", 0xF0: "?", 0xF7: "œ", 0xFD: "ÿ??",
    },
    "swe7": {0x40: "É", 0x5B: "ÄÖÅÜ", 0x60: "é", 0x7B: "äöåü?"},
    "armscii8": {
        0xA1: "❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑց"
        "ՒւՓփՔքՕօՖֆ’'",
    },
    "keybcs2": {
        0x80: "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙"
        "╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0",
    },
    "geostd8": {
        0x80: "€?‚?„…†‡?‰?‹?????‘’“”•–—???›????",
        0xC0: "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ???????????????????????№??",
    },
}  # fmt: skip
"""Characters from a code on, where the servers' table is not Python's."""
_MULTIPLE = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "ucs2": "utf-16-be", "utf16": "utf-16-be",
    "utf16le": "utf-16-le", "utf32": "utf-32-be", "gbk": "gbk", "gb2312": "gb2312", "big5": "big5",
    "sjis": "shift_jis", "cp932": "cp932", "ujis": "euc_jp", "eucjpms": "euc_jp", "euckr": "cp949",
    "gb18030": "gb18030",
}  # fmt: skip
_USER_DEFINED = {
    (lead + at // 94 << 8) + at % 94 + 0xA1: chr(first + at)
    for lead, first in ((0xF5, 0xE000), (0x8FF5, 0xE3AC))
    for at in range(940)
}
_MULTIPLE_EXCEPTIONS: dict[str, dict[int, str]] = {
    "big5": {0xF9D6: "碁銹裏墻恒粧嫺"},
    "sjis": {0x815F: "\\"},
    "ujis": _USER_DEFINED | {0xA1C0: "\\"},
    "gb18030": {0xA8BC: "ḿ"},
    "eucjpms": _USER_DEFINED | {
        0x8FA2B7: "～", 0x8FA2C3: "￤", 0x8FF3F3: "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡ",
        0x8FF4A1: "ⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤\ufa0e咊坙\ufa0f\ufa10增寬峵嵓\ufa11德悅愠敎昻"
        "晥\ufa12\uf929栁\ufa13\ufa14橫櫢淸淲瀨\ufa15\ufa16甁皂皞\ufa17礰\ufa18\ufa19\ufa1a"
        "\ufa1b竧\ufa1c\ufa1d綠緖\ufa1e荢\ufa1f薰\ufa20\ufa21蠇\ufa22譿賴赶\ufa23\ufa24\ufa25"
        "郞\ufa26鄕\ufa27\ufa28閒\uf9dc\ufa29霻靍靑\ufa2a\ufa2b\ufa2c馞髙魲\ufa2d黑",
        0xA1C1: "～∥", 0xA1DD: "－", 0xA1F1: "￠￡", 0xA2CC: "￢",
        0xADA1: "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ",
        0xADC0: "㍉㌔㌢㍍㌘㌧㌃㌶㍑㍗㌍㌦㌣㌫㍊㌻㎜㎝㎞㎎㎏㏄㎡",
        0xADDF: "㍻〝〟№㏍℡㊤㊥㊦㊧㊨㈱㈲㈹㍾㍽㍼≒≡∫∮∑√⊥∠∟⊿∵∩∪",
    },
}  # fmt: skip
_CHARACTER = {
    "big5": rb"[\x81-\xfe].|.",
    "sjis": rb"[\x81-\x9f\xe0-\xfc].|.",
    "ujis": rb"\x8f..|[\x8e\xa1-\xfe].|.",
    "eucjpms": rb"\x8f..|[\x8e\xa1-\xfe].|.",
    "gb18030": rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]|[\x81-\xfe].|.",
}


def _collations() -> dict[int, str]:
    numbers: dict[int, str] = {}
    for line in _COLLATIONS.split(";"):
        charset, *ranges = line.split()
        for each in ranges:
            first, _, last = each.partition("-")
            for number in range(int(first), int(last or first) + 1):
                numbers[number] = charset
                if number < 1024 and charset != BINARY:
                    numbers[number + 1024] = charset
    return numbers


_CHARSETS = _collations()


def charset_of(collation: int) -> str:
    """The character set of a collation's number.

    >>> charset_of(63), charset_of(255), charset_of(1032), charset_of(2304)
    ('binary', 'utf8mb4', 'latin1', 'utf8mb4')
    """
    charset = _CHARSETS.get(collation)
    if charset is None:
        raise malformed(f"a column has the collation {collation}, which is not known")
    return charset


def is_charset(name: str) -> bool:
    """Whether a character set is known.

    >>> is_charset("latin1"), is_charset("klingon")
    (True, False)
    """
    return name in _CHARSETS.values()


def widest(charset: str) -> int:
    """The most bytes that a character takes.

    >>> widest("utf8mb4"), widest("latin1")
    (4, 1)
    """
    return _WIDEST.get(charset, 1)


@cache
def single_bytes(charset: str) -> tuple[str, ...] | None:
    """The characters of a character set of single bytes; None where it has longer ones.

    >>> single_bytes("latin1")[0x80], single_bytes("gbk")
    ('€', None)
    """
    codec = _SINGLE.get(charset)
    if codec is None:
        return None
    characters = [bytes([code]).decode(codec, "replace") for code in range(256)]
    for code, others in _SINGLE_EXCEPTIONS.get(charset, {}).items():
        characters[code : code + len(others)] = others
    if charset == "tis620":  # the one table that has U+FFFD for what is no character
        return tuple(characters)
    return tuple("?" if each == "\ufffd" else each for each in characters)


def lenient_decoder(charset: str) -> Callable[[bytes], str]:
    """The same for what is text in any case: statements, and the labels of binary columns.

    >>> lenient_decoder("binary")(b"caf\\xe9")
    'caf\ufffd'
    """
    if charset in (BINARY, "utf8mb4", "utf8mb3"):
        return lambda data: data.decode("utf-8", "replace")
    return decoder(charset)


@cache
def decoder(charset: str) -> Callable[[bytes], str]:
    """A function from a character set's bytes to text.

    >>> decoder("latin1")(bytes([0x80, 0x41])), decoder("sjis")(bytes([0x81, 0x5F]))
    ('€A', '\\\\')
    """
    characters = single_bytes(charset)
    if characters is not None:
        table = "".join(characters)
        return lambda data: data.decode("latin_1").translate(table)
    codec = _MULTIPLE[charset]
    exceptions = _MULTIPLE_EXCEPTIONS.get(charset)
    if exceptions is None:
        return lambda data: (
            data.decode(codec, "replace").replace("\ufffd", "?")
            if (charset not in ("utf8mb4", "utf8mb3"))
            else data.decode(codec)
        )
    pattern = re.compile(_CHARACTER[charset], re.DOTALL)
    known = {
        (code + at).to_bytes(3 if code > 0xFFFF else 2, "big"): character
        for code, others in exceptions.items()
        for at, character in enumerate(others)
    }

    def decode(data: bytes) -> str:
        return "".join(
            known.get(each) or each.decode(codec, "replace").replace("\ufffd", "?")
            for each in pattern.findall(data)
        )

    return decode
