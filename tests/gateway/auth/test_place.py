"""SE-01: who is local, behind which proxy, and which web page may talk to us."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.gateway.auth.place import (
    PROXY_HEADERS,
    Arrival,
    Place,
    host_name,
    is_local_name,
    locate,
    origin_allowed,
)

HERE = {"host": "127.0.0.1:18789"}

SE_01: list[tuple[str, dict[str, str], Place, Place]] = [
    # name, headers, without a trusted proxy, with 127.0.0.1 trusted
    ("a", {}, Place("127.0.0.1", True), Place("127.0.0.1", True)),
    ("b", {"x-forwarded-for": "203.0.113.9"}, Place("127.0.0.1", False, True),
     Place("203.0.113.9", False)),
    ("c", {"forwarded": "for=203.0.113.9"}, Place("127.0.0.1", False, True),
     Place("203.0.113.9", False)),
    ("d", {"x-real-ip": "203.0.113.9"}, Place("127.0.0.1", False, True), Place("unknown", False)),
    ("e", {"x-forwarded-for": "127.0.0.1"}, Place("127.0.0.1", False, True),
     Place("127.0.0.1", True)),
    ("f", {"host": "claw.example.org"}, Place("127.0.0.1", False), Place("127.0.0.1", False)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "headers", "alone", "trusted"), SE_01)
def test_se_01(name: str, headers: dict[str, str], alone: Place, trusted: Place) -> None:
    arrival = Arrival("127.0.0.1", {**HERE, **headers})
    assert locate(arrival, ()) == alone
    assert locate(arrival, ("127.0.0.1",)) == trusted


@pytest.mark.parametrize(
    ("forwarded", "trusted", "ip", "local"),
    [
        ("127.0.0.1, 203.0.113.9", ("127.0.0.1",), "203.0.113.9", False),
        ("203.0.113.9, 10.0.0.2", ("127.0.0.1", "10.0.0.0/8"), "203.0.113.9", False),
        ("203.0.113.9, 10.0.0.2", ("127.0.0.1",), "10.0.0.2", False),
        ("127.0.0.1, junk", ("127.0.0.1",), "unknown", False),
        ("[2001:db8::1]:4711", ("127.0.0.1",), "2001:db8::1", False),
        ("203.0.113.9:80", ("127.0.0.1",), "203.0.113.9", False),
    ],
)
def test_the_right_most_untrusted_address_counts(
    forwarded: str, trusted: tuple[str, ...], ip: str, local: bool
) -> None:
    found = locate(Arrival("127.0.0.1", {**HERE, "x-forwarded-for": forwarded}), trusted)
    assert (found.ip, found.local, found.hidden) == (ip, local, False)


def test_x_real_ip_counts_only_when_asked_for() -> None:
    arrival = Arrival("127.0.0.1", {**HERE, "x-real-ip": "203.0.113.9"})
    assert locate(arrival, ("127.0.0.1",), real_ip=True) == Place("203.0.113.9", False)


@given(
    st.sampled_from(PROXY_HEADERS),
    st.text(st.characters(codec="latin-1", min_codepoint=32), max_size=40),
    st.lists(st.sampled_from(["10.0.0.0/8", "192.0.2.1", "junk"]), max_size=3),
)
def test_no_proxy_header_of_a_stranger_makes_anybody_local(
    name: str, value: str, trusted: list[str]
) -> None:
    for peer in ("127.0.0.1", "::1", "203.0.113.9"):
        found = locate(Arrival(peer, {**HERE, name: value}), trusted)
        assert not found.local
        assert found.hidden


@pytest.mark.parametrize("peer", ["203.0.113.9", "fe80::1%eth0", "", "junk"])
def test_who_is_not_on_loopback_is_never_local(peer: str) -> None:
    assert not locate(Arrival(peer, HERE), ()).local


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True), ("localhost:18789", True), ("LOCALHOST.:1", True),
        ("box.localhost", True), ("127.0.0.1", True), ("127.9.9.9:1", True), ("[::1]:18789", True),
        ("[::ffff:127.0.0.1]", True), ("claw.example.org", False), ("127.0.0.1.evil.org", False),
        ("localhost.evil.org", False), ("", False), ("[::1", False), ("0.0.0.0", False),
        ("evil.org#localhost", False), ("user@localhost", True),
    ],
)  # fmt: skip
def test_names_of_this_machine(host: str, local: bool) -> None:
    assert is_local_name(host) is local


@given(st.text(max_size=60))
def test_any_host_header_can_be_read(text: str) -> None:
    assert isinstance(host_name(text), str)


@pytest.mark.parametrize(
    ("origin", "host", "peer", "allowed"),
    [
        ("http://127.0.0.1:18789", "127.0.0.1:18789", "127.0.0.1", True),
        ("http://localhost:5173", "127.0.0.1:18789", "127.0.0.1", True),
        ("https://claw.example.org", "127.0.0.1:18789", "127.0.0.1", True),  # configured
        ("https://evil.org", "127.0.0.1:18789", "127.0.0.1", False),
        # A page that had its own name point to us (DNS rebinding).
        ("http://evil.org", "evil.org", "127.0.0.1", False),
        ("null", "127.0.0.1:18789", "127.0.0.1", False),
        ("file://", "127.0.0.1:18789", "127.0.0.1", False),
        ("", "127.0.0.1:18789", "127.0.0.1", False),
        ("http://localhost", "127.0.0.1:18789", "203.0.113.9", False),
        ("http://localhost.evil.org", "127.0.0.1:18789", "127.0.0.1", False),
        ("http://[::1", "127.0.0.1:18789", "127.0.0.1", False),
    ],
)
def test_web_pages(origin: str, host: str, peer: str, allowed: bool) -> None:
    arrival = Arrival(peer, {"host": host, "origin": origin})
    assert origin_allowed(arrival, ("https://claw.example.org/",), needed=False) is allowed


def test_a_web_client_must_say_where_it_comes_from() -> None:
    arrival = Arrival("127.0.0.1", HERE)
    assert origin_allowed(arrival, (), needed=False)
    assert not origin_allowed(arrival, (), needed=True)


def test_the_host_header_counts_only_when_asked_for() -> None:
    arrival = Arrival("192.0.2.7", {"host": "nas:18789", "origin": "http://nas:18789"})
    assert not origin_allowed(arrival, (), needed=True)
    assert origin_allowed(arrival, (), needed=True, host_fallback=True)
