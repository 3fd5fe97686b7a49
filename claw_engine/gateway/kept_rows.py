"""Session rows as they were last told, while nothing runs in them. Knows no port."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class KeptRows(Struct):
    """Rows beside what they were made of, for one set of defaults; session_rows.py fills it."""

    defaults: Mapping[str, object] = field(default_factory=dict)
    rows: dict[str, tuple[object, dict[str, object]]] = field(default_factory=dict)
