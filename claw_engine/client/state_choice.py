"""Which state directory: one rule for `claw` and `claw-tui`. Standard library only, and light.

`--state-dir` > OPENCLAW_STATE_DIR > the recorded choice > `~/.openclaw` when nothing is there yet.
Beside an existing `~/.openclaw` a person decides once: work in a copy, or start fresh, both in
`~/.claw`. Using it as it is comes with a session store that honours OpenClaw's locks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from claw_engine.errors import ClawError

TYPE_CHECKING = False  # pathlib is imported where a path is made: a tenth of `claw status`
if TYPE_CHECKING:
    from pathlib import Path

NOT_COPIED = ("*.sock", "*.lock", "door.key", "lanes.json", "*.tmp")


class ChoiceNeeded(ClawError):
    """There is an `~/.openclaw` of somebody else's and nobody has said what to do with it."""

    def __init__(self, existing: Path, ours: Path) -> None:
        super().__init__(
            f"{existing} exists already and no state directory has been chosen.",
            hint=f"Name one with --state-dir (for a fresh start: --state-dir {ours}), "
            "or start claw-tui in a terminal, which asks.",
        )
        self.existing = existing
        self.ours = ours


class ChoiceFailed(ClawError):
    """The choice could not be carried out or was not made."""


def resolve(flag: str | None, env: Mapping[str, str]) -> Path:
    """The state directory, absolute. Creates and records nothing.

    Raises ChoiceNeeded, and ChoiceFailed for a flag with nothing in it: most often a script's
    variable that is not set, which must not mean another directory.
    """
    from pathlib import Path

    return Path(resolve_text(flag, env))


def resolve_text(flag: str | None, env: Mapping[str, str]) -> str:
    """As `resolve`."""
    if flag is not None and not flag.strip():
        raise ChoiceFailed("The value of --state-dir is empty.", hint="Name a directory.")
    named = flag or env.get("OPENCLAW_STATE_DIR", "").strip()
    if named:
        return os.path.join(os.getcwd(), _expand(named, env))
    chosen = _recorded(env)
    if chosen is not None:
        return chosen
    from pathlib import Path

    existing, ours = Path(_home(env)) / ".openclaw", Path(_home(env)) / ".claw"
    if existing.exists():
        raise ChoiceNeeded(existing, ours)
    return str(existing)


def resolve_for_start(
    flag: str | None,
    env: Mapping[str, str],
    ask: Callable[[str], str] | None,
    say: Callable[[str], None],
) -> Path:
    """As `resolve`, for a command that starts an engine: asks a person if it must, and records.

    `ask` shows a prompt and returns the answer; None when there is no terminal. Raises
    ChoiceNeeded then, ChoiceFailed for "quit" and for a copy that fails.
    """
    try:
        path = resolve(flag, env)
    except ChoiceNeeded as needed:
        if ask is None:
            raise
        path = _decide(needed, ask, say)
        record(path, env)
        return path
    by_default = not flag and not env.get("OPENCLAW_STATE_DIR", "").strip()
    if by_default and recorded(env) is None:
        # The next start must not take our own directory for somebody else's.
        record(path, env)
    return path


def choice_file(env: Mapping[str, str]) -> Path:
    """Where the choice is kept."""
    from pathlib import Path

    return Path(_choice_file(env))


def recorded(env: Mapping[str, str]) -> Path | None:
    """The recorded choice; None when there is none that is an absolute path."""
    from pathlib import Path

    text = _recorded(env)
    return None if text is None else Path(text)


def record(path: Path, env: Mapping[str, str]) -> None:
    """Remember a choice. Raises ChoiceFailed."""
    file = choice_file(env)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
        temporary.write_text(f"{path}\n", "utf-8")
        temporary.replace(file)
    except OSError as error:
        raise ChoiceFailed(
            f"Cannot record the state directory in {file}: {error.strerror}.",
            hint=f"Start with --state-dir {path} instead.",
        ) from error


def _decide(needed: ChoiceNeeded, ask: Callable[[str], str], say: Callable[[str], None]) -> Path:
    existing, ours = needed.existing, needed.ours
    newer = (existing / "state" / "openclaw.sqlite").exists()
    there = ours.exists()
    say(f"An OpenClaw state directory is here already: {existing}")
    say("claw-tui does not write into it: two programs writing one session would damage it.")
    if newer:
        say("It belongs to a newer OpenClaw (sessions in SQLite), which cannot be copied.")
    may_copy = not newer and not there
    if may_copy:
        say(f"  c  copy it to {ours} and work in the copy")
    say(f"  f  {'use what is in' if there else 'start fresh in'} {ours}")
    say("  q  quit (another place: --state-dir)")
    while True:
        match ask("Your choice: ").strip().lower():
            case "c" | "copy" if may_copy:
                _copy(existing, ours, say)
                return ours
            case "f" | "fresh":
                return ours
            case "q" | "quit":
                raise ChoiceFailed("No state directory chosen.", hint="Name one with --state-dir.")
            case _:
                continue


def _copy(source: Path, target: Path, say: Callable[[str], None]) -> None:
    import shutil  # lazily: only a first start copies

    partial = target.with_name(f"{target.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        ignore = shutil.ignore_patterns(*NOT_COPIED)
        shutil.copytree(source, partial, symlinks=True, ignore=ignore)
        partial.chmod(0o700)
        partial.rename(target)
    except (OSError, shutil.Error) as error:
        raise ChoiceFailed(
            f"Copying {source} to {target} failed: {error}.",
            hint=f"Remove {partial}, make room, and start again; {source} is as it was.",
        ) from error
    say(f"Copied to {target}.")
    try:
        mentions = str(source) in (target / "openclaw.json").read_text("utf-8")
    except (OSError, ValueError):
        mentions = False
    if mentions:
        say(f"Note: {target / 'openclaw.json'} names paths in {source}; they still point there.")


def _choice_file(env: Mapping[str, str]) -> str:
    config = env.get("XDG_CONFIG_HOME", "")
    base = config if config.startswith("/") else os.path.join(_home(env), ".config")
    return os.path.join(base, "claw-tui", "state-dir")


def _recorded(env: Mapping[str, str]) -> str | None:
    try:
        with open(_choice_file(env), encoding="utf-8") as file:
            text = file.read().strip()
    except (OSError, ValueError):
        return None
    return text if text.startswith("/") else None


def _home(env: Mapping[str, str]) -> str:
    return env.get("OPENCLAW_HOME") or env.get("HOME") or os.path.expanduser("~")


def _expand(text: str, env: Mapping[str, str]) -> str:
    if text == "~" or text.startswith("~/"):
        return _home(env) + text[1:]
    return text
