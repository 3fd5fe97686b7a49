"""Where the door's socket can be. The first place that takes a socket is used.

`<state>/claw.sock`; when that path is too long or its file system knows no sockets,
`$XDG_RUNTIME_DIR/claw-<hash>.sock`, else `/tmp/claw-<uid>/claw-<hash>.sock`. Clients read the
choice from gateway.lock, so only this module computes it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from claw_engine.errors import ClawError
from claw_engine.paths import StateDir

MAX_SOCKET_PATH = 100
"""Bytes; Linux allows 107 and macOS 103 (sun_path)."""


class DoorError(ClawError):
    """No place for the socket, or a place that is not ours."""


def candidates(
    state_dir: StateDir, env: Mapping[str, str], uid: int, tmp: Path = Path("/tmp")
) -> Iterator[Path]:
    """Places in order of preference; the fallback directory is made when its turn comes.

    Raises DoorError when the directory under /tmp belongs to somebody else.
    """
    root = os.path.realpath(state_dir.root)
    name = f"claw-{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.sock"
    runtime = env.get("XDG_RUNTIME_DIR", "")
    places = [state_dir.door_sock]
    if runtime.startswith("/"):
        places.append(Path(runtime) / name)
    for place in places:
        if len(os.fsencode(place)) <= MAX_SOCKET_PATH and place.parent.is_dir():
            yield place
    yield _private_dir(tmp / f"claw-{uid}", uid) / name


def _private_dir(path: Path, uid: int) -> Path:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise DoorError(f"Cannot make {path} for the local door: {error.strerror}.") from error
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o077:
        raise DoorError(
            f"{path} is not a private directory of this user; the local door stays shut.",
            hint=f"Remove {path}, or set XDG_RUNTIME_DIR.",
        )
    return path
