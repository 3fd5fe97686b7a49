"""The inbox is tested with the same small engine as the agent."""

from __future__ import annotations

from tests.agent.conftest import bench

__all__ = ["bench"]
