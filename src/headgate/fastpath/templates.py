"""Learning what becomes of a message by asking the codecs.

A template is a message with holes: everything but the values that vary from row to row. What the
codecs write for such a message is text with the same values in it, copied or converted in one of a
few known ways. Which value goes where is found by giving every hole a value that is nowhere else;
what values a hole may have, by trying the values that codecs are known to treat differently. Where
the compiled loop and the codecs disagree in anything, there is no template.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np

from headgate.fastpath import kernel, values
from headgate.fastpath.kernel import (
    DATE,
    DATETIME,
    DAYS,
    DECIMAL64,
    EPOCH,
    INTEGER,
    ISO,
    LITERAL,
    NUMBER,
    POINT,
    STAMP,
    TRIM,
)
from headgate.fastpath.program import SEPARATOR, Program
from headgate.formats import load

SUFFIXES = ("0", ".0", ".000", ".000000", " ")
"""What may follow a value without changing it."""
CHECKS = 4
"""How many messages of random values a new template must convert as the codecs do."""
IMAGES = {"data", "old", "before", "after"}
NEEDS = {
    TRIM: {STAMP},
    POINT: {STAMP},
    EPOCH: {DATETIME},
    ISO: {DATETIME},
    DAYS: {DATE},
    DECIMAL64: {INTEGER, NUMBER},
}
"""The forms of values that an operation can be done with; what it makes of others is nonsense."""
TABLES, SAMPLE = 5, 12
"""In so many tables, columns treated alike are tried with all values; then with so many."""
MANY_TABLES, FEW = 25, 3
"""From so many tables on, a template is only tried to see that it is like those of the others."""


class Made(NamedTuple):
    """A message that the codecs wrote, and for which sink."""

    value: bytes | None
    key: bytes | None
    headers: Any
    topic: str | None
    partition: int | None
    losses: Any = None
    sink: int = 0


class Answer(NamedTuple):
    """What the codecs make of a message: all that a template must give."""

    records: tuple[Made, ...]
    lost: tuple[Any, ...]
    """What was lost, in the words of whoever asks."""
    about: Any
    """What else has to be the same in all messages of a template: tables, operations."""
    time: int | None
    """The time of the change, in microseconds; it may vary."""
    format: str | None
    treated: Any
    """What decides, with a column's type, how its values are treated."""
    types: Any
    key: tuple[str, ...]


Form = tuple[int, int, int]
"""What a value must be like, with two parameters (kernel.fits)."""
Ask = Callable[["bytes | None", bytes], "Answer | None"]
"""From key and value to what becomes of them; None where that cannot be a template's."""


class Leaf(NamedTuple):
    """A string or number of a message: its path, its text, where it stands."""

    path: tuple[str, ...]
    number: bool
    start: int
    end: int


@dataclass
class Template:
    """A message with holes, and what is written for it."""

    text: bytes
    leaves: list[Leaf]
    holes: list[int]
    forms: dict[int, Form]
    pairs: list[tuple[int, int, int]]
    answer: Answer
    values: list[list[tuple[int, int, int]]] = field(default_factory=list)
    """For each record: the operations that write its value."""
    keys: list[list[tuple[int, int, int]]] = field(default_factory=list)
    literals: bytearray = field(default_factory=bytearray)
    time_leaf: int = -1
    time_factor: int = 0


def leaves_of(text: bytes, starts: Any, ends: Any) -> list[Leaf] | None:
    """The leaves of a message with their paths; None where it is not plain JSON.

    >>> cut = [np.zeros(10, np.int64) for _ in range(2)]
    >>> [leaf.path for leaf in leaves_of(b'{"a":[{"b":"x"}],"c":1}', *cut)]
    [('a', '0', 'b'), ('c',)]
    """
    data = np.frombuffer(text, np.uint8)
    count = kernel.cut(data, 0, len(text), starts, ends)
    key, separator, value = text.partition(SEPARATOR)
    paths: list[tuple[tuple[str, ...], bool]] = []
    try:
        if separator:
            walk(read(key), ("key",), paths)
            walk(read(value), (), paths)
        else:
            walk(read(text), (), paths)
    except (ValueError, RecursionError):
        return None
    if len(paths) != count:
        return None
    return [Leaf(*p, int(starts[i]), int(ends[i])) for i, p in enumerate(paths)]


