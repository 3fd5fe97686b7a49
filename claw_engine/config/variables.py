"""`${VAR}` in strings, environment SecretRefs, and the `env` block.

A reference that cannot be resolved takes its key out and is reported: the literal `${VAR}` is
never handed on. Reads the environment it is given, changes none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct, field

from claw_engine.config.problems import KeyPath, ProblemKind
from claw_engine.config.secret_names import is_secret_name

_REFERENCE = re.compile(r"\$(\$?)\{([A-Z_][A-Z0-9_]*)\}")

# Names that steer an interpreter, loader or shell: never taken from a configuration file.
# fmt: off
_REFUSED_NAMES = frozenset({
    "NODE_OPTIONS", "NODE_PATH", "PYTHONHOME", "PYTHONPATH", "PERL5LIB", "PERL5OPT", "RUBYLIB",
    "RUBYOPT", "BASH_ENV", "ENV", "GIT_EXTERNAL_DIFF", "SHELL", "SHELLOPTS", "PS4", "GCONV_PATH",
    "IFS", "SSLKEYLOGFILE", "PATH", "HOME", "ZDOTDIR",
})
# Part of any child's ordinary surroundings: using them in a path makes them no secret.
_ORDINARY = frozenset({
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "PWD", "TMPDIR", "TERM", "TZ", "HOSTNAME",
    "EDITOR",
})
# fmt: on
_REFUSED_PREFIXES = ("DYLD_", "LD_", "BASH_FUNC_")
_ORDINARY_PREFIXES = ("XDG_", "LC_")


class Finding(Struct):
    """A place to report; the loader adds file, line and column."""

    kind: ProblemKind
    path: KeyPath
    message: str


class Substitution(Struct):
    """What a pass over the configuration used and missed."""

    env: Mapping[str, str]
    used: set[str] = field(default_factory=set)
    secrets: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)

    @property
    def scrub_names(self) -> frozenset[str]:
        """Variables used, without the ordinary ones a child needs (HOME, PATH, XDG_…)."""
        return frozenset(name for name in self.used if not _is_ordinary(name))


def _is_ordinary(name: str) -> bool:
    return name in _ORDINARY or name.startswith(_ORDINARY_PREFIXES)


def is_refused_name(name: str) -> bool:
    """Whether a configuration may not set this environment variable."""
    return name.upper() in _REFUSED_NAMES or name.upper().startswith(_REFUSED_PREFIXES)


class _MissingError(Exception):
    pass


_GONE = object()


def substitute(value: object, state: Substitution, path: KeyPath = ()) -> object:
    """`value` with every reference resolved; keys whose reference is missing are left out."""
    resolved = _walk(value, state, path)
    return {} if resolved is _GONE else resolved


def _walk(value: object, state: Substitution, path: KeyPath) -> object:
    if isinstance(value, dict):
        if _is_secret_ref(value):
            return _secret_ref(value, state, path)
        kept = ((key, _walk(item, state, (*path, key))) for key, item in value.items())
        return {key: item for key, item in kept if item is not _GONE}
    if isinstance(value, list):
        items = (_walk(item, state, (*path, at)) for at, item in enumerate(value))
        return [item for item in items if item is not _GONE]
    if isinstance(value, str):
        return _string(value, state, path)
    return value


def _string(value: str, state: Substitution, path: KeyPath) -> object:
    sensitive = _is_sensitive_path(path)
    if "${" in value:
        try:
            value = _REFERENCE.sub(lambda match: _lookup(match, state, sensitive), value)
        except _MissingError as missing:
            state.findings.append(
                Finding(
                    ProblemKind.MISSING_VARIABLE,
                    path,
                    f"the environment variable {missing} is not set or empty; "
                    "this key is treated as not given",
                )
            )
            return _GONE
    if sensitive and value:
        state.secrets.add(value)
    return value


def _lookup(match: re.Match[str], state: Substitution, sensitive: bool) -> str:
    if match.group(1):
        return match.group(0)[1:]
    name = match.group(2)
    value = state.env.get(name, "")
    if not value:
        raise _MissingError(name)
    state.used.add(name)
    if sensitive or is_secret_name(name):
        state.secrets.add(value)
    return value


def _is_sensitive_path(path: KeyPath) -> bool:
    """The last named step decides: `apiKeys[2]` is judged by `apiKeys`."""
    names = [step for step in path if isinstance(step, str)]
    return bool(names) and is_secret_name(names[-1])


def _is_secret_ref(value: Mapping[str, object]) -> bool:
    return value.keys() == {"source", "provider", "id"} and value["source"] in (
        "env",
        "file",
        "exec",
    )


def _secret_ref(value: Mapping[str, object], state: Substitution, path: KeyPath) -> object:
    if value["source"] != "env":
        state.findings.append(
            Finding(
                ProblemKind.UNSUPPORTED,
                path,
                f"secret references of source {value['source']!r} are not read by this version; "
                "use ${VAR} or source 'env'",
            )
        )
        return _GONE
    return _string(f"${{{value['id']}}}", state, path)


def apply_env_block(block: object, base: Mapping[str, str]) -> tuple[dict[str, str], list[Finding]]:
    """The environment with the file's `env` block under it, and what was refused.

    `env.X` and `env.vars.X` set a variable only where `base` has none.
    """
    env = dict(base)
    findings: list[Finding] = []
    if not isinstance(block, Mapping):
        return env, findings
    state = Substitution(base)
    for path, name, value in _env_entries(block):
        if is_refused_name(name):
            findings.append(
                Finding(ProblemKind.IGNORED_NAME, path, "this variable may not be set from a file")
            )
            continue
        resolved = _walk(value, state, path)
        if isinstance(resolved, str) and not env.get(name):
            env[name] = resolved
    return env, findings


def _env_entries(block: Mapping[str, object]) -> list[tuple[KeyPath, str, str]]:
    entries: list[tuple[KeyPath, str, str]] = []
    nested = block.get("vars")
    if isinstance(nested, Mapping):
        entries += [(("env", "vars", k), k, v) for k, v in nested.items() if isinstance(v, str)]
    entries += [(("env", k), k, v) for k, v in block.items() if isinstance(v, str)]
    return entries
