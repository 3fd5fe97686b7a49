from __future__ import annotations

import pytest

from claw_engine.net.retry_after import retry_after_ms

NOW_MS = 1_796_028_000_000  # 2026-11-30 08:40:00 UTC


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2000),
        ({"retry-after": "0.25"}, 250),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": "Mon, 30 Nov 2026 08:40:30 GMT"}, 30_000),
        ({"Retry-After": "Mon, 30 Nov 2026 08:00:00 GMT"}, 0),
        ({"Retry-After": "Mon, 30 Nov 2026 10:40:30 +0200"}, 30_000),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After-Ms": "350", "Retry-After": "9"}, 350),
    ],
)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], expected: int | None) -> None:
    assert retry_after_ms(headers, NOW_MS) == expected
