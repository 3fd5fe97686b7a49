"""The model of a power cut: what it may take away and what it may not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from bench.soak.power import PlatterModel
from tests.support.crash_disk import (
    Created,
    Cut,
    MadeFolder,
    Removed,
    Renamed,
    Step,
    Synced,
    SyncedFolder,
    Wrote,
)

A, B = "/d/a", "/d/b"
SAFE = (Created(A, 0o600), Wrote(A, 0, b"one\n"), Synced(A), SyncedFolder("/d"))


def states(steps: Sequence[Step], *, strict: bool = False) -> set[tuple[tuple[str, bytes], ...]]:
    """Every state that 150 draws give."""
    model = PlatterModel(strict_folders=strict)
    for step in steps:
        model.take(step)
    drawn = (model.survivors(random.Random(seed)) for seed in range(150))
    return {tuple(sorted((path, data) for path, (data, _) in one.items())) for one in drawn}


def contents(steps: Sequence[Step], path: str = A) -> set[bytes | None]:
    return {dict(state).get(path) for state in states(steps)}


@pytest.mark.parametrize(
    ("more", "may_be"),
    [
        ((), {b"one\n"}),
        ((Wrote(A, 4, b"two\n"), Synced(A)), {b"one\ntwo\n"}),
        ((Wrote(A, 4, b"tw"),), {b"one\n", b"one\nt", b"one\ntw"}),
        ((Cut(A, 1),), {b"one\n", b"o"}),
        ((Cut(A, 1), Synced(A)), {b"o"}),
        ((Removed(A),), {b"one\n", None}),
        ((Removed(A), SyncedFolder("/d")), {None}),
    ],
)
def test_what_is_safe_stays_and_the_rest_may_go(
    more: tuple[Step, ...], may_be: set[bytes | None]
) -> None:
    assert contents((*SAFE, *more)) == may_be


def test_a_missing_write_leaves_nul_bytes_before_a_later_one() -> None:
    found = contents((*SAFE, Wrote(A, 4, b"2\n"), Wrote(A, 6, b"3\n")))
    assert b"one\n\0\x003\n" in found
    assert b"one\n" in found
    assert all(data is not None and data.startswith(b"one\n") for data in found)


def test_a_rename_without_fsync_of_the_folder_may_be_lost_but_never_half() -> None:
    replaced = (Created(B, 0o600), Wrote(B, 0, b"new"), Synced(B), Renamed(B, A))
    assert {dict(s).get(A) for s in states((*SAFE, *replaced))} == {b"one\n", b"new"}
    assert contents((*SAFE, *replaced, SyncedFolder("/d"))) == {b"new"}


def test_a_new_file_whose_folder_was_not_fsynced_may_be_missing() -> None:
    assert contents((Created(A, 0o600), Wrote(A, 0, b"x"), Synced(A))) == {None, b"x"}


def test_a_new_folder_counts_as_safe_unless_told_to_be_strict() -> None:
    made = (MadeFolder("/d"), *SAFE)
    assert contents(made) == {b"one\n"}
    assert len(states(made, strict=True)) == 2
    assert len(states((*made, SyncedFolder("")), strict=True)) == 1
