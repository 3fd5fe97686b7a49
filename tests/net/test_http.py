from __future__ import annotations

import subprocess
import sys

import pytest

from claw_engine.net.http import HttpTimeouts, http_client, is_loopback


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://127.1.2.3/", True),
        ("http://localhost:8000", True),
        ("http://box.localhost", True),
        ("http://[::1]:8000/v1", True),
        ("http://192.168.1.4:11434", False),
        ("https://api.openai.com/v1", False),
        ("http://localhost.example.com", False),
    ],
)
def test_which_urls_are_this_machine(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


@pytest.mark.parametrize(("url", "trusts"), [("http://127.0.0.1:1", False), ("http://a.b", True)])
async def test_a_loopback_client_ignores_the_proxy_settings(url: str, trusts: bool) -> None:
    client = await http_client(url, HttpTimeouts())
    try:
        assert client.trust_env is trusts
        assert client.follow_redirects is False
    finally:
        await client.aclose()


def test_the_module_itself_loads_no_http_library() -> None:
    code = (
        "import sys, claw_engine.net.http, claw_engine.models.catalog; "
        "print([m for m in ('httpx2', 'pydantic') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
