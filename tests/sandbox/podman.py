"""A container engine for tests that needs no registry: podman, its own storage, a busybox image.

`engine()` gives the environment under which the product finds it, or the reason why there is none.
"""

from __future__ import annotations

import atexit
import functools
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

IMAGE = "openclaw-sandbox:bookworm-slim"
_LINKS = (
    "sh", "ls", "cat", "echo", "sleep", "mkdir", "ln", "rm", "touch", "mount", "umount", "mknod",
    "wget", "nc", "ps", "kill", "id", "env", "dd", "head", "true", "stat", "grep", "setsid", "tr",
    "chroot", "unshare", "nsenter", "tail", "wc", "readlink", "seq", "test", "timeout", "ip", "tty",
)  # fmt: skip
_CONF = """
[engine]
runtime = "{runtime}"
cgroup_manager = "cgroupfs"
events_logger = "none"
[engine.runtimes]
{runtime} = ["{program}"]
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=2048:2048"]
"""
_STORAGE = """
[storage]
driver = "vfs"
graphroot = "{root}/graph"
runroot = "{root}/run"
"""
BASE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": os.environ.get("HOME", "/root")}


@functools.cache
def engine() -> dict[str, str] | str:
    """Environment of a podman that just ran a container with limits; else why not."""
    if shutil.which("podman", path=BASE["PATH"]) is None:
        return "podman is not installed"
    busybox = next((p for p in ("/bin/busybox", "/usr/bin/busybox") if _static(p)), None)
    if busybox is None:
        return "there is no static busybox to make an image of"
    reasons = []
    for runtime in ("runc", "crun"):
        program = shutil.which(runtime, path=BASE["PATH"])
        if program is None:
            continue
        root = Path(tempfile.mkdtemp(prefix="claw-podman-"))
        atexit.register(_remove, root)
        env = _configured(root, runtime, program)
        failure = _import(env, busybox) or _try(env)
        if not failure:
            return env
        reasons.append(f"{runtime}: {failure}")
    return "; ".join(reasons) or "there is no runc or crun"


def _static(path: str) -> bool:
    try:
        head = Path(path).read_bytes()
    except OSError:
        return False
    return b"/lib64/ld-linux" not in head[:4096]


def _configured(root: Path, runtime: str, program: str) -> dict[str, str]:
    (root / "containers.conf").write_text(_CONF.format(runtime=runtime, program=program))
    (root / "storage.conf").write_text(_STORAGE.format(root=root))
    return {
        **BASE,
        "CONTAINERS_CONF": str(root / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(root / "storage.conf"),
    }


def _import(env: dict[str, str], busybox: str) -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as image:
        for name in ("bin", "tmp", "var", "var/tmp", "run", "etc", "proc", "sys", "dev",
                     "workspace", "agent", "root"):  # fmt: skip
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            image.addfile(folder)
        image.add(busybox, "bin/busybox")
        for name in _LINKS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            image.addfile(link)
        passwd = tarfile.TarInfo("etc/passwd")
        text = b"root:x:0:0::/root:/bin/sh\n"
        passwd.size = len(text)
        image.addfile(passwd, io.BytesIO(text))
    done = subprocess.run(
        ["podman", "import", "-", IMAGE], env=env, input=buffer.getvalue(), capture_output=True,
        timeout=120, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else _words(done.stderr)


def _try(env: dict[str, str]) -> str:
    argv = ["run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL",
            "--pids-limit", "32", "--memory", "64m", IMAGE, "/bin/true"]  # fmt: skip
    done = podman(env, argv)
    return "" if done.returncode == 0 else _words(done.stderr)


def podman(env: dict[str, str], argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["podman", *argv], env=env, capture_output=True, timeout=120, check=False)


def _words(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split())[-300:]


def _remove(root: Path) -> None:
    env = {
        **BASE,
        "CONTAINERS_CONF": str(root / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(root / "storage.conf"),
    }
    podman(env, ["rm", "-f", "-a", "-t", "0"])
    shutil.rmtree(root, ignore_errors=True)