class Number(str):
    """The text of a JSON number."""

    __slots__ = ()


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, no name twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def read(text: bytes) -> Any:
    """JSON with numbers as text."""
    return json.loads(
        text, object_pairs_hook=members, parse_int=Number, parse_float=Number, parse_constant=Number
    )


def walk(node: Any, path: tuple[str, ...], found: list[tuple[tuple[str, ...], bool]]) -> None:
    """Note the strings and numbers of a document in their order."""
    if isinstance(node, dict):
        for name, member in node.items():
            walk(member, (*path, name), found)
    elif isinstance(node, list):
        for i, member in enumerate(node):
            walk(member, (*path, str(i)), found)
    elif isinstance(node, str):
        found.append((path, isinstance(node, Number)))


def may_vary(path: tuple[str, ...], varying: Sequence[str]) -> bool:
    """Whether a leaf is under a member that varies.

    >>> may_vary(("payload", "source", "pos"), ["source.pos"]), may_vary(("table",), ["data"])
    (True, False)
    """
    told = ".".join(path[1:] if path[0] == "payload" else path) + "."
    return path[0] == "key" or any(told.startswith(f"{each}.") for each in varying)


def pairs_of(leaves: list[Leaf], text: bytes) -> list[tuple[int, int, int]]:
    """The values of one column in both images of a row, and whether they are the same."""
    found: dict[tuple[str, ...], int] = {}
    pairs = []
    for i, leaf in enumerate(leaves):
        at = next((n for n, name in enumerate(leaf.path) if name in IMAGES), None)
        if at is None:
            continue
        place = (*leaf.path[:at], *leaf.path[at + 1 :])
        other = found.setdefault(place, i)
        if other != i:
            same = text[leaf.start : leaf.end] == text[leaves[other].start : leaves[other].end]
            pairs.append((other, i, int(same)))
    return pairs


def filled(text: bytes, leaves: list[Leaf], given: dict[int, bytes]) -> bytes:
    """A message with other values in some of its leaves."""
    parts = []
    at = 0
    for i in sorted(given):
        parts += [text[at : leaves[i].start], given[i]]
        at = leaves[i].end
    return b"".join([*parts, text[at:]])


def asked(ask: Ask, text: bytes) -> Answer | None:
    """What becomes of a message, given with its key before it."""
    key, separator, value = text.partition(SEPARATOR)
    return ask(key, value) if separator else ask(None, text)


