"""The conversation as blocks: what the operator reads, in order. Mutable, versioned, O(1) to
append to; a view caches what it painted by (id, version, width)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

TEXT_CLIP = 8_000
"""Characters of a tool result that are kept for the screen (the engine's own live limit)."""
LIVE_CLIP = 64_000
"""Characters of live tool output kept while a tool runs; older ones are counted and dropped."""


class BlockKind(StrEnum):
    USER = "user"
    RUN = "run"
    CALL = "call"
    REASONING = "reasoning"
    TEXT = "text"
    TOOL = "tool"
    NOTICE = "notice"
    ERROR = "error"


class ToolStatus(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    OK = "ok"
    ERROR = "error"
    SKIPPED = "skipped"
    ABORTED = "aborted"
    INTERRUPTED = "interrupted"


class Growing(Struct):
    """Text that grows by deltas. `cursor`-based reading lets a view fetch only what is new."""

    chunks: list[str] = field(default_factory=list)
    total: int = 0
    """Characters ever appended, dropped ones included."""

    def append(self, delta: str) -> None:
        self.chunks.append(delta)
        self.total += len(delta)

    def replace(self, text: str) -> None:
        self.chunks = [text]
        self.total = len(text)

    def text(self) -> str:
        if len(self.chunks) > 1:
            self.chunks = ["".join(self.chunks)]
        return self.chunks[0] if self.chunks else ""

    def keep_tail(self, chars: int) -> None:
        """Forget all but the last `chars` characters; amortised O(1) per appended character."""
        text = self.text()
        if len(text) > 2 * chars:
            self.chunks = [text[-chars:]]


class ToolInfo(Struct):
    call_id: str
    name: str
    args: dict[str, object]
    status: ToolStatus = ToolStatus.RUNNING
    approval_id: str = ""
    expires_at_ms: int = 0
    decision: str = ""
    """How it was allowed or refused, in words; empty when nobody was asked."""
    duration_ms: int | None = None
    exit_code: int | None = None


class RunInfo(Struct):
    status: str = "running"
    model: str = ""
    is_ai: bool = True
    state: str = "queued"
    started_ms: int = 0
    duration_ms: int | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    calls: int = 0
    context_tokens: int = 0
    note: str = ""
    resumed: bool = False
    """Whether a restart had cut it short and it was taken up again."""


class CallNode(Struct):
    """One call to a model, as a line of a past run."""

    id: str
    number: int
    cause: str = ""
    tokens: int = 0
    measured: bool = False
    output: int = 0
    cached: int = 0
    ttft_ms: int | None = None
    duration_ms: int | None = None
    cost: float | None = None
    error: str = ""


class Block(Struct):
    id: str
    kind: BlockKind
    run_id: str = ""
    ts_ms: int = 0
    body: Growing = field(default_factory=Growing)
    open: bool = False
    version: int = 0
    source: str = ""
    """User blocks: where the message came from. Reasoning and text: the call's id."""
    tool: ToolInfo | None = None
    run: RunInfo | None = None
    duration_ms: int | None = None
    call: CallNode | None = None

    @property
    def text(self) -> str:
        return self.body.text()

    @property
    def open_run(self) -> bool:
        """Whether this is the header of a run that goes on."""
        return self.run is not None and self.run.status == "running"

    def touch(self) -> None:
        self.version += 1

    def signature(self) -> tuple[object, ...]:
        """What two views of the same conversation must agree on: content, not timings."""
        if self.tool is not None:
            tool = self.tool
            return (self.kind, tool.name, repr(sorted(tool.args.items())), tool.status, self.text)
        if self.run is not None:
            return (self.kind, self.run_id, self.run.status)
        return (self.kind, self.text)


def clip_output(text: str) -> str:
    """A tool result as the screen keeps it, the same for live and reloaded views."""
    return text if len(text) <= TEXT_CLIP else text[:TEXT_CLIP]


_SUMMARY_KEYS = ("command", "path", "file_path", "url", "query", "pattern", "message", "text")


def summarize_args(args: dict[str, object]) -> str:
    """One line that says what a call does: its main argument, else all of them."""
    for key in _SUMMARY_KEYS:
        value = args.get(key)
        if isinstance(value, str) and value:
            return value
    return "  ".join(f"{key}={value}" for key, value in args.items())
