"""What all tests share: which of them must not run beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, tests of one group run in one of them (`--dist loadgroup`).

    Tool tests use fixed run ids, and stopping a run ends every process that carries its id;
    terminal tests wait for frames that a busy neighbour would delay.
    """
    for item in items:
        parts = item.path.relative_to(HERE).parts if item.path.is_relative_to(HERE) else ()
        if parts[:1] == ("tools",):
            item.add_marker(pytest.mark.xdist_group("processes"))
        elif parts[:1] == ("e2e",) or "terminal" in parts:
            item.add_marker(pytest.mark.xdist_group("terminals"))
