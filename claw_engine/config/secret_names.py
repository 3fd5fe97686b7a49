"""Which key and variable names hold secrets, judged by name alone.

The list follows the fields OpenClaw's schema marks sensitive and its name match
(token, password, secret, apiKey …), plus header names.
"""

from __future__ import annotations

from claw_engine.patterns import late

_SECRET = late(
    r"""(?ix)
    (?: token | pass(?:word|wd|phrase) | secret | api[-_]?key | authorization | cookie
      | credentials? | (?:private|encrypt|aes|signing|access|auth)[-_]?key | service[-_]?account
    )$
  | (?: passwords | api[-_]?keys )$
    """
)
# Environment style: FOO_KEY, FOO_PAT, KEY
_SECRET_VARIABLE = late(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PAT)(?:_\d+)?$")


def is_secret_name(name: str) -> bool:
    """Whether a config key, header or environment variable of this name holds a secret."""
    return bool(_SECRET.search(name) or _SECRET_VARIABLE.search(name))
