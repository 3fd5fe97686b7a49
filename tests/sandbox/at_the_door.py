"""An attacker's program: finds the door and the key, proves, and asks for the admin's rights."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import sys
from pathlib import Path


def main(state: Path) -> None:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(str(state / "claw.sock"))
    except OSError as error:
        print("no door:", error.strerror)
        return
    lines = sock.makefile("rw", encoding="utf-8")
    nonce = json.loads(lines.readline())["payload"]["nonce"]
    try:
        key = (state / "door.key").read_bytes()
    except OSError as error:
        print("no key:", error.strerror)
        key = b"guess"
    params = {
        "minProtocol": 3,
        "maxProtocol": 3,
        "client": {"id": "cli", "version": "1", "platform": "linux", "mode": "cli"},
        "role": "operator",
        "scopes": ["operator.admin", "operator.approvals"],
        "caps": [],
        "proof": hmac.new(key, nonce.encode(), hashlib.sha256).hexdigest(),
    }
    lines.write(
        json.dumps({"type": "req", "id": "1", "method": "connect", "params": params}) + "\n"
    )
    lines.flush()
    print("GOT in" if json.loads(lines.readline()).get("ok") else "refused")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
