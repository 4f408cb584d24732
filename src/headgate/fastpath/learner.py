"""Learning what becomes of a message by asking the codecs.

A template is a message with holes: everything but the values that vary from row to row. What the
codecs write for such a message is text with the same values in it, copied or converted in one of a
few known ways. Which value goes where is found by giving every hole a value that is nowhere else;
what values a hole may have, by trying the values that codecs are known to treat differently. Where
the compiled loop and the codecs disagree in anything, there is no template.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product
from random import Random
from typing import Any

import numpy as np

from headgate.fastpath import kernel, values
from headgate.fastpath.leaves import IMAGES, Leaf, filled, leaves_of, may_vary, pairs_of
from headgate.fastpath.templates import (
    Answer,
    Ask,
    Form,
    Template,
    agrees,
    ask_codecs,
    is_possible,
    operations,
    run_template,
    same_shape,
)
from headgate.formats import load

SUFFIXES = ("0", ".0", ".000", ".000000", " ")
"""What may follow a value without changing it."""
CHECKS = 4
"""How many messages of random values a new template must convert as the codecs do."""
TABLES, SAMPLE = 5, 12
"""Similar columns are tried with all values in TABLES tables, then with SAMPLE of them."""
MANY_TABLES, FEW = 25, 3
"""From MANY_TABLES on, a template is tried with FEW values, to see that it is like the others."""


class Learner:
    """Learns templates, and remembers the results for columns."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.known: dict[Any, Form | None] = {}
        self.tried: set[Any] = set()
        """The columns of tables that have been tried with all values."""
        self.trusted: Counter[Any] = Counter()
        """In how many tables similar columns have been tried so."""
        self.rng = Random(5)
        self.starts = np.zeros(kernel.MOST_LEAVES, np.int64)
        self.ends = np.zeros(kernel.MOST_LEAVES, np.int64)

    def learn(self, text: bytes, roles: Sequence[int] | None = None) -> Template | None:
        """The template of messages like this one; None if it has none.

        `roles`: which leaves are holes, where the skeleton is known already.
        """
        answer = ask_codecs(self.ask, text)
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
        for afresh in (False, True):  # what holds for similar columns may not hold for these
            forms = self.forms(text, leaves, holes, answer, afresh)
            if not forms or (roles is not None and len(forms) < len(holes)):
                return None
            template = self.locate(text, leaves, sorted(forms), answer)
            if template is not None:
                template.forms = forms
                if all(is_possible(template, i) for i in forms) and self.is_verified(template):
                    for similar, exact in self.columns(template):
                        self.trusted[similar] += exact not in self.tried
                        self.tried.add(exact)
                    return template
        return None

    def marker_values(self, template: Template) -> dict[int, bytes]:
        """A value for every hole that occurs nowhere else; equal ones for equal values."""
        markers: dict[int, bytes] = {}
        for i in template.holes:
            leaf = template.leaves[i]
            text = template.text[leaf.start : leaf.end].decode()
            markers[i] = values.marker(text, leaf.number, self.rng).encode()
        for one, other, same in template.pairs:
            if same and one in markers and other in markers:
                markers[other] = markers[one]
        return markers

    def locate(
        self, text: bytes, leaves: list[Leaf], holes: list[int], answer: Answer
    ) -> Template | None:
        """A template that knows where the values of its holes are written."""
        template = Template(text, leaves, holes, {}, pairs_of(leaves, text), answer)
        given = self.marker_values(template)
        written = ask_codecs(self.ask, filled(text, leaves, given))
        if written is None or not same_shape(written, answer):
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
        self, text: bytes, leaves: list[Leaf], holes: list[int], answer: Answer, afresh: bool
    ) -> dict[int, Form]:
        """The form of the values that each hole may have; a hole without one is omitted.

        The forms of similar columns are reused, unless `afresh`.
        """
        pairs = pairs_of(leaves, text)
        twins = {other: one for one, other, same in pairs if same}
        forms: dict[int, Form] = {}
        for i in holes:
            if twins.get(i) in holes:
                continue
            also = [i, *(other for other, one in twins.items() if one == i and other in holes)]
            similar, exact = column_class(text, leaves[i], pairs_with(i, pairs), answer)
            if exact not in self.known and (afresh or similar not in self.known):
                self.known[exact] = self.form(text, leaves, also, answer)
                self.known.setdefault(similar, self.known[exact])
                self.tried.add(exact)
            form = self.known[exact if exact in self.known else similar]
            if form is not None:
                forms |= dict.fromkeys(also, form)
        return forms

    def columns(self, template: Template) -> set[tuple[Any, Any]]:
        """The classes of the columns of a template's holes (`column_class`)."""
        text, leaves, pairs = template.text, template.leaves, template.pairs
        twins = {other: one for one, other, same in pairs if same}
        return {
            column_class(text, leaves[i], pairs_with(i, pairs), template.answer)
            for i in template.holes
            if twins.get(i) not in template.holes
        }

    def trust(self, template: Template) -> int:
        """In how many tables columns like its own were tried; TABLES if these were."""
        return min(
            max(self.trusted[similar], TABLES * (exact in self.tried))
            for similar, exact in self.columns(template)
        )

    def form(
        self, text: bytes, leaves: list[Leaf], holes: list[int], answer: Answer
    ) -> Form | None:
        """The widest form of values for which the loop and the codecs agree.

        The holes are those of one value; all others keep theirs.
        """
        template = self.locate(text, leaves, holes, answer)
        if template is None:
            return None
        leaf = leaves[holes[0]]
        current = text[leaf.start : leaf.end].decode()
        tries = [
            dict.fromkeys(holes, each.encode()) for each in values.probes(current, leaf.number)
        ]
        tries += [self.marker_values(template) for _ in range(CHECKS)]
        texts = [filled(text, leaves, given) for given in tries]
        answers = [ask_codecs(self.ask, each) for each in texts]
        for form in values.forms(current, leaf.number):
            template.forms = dict.fromkeys(holes, form)
            if all(is_possible(template, i) for i in holes):
                made = run_template(template, texts)
                # It must take the value that is there.
                if made[0] is not None and all(
                    m is None or agrees(m, a, template) for m, a in zip(made, answers)
                ):
                    return form
        return None

    def is_verified(self, template: Template) -> bool:
        """Whether messages of random and of unusual values are written as the codecs write them."""
        trust = self.trust(template)
        texts = [template.text]
        for _ in range(CHECKS if trust < MANY_TABLES else 1):
            texts.append(filled(template.text, template.leaves, self.marker_values(template)))
        random = len(texts)
        texts += self.unusual(template, trust)
        made = run_template(template, texts)
        answers = [ask_codecs(self.ask, text) for text in texts]
        return all(m is not None for m in made[:random]) and all(
            m is None or agrees(m, a, template) for m, a in zip(made, answers)
        )

    def unusual(self, template: Template, trust: int) -> list[bytes]:
        """Messages in which all holes have unusual values at once, each another one."""
        text, leaves, tries = template.text, template.leaves, {}
        for i in template.holes:
            leaf = leaves[i]
            current = text[leaf.start : leaf.end].decode()
            tries[i] = values_of_form(current, leaf.number, template.forms[i])
        most = max(map(len, tries.values()))
        start = self.rng.randrange(most)
        if trust >= TABLES:
            most = min(most, SAMPLE if trust < MANY_TABLES else FEW)
        combinations = [
            {i: each[(n + 7 * i) % len(each)] for i, each in tries.items()}
            for n in range(start, start + most)
        ]
        if trust < MANY_TABLES:
            combinations += self.near_duplicates(template, tries)
        for given in combinations:
            for one, other, same in template.pairs:
                if one in given and other in given:
                    if same:
                        given[other] = given[one]
                    elif given[other] == given[one]:
                        given[other] = self.rng.choice(tries[other])
        return [
            filled(text, leaves, {i: each.encode() for i, each in given.items()})
            for given in combinations
        ]

    def near_duplicates(
        self, template: Template, tries: dict[int, list[str]]
    ) -> list[dict[int, str]]:
        """Values of two images that differ in their text only: is that a change to the codecs?

        The message's own values too, because they are of their column's type.
        """
        current = {
            i: [template.text[leaf.start : leaf.end].decode()]
            for i, leaf in enumerate(template.leaves)
            if i in tries
        }
        combinations = []
        for suffix, texts in product(SUFFIXES, (tries, current)):
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
                combinations.append(given)
        return combinations


