"""Addresses, and which secret belongs to which."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from claw_engine.client.gateways import AddressError, Gateways, client_dir, parse_address


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("ws://nas:18789", "ws://nas:18789/"),
        ("nas", "ws://nas:18789/"),
        ("NAS:1", "ws://nas:1/"),
        ("https://nas", "wss://nas:443/"),
        ("wss://nas/claw", "wss://nas:443/claw"),
        ("http://nas", "ws://nas:18789/"),
        ("ws://[::1]", "ws://[::1]:18789/"),
        ("[::1]:7", "ws://[::1]:7/"),
        (" 192.0.2.7 ", "ws://192.0.2.7:18789/"),
    ],
)
def test_an_address_can_be_written_in_many_ways(text: str, url: str) -> None:
    assert parse_address(text).url == url


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ftp://nas", "ftp"),
        ("ws://", "no host"),
        ("ws://nas:0x1", "no gateway address"),
        ("ws://nas:99999", "no gateway address"),
        ("ws://me:secret@nas", "--token"),
        ("ws://nas/?token=1", "no ?"),
        ("ws://nas#token=1", "no ?"),
        ("ws://[::1", "no gateway address"),
    ],
)
def test_what_is_no_address_is_said(text: str, word: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse_address(text)
    assert word in caught.value.title


@pytest.mark.parametrize(
    ("text", "clear"),
    [
        ("ws://nas", True),
        ("ws://192.0.2.7", True),
        ("wss://nas", False),
        ("ws://127.0.0.1", False),
        ("ws://127.8.8.8", False),
        ("ws://[::1]", False),
        ("ws://localhost", False),
        ("ws://localhost.evil.example", True),
    ],
)
def test_what_others_could_read(text: str, clear: bool) -> None:
    assert parse_address(text).in_the_clear is clear


@pytest.mark.parametrize("other", ["ws://nas:1", "wss://nas:18789", "ws://nas2", "ws://nas.lan"])
def test_a_credential_belongs_to_one_address(tmp_path: Path, other: str) -> None:
    kept = Gateways(tmp_path / "c" / "gateways.json")
    here, there = parse_address("ws://nas/a"), parse_address(other)
    kept.remember(here, "secret")
    kept.trust(here, "ab")
    assert kept.device_token(parse_address("ws://nas:18789/b")) == "secret"  # the path is no place
    assert (kept.known(there), kept.device_token(there), kept.pin(there)) == (False, "", "")


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "c" / "gateways.json"
    Gateways(file).remember(parse_address("nas"), "secret")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_forgetting(tmp_path: Path) -> None:
    kept, where = Gateways(tmp_path / "g.json"), parse_address("nas")
    kept.remember(where, "secret")
    kept.trust(where, "ab")
    kept.forget_token(where)
    assert (kept.device_token(where), kept.pin(where), kept.known(where)) == ("", "ab", True)
    assert kept.forget(where) and not kept.known(where)
    assert not kept.forget(where)


@pytest.mark.parametrize(
    ("env", "path"),
    [
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/claw-tui"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/claw-tui"),
        ({"HOME": "/h"}, "/h/.config/claw-tui"),
    ],
)
def test_where_it_is_kept(env: dict[str, str], path: str) -> None:
    assert str(client_dir(env)) == path