class Learner:
    """Makes templates; it remembers what it found out about columns."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.known: dict[Any, Form | None] = {}
        self.tried: set[Any] = set()
        """The columns of tables that have been tried with all values."""
        self.trusted: Counter[Any] = Counter()
        """In how many tables columns that are treated alike have been tried so."""
        self.rng = Random(5)
        self.starts = np.zeros(kernel.MOST_LEAVES, np.int64)
        self.ends = np.zeros(kernel.MOST_LEAVES, np.int64)

    def learn(self, text: bytes, roles: Sequence[int] | None = None) -> Template | None:
        """A template for messages like this one; None where there is none.

        `roles` says which leaves are holes, where the skeleton is known already.
        """
        answer = asked(self.ask, text)
        leaves = leaves_of(text, self.starts, self.ends)
        if answer is None or not leaves:
            return None
        varying = load(answer.format).varying if answer.format else ()
        if not varying:
            return None
        if roles is None:
            holes = [
                i for i, leaf in enumerate(leaves)
                if leaf.end > leaf.start and may_vary(leaf.path, varying)
            ]  # fmt: skip
        else:
            holes = [i for i, role in enumerate(roles) if role != kernel.FIXED]
        for own in (False, True):  # what is known of such columns elsewhere may not be so here
            forms = self.forms(text, leaves, holes, answer, own)
            if not forms or (roles is not None and len(forms) < len(holes)):
                return None
            template = self.located(text, leaves, sorted(forms), answer)
            if template is not None:
                template.forms = forms
                if all(is_possible(template, i) for i in forms) and self.holds(template):
                    for alike, very in self.columns(template):
                        self.trusted[alike] += very not in self.tried
                        self.tried.add(very)
                    return template
        return None

    def given(self, template: Template) -> dict[int, bytes]:
        """A value for every hole, the same for what has to be the same."""
        found: dict[int, bytes] = {}
        for i in template.holes:
            leaf = template.leaves[i]
            text = template.text[leaf.start : leaf.end].decode()
            found[i] = values.marker(text, leaf.number, self.rng).encode()
        for one, other, same in template.pairs:
            if same and one in found and other in found:
                found[other] = found[one]
        return found

    def located(
        self, text: bytes, leaves: list[Leaf], holes: list[int], answer: Answer
    ) -> Template | None:
        """A template that knows where the values of its holes are written."""
        template = Template(text, leaves, holes, {}, pairs_of(leaves, text), answer)
        given = self.given(template)
        written = asked(self.ask, filled(text, leaves, given))
        if written is None or not alike(written, answer):
            return None
        template.answer = written
        where: dict[bytes, tuple[int, int, int]] = {}
        for i, value in given.items():
            for fragment, op, b in values.fragments(value.decode()):
                where.setdefault(fragment.encode(), (op, i, b))
        longest = sorted(where.items(), key=lambda each: -len(each[0]))
        for record in written.records:
            template.values.append(operations(template, record.value, longest))
            template.keys.append(operations(template, record.key, longest))
        whole = [(i, int(value)) for i, value in given.items() if value.isdigit()]
        for i, number in whole:
            for factor in (1, 1_000, 1_000_000):
                if number * factor == written.time:
                    template.time_leaf, template.time_factor = i, factor
        return template

    def forms(
        self, text: bytes, leaves: list[Leaf], holes: list[int], answer: Answer, own: bool
    ) -> dict[int, Form]:
        """What values each hole may have; those for which nothing was found are left out.

        What is known of columns that are treated alike is taken for granted, unless `own`.
        """
        pairs = pairs_of(leaves, text)
        twins = {other: one for one, other, same in pairs if same}
        found: dict[int, Form] = {}
        for i in holes:
            if twins.get(i) in holes:
                continue
            also = [i, *(other for other, one in twins.items() if one == i and other in holes)]
            alike, very = told(text, leaves[i], pairs_with(i, pairs), answer)
            if very not in self.known and (own or alike not in self.known):
                self.known[very] = self.form(text, leaves, also, answer)
                self.known.setdefault(alike, self.known[very])
                self.tried.add(very)
            form = self.known[very if very in self.known else alike]
            if form is not None:
                found |= dict.fromkeys(also, form)
        return found

    def columns(self, template: Template) -> set[tuple[Any, Any]]:
        """The columns of a template's holes, as `told` tells them."""
        text, leaves, pairs = template.text, template.leaves, template.pairs
        twins = {other: one for one, other, same in pairs if same}
        return {
            told(text, leaves[i], pairs_with(i, pairs), template.answer)
            for i in template.holes
            if twins.get(i) not in template.holes
        }

    def trust(self, template: Template) -> int:
        """In how many tables columns like each of its own were tried; TABLES if itself was."""
        return min(
            max(self.trusted[alike], TABLES * (very in self.tried))
            for alike, very in self.columns(template)
        )

    def form(
        self, text: bytes, leaves: list[Leaf], holes: list[int], answer: Answer
    ) -> Form | None:
        """The widest form of values of which the loop and the codecs make the same.

        The holes are those of one value; all others keep theirs.
        """
        template = self.located(text, leaves, holes, answer)
        if template is None:
            return None
        leaf = leaves[holes[0]]
        own = text[leaf.start : leaf.end].decode()
        tries = [dict.fromkeys(holes, each.encode()) for each in values.probes(own, leaf.number)]
        tries += [self.given(template) for _ in range(CHECKS)]
        texts = [filled(text, leaves, given) for given in tries]
        answers = [asked(self.ask, each) for each in texts]
        for form in values.forms(own, leaf.number):
            template.forms = dict.fromkeys(holes, form)
            if all(is_possible(template, i) for i in holes):
                made = trial(template, texts)
                # It must take the value that is there.
                if made[0] is not None and all(
                    m is None or agree(m, a, template) for m, a in zip(made, answers)
                ):
                    return form
        return None

    def holds(self, template: Template) -> bool:
        """Whether messages of random and of unusual values come out as the codecs write them."""
        trust = self.trust(template)
        texts = [template.text]
        for _ in range(CHECKS if trust < MANY_TABLES else 1):
            texts.append(filled(template.text, template.leaves, self.given(template)))
        random = len(texts)
        texts += self.unusual(template, trust)
        made = trial(template, texts)
        answers = [asked(self.ask, text) for text in texts]
        return all(m is not None for m in made[:random]) and all(
            m is None or agree(m, a, template) for m, a in zip(made, answers)
        )

    def unusual(self, template: Template, trust: int) -> list[bytes]:
        """Messages in which all holes have unusual values at once, each another one."""
        text, leaves, tries = template.text, template.leaves, {}
        for i in template.holes:
            leaf = leaves[i]
            own = text[leaf.start : leaf.end].decode()
            tries[i] = fitting(own, leaf.number, template.forms[i])
        most = max(map(len, tries.values()))
        start = self.rng.randrange(most)
        if trust >= TABLES:
            most = min(most, SAMPLE if trust < MANY_TABLES else FEW)
        found = [
            {i: each[(n + 7 * i) % len(each)] for i, each in tries.items()}
            for n in range(start, start + most)
        ]
        if trust < MANY_TABLES:
            found += self.nearly_same(template, tries)
        for given in found:
            for one, other, same in template.pairs:
                if one in given and other in given:
                    if same:
                        given[other] = given[one]
                    elif given[other] == given[one]:
                        given[other] = self.rng.choice(tries[other])
        return [
            filled(text, leaves, {i: each.encode() for i, each in given.items()}) for given in found
        ]

    def nearly_same(self, template: Template, tries: dict[int, list[str]]) -> list[dict[int, str]]:
        """Values of two images that differ in their text only: is that a change to the codecs?

        The message's own values too, because they are of their column's type.
        """
        own = {
            i: [template.text[leaf.start : leaf.end].decode()]
            for i, leaf in enumerate(template.leaves)
            if i in tries
        }
        found = []
        for suffix, texts in product(SUFFIXES, (tries, own)):
            given = {i: self.rng.choice(each) for i, each in tries.items()}
            before = given.copy()
            for one, other, same in template.pairs:
                if one in given and other in given and not same:
                    for i, j in ((one, other), (other, one)):
                        twins = [t for t in texts[i] if fits(t + suffix, template.forms[j])]
                        if twins:
                            given[i] = self.rng.choice(twins)
                            given[j] = given[i] + suffix
            if given != before:
                found.append(given)
        return found