def pairs_with(hole: int, pairs: list[tuple[int, int, int]]) -> tuple[int, ...]:
    """Whether the other image of a row has the same value."""
    return tuple(same for i, j, same in pairs if hole in (i, j))


def column_class(
    text: bytes, leaf: Leaf, relations: tuple[int, ...], answer: Answer
) -> tuple[Any, Any]:
    """What decides how the codecs treat a column's values; and the same for this column only."""
    forms = forms_of(text[leaf.start : leaf.end], leaf.number)
    name = leaf.path[-1]
    column = (*leaf.path[:-1], answer.types.get(name), name in answer.key)
    path = column if IMAGES.intersection(leaf.path) else leaf.path
    similar = (path, leaf.number, forms, relations, answer.treated)
    return similar, (*similar, leaf.path, answer.about)


@lru_cache(1_024)
def forms_of(text: bytes, number: bool) -> tuple[Form, ...]:
    """The forms of a value; the same one is looked up several times."""
    return tuple(values.forms(text.decode(), number))


def values_of_form(text: str, number: bool, form: Form) -> list[str]:
    """The values of a form to try in the place of one."""
    first, *others = values.probes(text, number)
    usual = _common_values_of_form(number, form)
    rest = others[: len(others) - len(values.NUMBERS) - (0 if number else len(values.TEXTS))]
    return [first, *(each for each in rest if fits(each, form)), *usual]


@cache
def _common_values_of_form(number: bool, form: Form) -> list[str]:
    """Those of them that are tried in every place."""
    return [each for each in values.probes("a", number)[1:] if fits(each, form)]


def fits(text: str, form: Form) -> bool:
    """Whether a value is of a form."""
    data = np.frombuffer(text.encode() or b"\0", np.uint8)
    return bool(kernel.fits(data, 0, len(text.encode()), *form))
