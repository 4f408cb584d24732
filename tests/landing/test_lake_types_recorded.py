"""The rows of a real MySQL server in their lake types."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
from recorded import changes

from headgate.landing.types import is_zero_date, lake_type, typed, upcast


def recorded_values() -> dict[str, list[str]]:
    """All values that the recorded workload wrote, by type."""
    values: dict[str, set[str]] = defaultdict(set)
    for statements in changes(split_key_changes=False, deletes=True).values():
        for change in (change for statement in statements for change in statement):
            for row in (change.before or {}, change.after or {}):
                for name, value in row.items():
                    if value is not None:
                        values[change.types[name]].add(str(value))
    return {mysql: sorted(texts) for mysql, texts in values.items()}


def test_every_value_of_the_server_fits_but_zero_dates() -> None:
    values = recorded_values()
    misfits = {
        mysql: list(typed(pa.array(texts), mysql, lake_type(mysql))[1].values())
        for mysql, texts in values.items()
    }

    zero_dates = {mysql: list(filter(is_zero_date, texts)) for mysql, texts in values.items()}
    assert {mysql: texts for mysql, texts in zero_dates.items() if texts} == {
        mysql: texts for mysql, texts in misfits.items() if texts
    }
    assert len(values) > 80
    assert {"date", "datetime(6)", "timestamp"} <= {m for m, texts in misfits.items() if texts}


def test_numbers_and_times_of_the_server_give_the_same_text_back() -> None:
    for mysql, texts in recorded_values().items():
        lake = lake_type(mysql)
        if lake in ("string", "binary", "float", "double"):
            continue
        landed, misfits = typed(pa.array(texts), mysql, lake)

        back = upcast(landed, "string", mysql).to_pylist()

        for row, (text, again) in enumerate(zip(texts, back)):
            if "zerofill" in mysql or mysql == "year":
                text, again = text.lstrip("0"), again.lstrip("0")
            assert row in misfits or text == again, mysql
