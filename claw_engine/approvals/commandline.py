"""A command line as it was understood: values only."""

from __future__ import annotations

from msgspec import Struct


class Segment(Struct, frozen=True):
    """One simple command: its source text, its words without quotes, and what is not literal.

    `expansions` are the pieces that the shell would replace when it runs (`$HOME`, `*`, `~`);
    `assignments` are the `NAME=value` words that stood before the command.
    """

    text: str
    argv: tuple[str, ...]
    expansions: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()


class Parsed(Struct, frozen=True):
    """A split command line. `operators[i]` joins `segments[i]` and `segments[i + 1]`.

    `problems` are plain words; when there is any, segments are a best effort for display only.
    """

    segments: tuple[Segment, ...] = ()
    operators: tuple[str, ...] = ()
    redirections: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Understood in full, and every word is literal."""
        return (
            not self.problems
            and bool(self.segments)
            and not any(segment.expansions for segment in self.segments)
        )
