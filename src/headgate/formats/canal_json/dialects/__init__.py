"""The dialects of canal-json: one module per dialect, one entry here.

The first one is written if a sink names no dialect.
"""

from __future__ import annotations

from headgate.formats.canal_json.dialects.base import Dialect
from headgate.formats.canal_json.dialects.canal import CANAL
from headgate.formats.canal_json.dialects.oms import OMS
from headgate.formats.canal_json.dialects.tencent import TENCENT
from headgate.formats.canal_json.dialects.ticdc import TICDC

DIALECTS: dict[str, Dialect] = {d.name: d for d in (CANAL, TICDC, OMS, TENCENT)}
