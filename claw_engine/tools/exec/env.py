"""The environment a command gets: the operator's own, without keys, tokens and dangerous names.

Pure over mappings. It does not know where the base environment or the secrets come from.
Names and rules: OpenClaw 2026.2.26, exec on the gateway host; the removal of credentials is ours.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from claw_engine.approvals.environment import is_blocked
from claw_engine.config.secret_names import is_secret_name
from claw_engine.patterns import late

RUN_ID = "CLAW_RUN_ID"
CALL_ID = "CLAW_CALL_ID"
"""Tells the children of one tool call from those of another call of the same run."""

FIXED = frozenset({"PATH", "HOME", "ZDOTDIR", "PWD", "OLDPWD"})
"""Inherited, but not to be set by a call: they decide which program runs or which files it reads
before its own. The working directory has a parameter of its own."""

HARMLESS = frozenset(
    {
        "TERM",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LC_MESSAGES",
        "COLORTERM",
        "NO_COLOR",
        "FORCE_COLOR",
        "TZ",
        "COLUMNS",
        "LINES",
    }
)
"""Names that change only how output looks; setting any other one makes an allowed command ask."""

_OWN_PREFIXES = ("OPENCLAW_", "CLAW_", "CLAWDBOT_", "NOTIFY_SOCKET", "LISTEN_")
_CREDENTIAL = late(
    r"(API_?KEY|APIKEY|ACCESS_KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|PRIVATE_KEY|_PAT$|_AUTH$|^AUTH_|_DSN$|COOKIE|WEBHOOK)"
)
_NAME = late(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SECRET_CHARS = 6
"""A resolved value shorter than this is not searched for inside other variables."""


class EnvRefused(ValueError):
    """The call's `env` sets a name it must not set; the message names it and says why."""


def is_credential(name: str) -> bool:
    """Whether a variable's name says that it holds a key, token or password."""
    return _CREDENTIAL.search(name.upper()) is not None or is_secret_name(name)


def base_environment(
    inherited: Mapping[str, str],
    *,
    secret_names: Collection[str] = (),
    secret_values: Collection[str] = (),
    path_prepend: Collection[str] = (),
) -> dict[str, str]:
    """What a command inherits.

    Removed: dangerous names, the engine's own, names that look like a credential, the names that
    the configuration read through `${…}`, and any variable whose value contains one of
    `secret_values`. `path_prepend` directories come first on PATH.
    """
    values = [value for value in secret_values if len(value) >= _SECRET_CHARS]
    exact = set(secret_values) - {""}
    names = set(secret_names)
    kept: dict[str, str] = {}
    for name, value in inherited.items():
        if name in names or name.upper().startswith(_OWN_PREFIXES):
            continue
        if is_blocked(name.upper()) or is_credential(name):
            continue
        if value in exact or any(secret in value for secret in values):
            continue
        kept[name] = value
    folders = [*path_prepend, *(kept.get("PATH") or os.defpath).split(os.pathsep)]
    # A relative or empty entry would mean another folder wherever the command is.
    kept["PATH"] = os.pathsep.join(folder for folder in folders if folder.startswith("/"))
    kept["TERM"] = "dumb"
    return kept


def checked_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """The call's own variables. Raises EnvRefused for a name it must not set."""
    for name, value in overrides.items():
        if _NAME.match(name) is None:
            raise EnvRefused(f"env: {name!r} is not a variable name (letters, digits, _).")
        if is_blocked(name.upper()):
            raise EnvRefused(
                f"Security Violation: env may not set {name}: it can load other code into "
                "programs. Leave it out."
            )
        if name.upper() in FIXED:
            raise EnvRefused(
                f"Security Violation: env may not set {name}. Write the full path of the program "
                "in the command, or use workdir."
            )
        if name.upper().startswith(_OWN_PREFIXES):
            raise EnvRefused(f"Security Violation: env may not set {name}: reserved.")
        if "\0" in value:
            raise EnvRefused(f"env: the value of {name} contains a NUL character.")
    return dict(overrides)


def changes(overrides: Mapping[str, str]) -> tuple[str, ...]:
    """`NAME=value` of every override, in name order, for the operator to read."""
    return tuple(f"{name}={overrides[name]}" for name in sorted(overrides))


def needs_asking(overrides: Mapping[str, str]) -> tuple[str, ...]:
    """The overridden names that can change what an allowed command does."""
    return tuple(sorted(name for name in overrides if name not in HARMLESS))
