"""Takes secrets out of what leaves the engine: config answers, logs, diffs.

Three nets: names of keys that hold secrets, the secret values this configuration and environment
hold, and shapes that tokens have anywhere. Names and shapes follow OpenClaw 2026.2.26; unlike it,
nothing of a token stays readable. Knows no section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from claw_engine.config.secret_names import is_secret_name
from claw_engine.patterns import late

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

MARKER = "__OPENCLAW_REDACTED__"
HIDDEN = "***"
MIN_SECRET_CHARS = 6
"""Shorter values are too common as words: hiding them would blank everything."""

_REFERENCE = late(r"\$\{[A-Z_][A-Z0-9_]*\}")
_SCHEME = late(r"(?i)^(?:bearer|basic|token|bot)\s+(.+)$")
_VALUE = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"',;&}\]]+)"""
_SHAPES: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = (
    (
        late(
            r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
        ),
        rf"\1{HIDDEN}\2",
        ("-----begin ",),
    ),
    (
        late(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)[^\s/:]*:[^\s/]+@"),
        rf"\1{HIDDEN}:{HIDDEN}@",
        ("://",),
    ),
    (
        late(
            r"""(?ix)( authorization["']? \s* [:=] \s* ) (?!\$\{)
            (?: "[^"]*" | '[^']*' | (?:(?:bearer|basic|token|bot)\s+)? [^\s"',}]+ )"""
        ),
        rf"\1{HIDDEN}",
        ("authorization",),
    ),
    (late(r"(?i)\b(bearer\s+)[a-z0-9._~+/=-]{16,}"), rf"\1{HIDDEN}", ("bearer",)),
    (
        late(
            r"""(?i)((?:token|passw(?:or)?d|passphrase|secret|api[-_]?key|private[-_]?key)"""
            r"""["']?\s*[:=]\s*)(?!["']?\$\{)""" + _VALUE
        ),
        rf"\1{HIDDEN}",
        ("token", "passw", "passphrase", "secret", "apikey", "api-key", "api_key", "private"),
    ),
    (
        late(r"""(_KEY["']?\s*[:=]\s*)(?!["']?\$\{)""" + _VALUE),
        rf"\1{HIDDEN}",
        ("_key",),
    ),
    (
        late(r"(?i)(--(?:api-key|token|secret|password)[ =])\S+"),
        rf"\1{HIDDEN}",
        ("--",),
    ),
    (
        late(r"""(?i)([?&](?:key|auth|sig|signature|access_token)=)[^&\s"']+"""),
        rf"\1{HIDDEN}",
        ("?", "&"),
    ),
    (late(r"\b\d{6,12}:[\w-]{30,}"), HIDDEN, tuple(f"{digit}:" for digit in range(10))),
    (
        late(
            r"\b(?:sk-[\w-]{8,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|xox[a-z]-[\w-]{8,}"
            r"|xapp-[\w-]{8,}|gsk_\w{8,}|AIza[\w-]{20,}|pplx-\w{8,}|npm_\w{16,}|AKIA[0-9A-Z]{16}"
            r"|glpat-[\w-]{16,}|hf_\w{16,}|[rs]k_(?:live|test)_\w{16,}|dop_v1_\w{16,}|ya29\.[\w-]{16,}"
            r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
        ),
        HIDDEN,
        (
            "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "xapp-", "gsk_",
            "aiza", "pplx-", "npm_", "akia", "eyj", "glpat-", "hf_", "k_live_", "k_test_",
            "dop_v1_", "ya29.",
        ),
    ),
)  # fmt: skip
"""Shape, what takes its place, and hints: in lower case an ASCII text that has none of a shape's
hints cannot hold it. A log line is looked through nine times without them (200 µs, 10 with)."""


class SecretSource(Protocol):
    """What a redactor needs of the settings."""

    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def secret_values(self) -> frozenset[str]: ...