def pairs_with(hole: int, pairs: list[tuple[int, int, int]]) -> tuple[int, ...]:
    """Whether the other image of a row has the same value."""
    return tuple(same for i, j, same in pairs if hole in (i, j))


def told(text: bytes, leaf: Leaf, relations: tuple[int, ...], answer: Answer) -> tuple[Any, Any]:
    """What decides how a column's values are treated, and the same with the very column's name."""
    look = look_of(text[leaf.start : leaf.end], leaf.number)
    name = leaf.path[-1]
    column = (*leaf.path[:-1], answer.types.get(name), name in answer.key)
    path = column if IMAGES.intersection(leaf.path) else leaf.path
    found = (path, leaf.number, look, relations, answer.treated)
    return found, (*found, leaf.path, answer.about)


@lru_cache(1_024)
def look_of(text: bytes, number: bool) -> tuple[Form, ...]:
    """What a value looks like; it is asked several times of the same one."""
    return tuple(values.forms(text.decode(), number))


def fitting(text: str, number: bool, form: Form) -> list[str]:
    """The values to try in the place of one that are of a form."""
    first, *others = values.probes(text, number)
    usual = _fitting(number, form)
    rest = others[: len(others) - len(values.NUMBERS) - (0 if number else len(values.TEXTS))]
    return [first, *(each for each in rest if fits(each, form)), *usual]


