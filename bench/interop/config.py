"""The openclaw.json that both programs read in a run."""

from __future__ import annotations

import json
from pathlib import Path

from bench.interop.peer import TOKEN


def write_config(state: Path, base_url: str, port: int, work: Path) -> None:
    """One provider on loopback, a workspace, a token; nothing that leaves this machine."""
    model = {
        "id": "fake-1",
        "name": "Scripted",
        "reasoning": False,
        "input": ["text"],
        "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 200_000,
        "maxTokens": 8192,
    }
    provider = {
        "baseUrl": base_url,
        "apiKey": "no-key",
        "api": "openai-completions",
        "models": [model],
    }
    config = {
        "gateway": {
            "mode": "local",
            "port": port,
            "bind": "loopback",
            "auth": {"mode": "token", "token": TOKEN},
        },
        "models": {"mode": "replace", "providers": {"fake": provider}},
        "agents": {
            "defaults": {
                "model": {"primary": "fake/fake-1"},
                "workspace": str(state.parent / "workspace"),
                "heartbeat": {"every": "0m"},
            }
        },
        "discovery": {"mdns": {"mode": "off"}},
        "update": {"checkOnStart": False},
        "logging": {"file": str(work / "openclaw.log")},
    }
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    (state / "openclaw.json").write_text(json.dumps(config, indent=2))