class Redactor:
    """Hides secrets; `secrets` shorter than MIN_SECRET_CHARS count only under their own key."""

    def __init__(
        self, secrets: Iterable[str] = (), patterns: Iterable[re.Pattern[str]] = ()
    ) -> None:
        self._known = _compile(secrets)
        self._patterns = tuple(patterns)

    @classmethod
    def from_settings(cls, settings: SecretSource, patterns: Iterable[str] = ()) -> Redactor:
        """The redactor of one settings generation; patterns that cannot be read are left out."""
        from_env = (value for name, value in settings.env.items() if is_secret_name(name))
        compiled = (compile_pattern(pattern) for pattern in patterns)
        return cls(
            {*settings.secret_values, *from_env},
            [pattern for pattern in compiled if pattern is not None],
        )

    def text(self, text: str) -> str:
        """The text with known secrets and token shapes replaced by `***`."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        small = text.lower() if text.isascii() else None  # (?i) knows odd relatives of i, k and s
        for shape, replacement, hints in _SHAPES:
            if small is None or any(map(small.__contains__, hints)):
                text = shape.sub(replacement, text)
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text

    def config(self, value: object) -> object:
        """A copy of a configuration value with MARKER for every secret.

        A text in which anything had to be hidden becomes the marker as a whole, so that writing
        it back can restore it (`restore`). `${VAR}` references stay readable.
        """
        return self._walk(value, secret=False)

    def _walk(self, value: object, *, secret: bool) -> object:
        if isinstance(value, Mapping):
            inside = secret and not _is_reference_object(value)
            return {
                self._key(key): self._walk(item, secret=inside or is_secret_name(str(key)))
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._walk(item, secret=secret) for item in value]
        return self._leaf(value, secret)

    def _key(self, key: object) -> str:
        return self._known.sub(HIDDEN, str(key)) if self._known is not None else str(key)

    def _leaf(self, value: object, secret: bool) -> object:
        if isinstance(value, str):
            if not value or _REFERENCE.fullmatch(value):
                return value
            return MARKER if secret or self.text(value) != value else value
        if secret and isinstance(value, int | float) and not isinstance(value, bool):
            return MARKER
        return value


class NewestRedactor:
    """The redactor of the newest settings; the same object while those stay."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._made: tuple[int, Redactor] | None = None

    def __call__(self) -> Redactor:
        settings = self._settings()
        if self._made is None or self._made[0] != settings.generation:
            made = Redactor.from_settings(settings, settings.logging.redact_patterns)
            self._made = (settings.generation, made)
        return self._made[1]


def redact_config(raw: Mapping[str, object], redactor: Redactor | None = None) -> object:
    """The configuration as it may be shown; without a redactor only names and shapes count."""
    return (redactor or Redactor()).config(raw)


class MarkerError(ValueError):
    """A redaction marker stands where nothing was stored: it must not become the value."""


def restore(value: object, stored: object) -> object:
    """`value` with every marker replaced by what `stored` has at that place.

    Items of lists are found by their `id`; those without one by their place, if none came or went:
    no secret may end up with another owner. Raises MarkerError where `stored` has nothing there.
    """
    if value == MARKER:
        if stored is None or stored == MARKER:
            raise MarkerError("a redacted value was sent for a key that holds nothing")
        return stored
    if isinstance(value, Mapping):
        below: Mapping[str, object] = stored if isinstance(stored, Mapping) else {}
        return {key: restore(item, below.get(key)) for key, item in value.items()}
    if isinstance(value, list):
        items = stored if isinstance(stored, list) else []
        by_id = {_id(item): item for item in items if _id(item) is not None}
        same = len(items) == len(value)
        return [
            restore(item, by_id.get(_id(item)) if _id(item) else items[index] if same else None)
            for index, item in enumerate(value)
        ]
    return value


def _id(item: object) -> str | None:
    found = item.get("id") if isinstance(item, Mapping) else None
    return found if isinstance(found, str) and found else None


def compile_pattern(source: str) -> re.Pattern[str] | None:
    """A `logging.redactPatterns` entry, plain or `/x/flags`; None when it cannot be read."""
    slashed = re.fullmatch(r"/(.*)/([a-z]*)", source, re.S)
    body, flags = slashed.groups() if slashed else (source, "i")
    try:
        return re.compile(body, re.I if "i" in flags else 0)
    except re.error:
        return None


def _compile(secrets: Iterable[str]) -> re.Pattern[str] | None:
    forms = {form for secret in secrets for form in _forms(secret)}
    if not forms:
        return None
    ordered = sorted(forms, key=len, reverse=True)
    return re.compile("|".join(re.escape(form) for form in ordered))


def _forms(secret: str) -> Iterator[str]:
    """The value, the credential inside `Bearer …`, and how JSON or a URL would write them."""
    scheme = _SCHEME.match(secret)
    for plain in (secret, scheme.group(1) if scheme else ""):
        if len(plain.strip()) >= MIN_SECRET_CHARS:
            yield plain
            yield json.dumps(plain)[1:-1]
            yield json.dumps(plain, ensure_ascii=False)[1:-1]
            yield quote(plain, safe="")


def _is_reference_object(value: Mapping[str, object]) -> bool:
    return value.keys() == {"source", "provider", "id"}