@cache
def _fitting(number: bool, form: Form) -> list[str]:
    """The same of those that are tried in every place."""
    return [each for each in values.probes("a", number)[1:] if fits(each, form)]


def fits(text: str, form: Form) -> bool:
    """Whether a value is of a form."""
    data = np.frombuffer(text.encode() or b"\0", np.uint8)
    return bool(kernel.fits(data, 0, len(text.encode()), *form))


def is_possible(template: Template, hole: int) -> bool:
    """Whether the loop can do with values of a hole's form what it is to do with them."""
    form = template.forms[hole][0]
    pieces = [op for made in (*template.values, *template.keys) for op in made]
    return all(
        form in NEEDS[op] for op, i, _ in pieces if op != LITERAL and i == hole and op in NEEDS
    )


def trial(template: Template, texts: list[bytes]) -> list[tuple[list[Made], int] | None]:
    """What the loop makes of messages by one template; None of those that are not of it."""
    program = Program([template])
    spliced = program.run(*joined(texts), only=True)
    made: list[tuple[list[Made], int] | None] = [None] * len(texts)
    for row in np.flatnonzero(spliced.templates >= 0):
        made[row] = ([], int(spliced.times[row]))
    for n in range(len(spliced.rows)):
        found = made[spliced.rows[n]]
        if found is not None:
            found[0].append(spliced.record(n))
    return made


def joined(texts: list[bytes]) -> tuple[Any, Any]:
    """Messages one after the other, and where each begins."""
    data = np.frombuffer(b"".join(texts), np.uint8)
    return data, np.cumsum([0, *map(len, texts)]).astype(np.int64)


def alike(one: Answer, other: Answer) -> bool:
    """Whether two answers differ in values only."""
    return (
        one.about == other.about
        and one.lost == other.lost
        and (one.time is None) == (other.time is None)
        and [shape(r) for r in one.records] == [shape(r) for r in other.records]
    )


def shape(record: Made) -> tuple[Any, ...]:
    """What of a record a template fixes."""
    return (record.value is None, record.key is None, *record[2:])


def agree(made: tuple[list[Made], int], answer: Answer | None, template: Template) -> bool:
    """Whether what the loop made of a message is what the codecs made."""
    if answer is None or not alike(answer, template.answer):
        return False
    records, time = made
    known = template.time_leaf >= 0
    return records == list(answer.records) and (not known or time == answer.time)


Operation = tuple[int, int, int]


def operations(
    template: Template, text: bytes | None, fragments: list[tuple[bytes, Operation]]
) -> list[Operation]:
    """How a text is made: what stays, and between it the values."""
    found: list[Operation] = []
    at = 0
    for start, end, operation in [*places(text or b"", fragments), (len(text or b""), 0, None)]:
        if text is not None and start > at:
            found.append((LITERAL, len(template.literals), start - at))
            template.literals.extend(text[at:start])
        if operation is not None:
            found.append(operation)
        at = end
    return found


def places(
    text: bytes, fragments: list[tuple[bytes, Operation]]
) -> list[tuple[int, int, Operation]]:
    """Where fragments stand in a text; one that comes earlier in the list goes first.

    >>> places(b"a12b1", [(b"12", (1, 0, 0)), (b"1", (1, 1, 0))])
    [(1, 3, (1, 0, 0)), (4, 5, (1, 1, 0))]
    """
    found: list[tuple[int, int, Operation]] = []
    for fragment, operation in fragments:
        start = text.find(fragment)
        while start >= 0:
            end = start + len(fragment)
            if all(end <= first or start >= last for first, last, _ in found):
                found.append((start, end, operation))
            start = text.find(fragment, start + 1)
    return sorted(found)
