"""A conservative splitter for POSIX shell command lines: pure, text in, values out.

It decides nothing and knows no rule, file or program. What it does not fully understand it names
in `problems`, and whoever decides must then ask a person. Source of the list: OpenClaw 2026.2.26
refuses the same constructs; comments, keywords, assignments and expansions are refused besides.
"""

from __future__ import annotations

from collections.abc import Callable

from claw_engine.approvals.commandline import Parsed as Parsed
from claw_engine.approvals.commandline import Segment as Segment
from claw_engine.approvals.hidden import hidden_problems
from claw_engine.approvals.quoting import DROPPED_IN_DOUBLE, ESCAPED, IN_DOUBLE, unescaped
from claw_engine.approvals.wordlist import words
from claw_engine.patterns import late

MAX_CHARS = 65_536
MAX_SEGMENTS = 64
MAX_STEPS = 1000
"""Special characters (runs of them count once) that are looked at; a command with more asks."""

RESERVED = words(
    "! { } [[ ]] if then else elif fi for select while until do done case esac function time "
    "coproc in"
)
_PLAIN = late(r"[^ \t\n'\"\\$`<>()&;|*?\[{}~#]+")
_BRACKETS = late(r"[()]+")
# A whole word that is plain or quoted through and through: the common case, in one go.
_SIMPLE = late(
    r"[ \t]*+(?:([^ \t\n'\"\\$`<>()&;|*?\[{}~#]++)|'([^']*+)'|\"([^\"\\$`]*+)\")(?=[ \t\n;|&]|$)"
)
# The same without groups: Python 3.11 loses count of groups inside a possessive repetition.
_SIMPLE_RUN = late(
    r"(?:[ \t]*+(?:[^ \t\n'\"\\$`<>()&;|*?\[{}~#]++|'[^']*+'|\"[^\"\\$`]*+\")(?=[ \t\n;|&]|$))++"
    r"[ \t]*+"
)
_NEVER_SIMPLE = "&;|\n\\$`<>()*?[{}~#"
_BLANKS = late(r"[ \t]+")
_BLANK_RUN = late(r"[ \t\n]+")
_VARIABLE = late(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9?$!@*#-])")
_ASSIGNMENT = late(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_REDIRECT = late(r"<<<|<<-?|<>|<&|<|>>|>\||>&|>")


def parse(command: str) -> Parsed:
    """Split a command line. Never raises; total over all strings."""
    if len(command) > MAX_CHARS:
        return Parsed(problems=(f"is longer than {MAX_CHARS} characters",))
    return _Splitter(command).run()


class _Splitter:
    """One pass over the text; regular expressions take whole runs of ordinary characters."""

    def __init__(self, command: str) -> None:
        self.text = command
        self.at = 0
        self.steps = 0
        self.problems: dict[str, None] = dict.fromkeys(hidden_problems(command))
        self.segments: list[Segment] = []
        self.operators: list[str] = []
        self.redirections: list[str] = []
        self.start = 0  # of the segment
        self.words: list[str] = []
        self.expansions: list[str] = []
        self.word: list[str] | None = None
        self.word_start = 0
        self.bare = True  # the word so far holds no quote and no expansion
        self.target_of: str | None = None  # the redirection operator that waits for its word
        self.heredoc = False
        self.odd = bool(self.problems)  # characters that only look like blanks, for one

    def run(self) -> Parsed:
        text, end = self.text, len(self.text)
        while self.at < end and self._step():
            char = text[self.at]
            between = self.word is None and self.target_of is None
            if between and char not in _NEVER_SIMPLE and self._simple_words():
                continue
            action = _ACTIONS.get(char)
            if action is not None:
                action(self)
                continue
            plain = _PLAIN.match(text, self.at)
            self._add(plain.group() if plain else char)
            self.at += len(plain.group()) if plain else 1
        self._finish()
        return Parsed(
            tuple(self.segments),
            tuple(self.operators[: max(0, len(self.segments) - 1)]),
            tuple(self.redirections),
            tuple(self.problems),
        )

    def _simple_words(self) -> bool:
        """Take as many whole words as are plain, or quoted through and through."""
        run = _SIMPLE_RUN.match(self.text, self.at)
        if run is None:
            return False
        taken = run.group()
        if self.odd or "'" in taken or '"' in taken:
            found = _SIMPLE.findall(taken)
            self.words += [plain or single or double for plain, single, double in found]
        else:
            self.words += taken.split()
        self.at = run.end()
        return True

    def _step(self) -> bool:
        """Whether to look further; over the limit, what is left is one word."""
        self.steps += 1
        if self.steps <= MAX_STEPS:
            return True
        self._problem(f"has more than {MAX_STEPS} special characters")
        self._add(self.text[self.at :])
        self.at = len(self.text)
        return False

    def _finish(self) -> None:
        self._end_word()
        if self.target_of is not None:
            self._problem("ends in the middle of a redirection")
        if not self.words:
            if not self.segments:
                self._problem("is empty")
            elif self.operators and self.operators[-1] not in (";", "\n"):
                self._problem("ends with an operator")
            if len(self.operators) >= len(self.segments) > 0:
                self.operators.pop()
        else:
            self._end_segment()

    # words

    def _problem(self, words: str) -> None:
        self.problems[words] = None

    def _add(self, piece: str) -> None:
        if self.word is None:
            self.word = []
            self.word_start = self.at
            self.bare = True
        self.word.append(piece)

    def _end_word(self) -> None:
        if self.word is None:
            return
        word, raw = "".join(self.word), self.text[self.word_start : self.at]
        self.word = None
        if self.target_of is not None:
            self.redirections.append(f"{self.target_of} {raw}")
            self.target_of = None
        else:
            self.words.append(word)

    def _end_segment(self) -> None:
        argv = tuple(self.words)
        assignments: tuple[str, ...] = ()
        if "=" in argv[0]:
            argv, assignments = self._assignments(argv)
        if argv and argv[0] in RESERVED:
            self._problem(f"uses the shell keyword {argv[0]}")
        if argv and argv[0] == "":
            self._problem("has an empty program name")
        if len(self.segments) < MAX_SEGMENTS:
            text = self.text[self.start : self.at].strip()
            self.segments.append(Segment(text, argv, tuple(self.expansions), assignments))
        else:
            self._problem(f"has more than {MAX_SEGMENTS} parts")
        self.words = []
        self.expansions = []

    def _assignments(self, words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words after those that set a variable, and these."""
        count = 0
        while count < len(words) and _ASSIGNMENT.match(words[count]):
            count += 1
        if count:
            self._problem("sets a variable for the command: " + words[0].split("=")[0])
        return words[count:], words[:count]

    def _operator(self, operator: str) -> None:
        if self.word is not None:
            self._end_word()
        if self.target_of is not None:
            self._problem("has a redirection without a target")
            self.target_of = None
        if not self.words:
            self._problem("has an operator without a command before it")
        else:
            self._end_segment()
            if len(self.operators) < len(self.segments) <= MAX_SEGMENTS:
                self.operators.append(operator)
        self.at += len(operator)
        self.start = self.at

    # one method a special character

    def _blank(self) -> None:
        self._end_word()
        blanks = _BLANKS.match(self.text, self.at)
        if blanks:
            self.at = blanks.end()

    def _newline(self) -> None:
        blank = _BLANK_RUN.match(self.text, self.at)
        after = blank.end() if blank else self.at + 1
        self._end_word()
        if after == len(self.text):
            self.at = after
            return
        if self.segments or self.words:
            self._problem("has more than one line")
        if self.words:
            self._operator("\n")
        if self.heredoc:  # what follows is its body, not commands
            after = len(self.text)
        self.at = self.start = after

    def _single(self) -> None:
        close = self.text.find("'", self.at + 1)
        if close < 0:
            self._problem("has a quote that is not closed")
            close = len(self.text)
        self._add(self.text[self.at + 1 : close])
        self.bare = False
        self.at = min(close + 1, len(self.text))

    def _double(self) -> None:
        text = self.text
        self._add("")
        self.bare = False
        self.at += 1
        while self.at < len(text) and self._step():
            run = IN_DOUBLE.match(text, self.at)
            if run:
                self._add(unescaped(run.group(), DROPPED_IN_DOUBLE))
                self.at = run.end()
                continue
            match text[self.at]:
                case '"':
                    self.at += 1
                    return
                case "\\":  # at the end, or before a line break
                    self._problem("continues a line with a backslash")
                    self._add(text[self.at : self.at + 2])
                    self.at += 2
                case "`":
                    self._backtick()
                case _:
                    self._dollar(in_double=True)
        self._problem("has a quote that is not closed")

    def _backslash(self) -> None:
        run = ESCAPED.match(self.text, self.at)
        if run:
            self._add(unescaped(run.group()))
            self.bare = False
            self.at = run.end()
            return
        following = self.text[self.at + 1 : self.at + 2]
        if following == "":
            self._problem("ends with a backslash")
        elif following == "\n":
            self._problem("continues a line with a backslash")
        self._add(following)
        self.bare = False
        self.at += 1 + len(following)

    def _dollar(self, in_double: bool = False) -> None:
        text, at = self.text, self.at
        variable = _VARIABLE.match(text, at)
        following = text[at + 1 : at + 2]
        if variable:
            self._expansion(variable.group())
            return
        if following == "(":
            self._problem("runs another command inside $( )")
        elif following == "{":
            self._problem("uses ${ }, which can compute its text")
        elif following == "[":
            self._problem("uses $[ ] arithmetic")
        elif following in ("'", '"') and following and not in_double:
            self._problem("uses $ before a quote, which hides its text")
        elif following not in ("", " ", "\t", "\n", '"'):
            self.expansions.append("$")
        self._add("$")
        self.at += 1

    def _backtick(self) -> None:
        self._problem("runs another command inside backticks")
        self._add("`")
        self.at += 1

    def _expansion(self, piece: str) -> None:
        self.expansions.append(piece)
        self._add(piece)
        self.bare = False
        self.at += len(piece)

    def _glob(self) -> None:
        self._expansion(self.text[self.at])

    def _brace(self) -> None:
        char = self.text[self.at]
        alone = self.word is None and self.text[self.at + 1 : self.at + 2] in ("", " ", "\t", "\n")
        if alone and not self.words:
            self._add(char)  # the keyword check at the end of the segment names it
            self.at += 1
        else:
            self._expansion(char)

    def _tilde(self) -> None:
        previous = self.text[self.at - 1] if self.word else ""
        if previous in ("", "=", ":"):
            self._expansion("~")
        else:
            self._add("~")
            self.at += 1

    def _hash(self) -> None:
        if self.word is not None:
            self._add("#")
            self.at += 1
            return
        self._problem("contains a comment")
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _parenthesis(self) -> None:
        self._problem("uses parentheses (a subshell or a function)")
        self._end_word()
        run = _BRACKETS.match(self.text, self.at)
        self.at = run.end() if run else self.at + 1

    def _ampersand(self) -> None:
        if self.text.startswith("&&", self.at):
            self._operator("&&")
        elif self.text.startswith("&>", self.at):
            self._end_word()
            self.at += 1
            self._redirect()
        else:
            self._problem("starts something in the background with &")
            self._operator("&")

    def _semicolon(self) -> None:
        if self.text.startswith(";;", self.at):
            self._problem("uses ;; outside of a case")
        self._operator(";")

    def _pipe(self) -> None:
        if self.text.startswith("|&", self.at):
            self._problem("pipes errors with |&")
            self._operator("|&")
        else:
            self._operator("||" if self.text.startswith("||", self.at) else "|")

    def _redirect(self) -> None:
        self._problem("redirects input or output")
        prefix = "&" if self.at and self.text[self.at - 1] == "&" and self.word is None else ""
        if self.word is not None and self.bare and "".join(self.word).isdigit():
            prefix, self.word = "".join(self.word), None
        self._end_word()
        match = _REDIRECT.match(self.text, self.at)
        operator = match.group() if match else self.text[self.at]
        if self.text.startswith("(", self.at + len(operator)):
            self._problem("runs another command inside <( ) or >( )")
        if operator in ("<<", "<<-"):
            self.heredoc = True
            self._problem("carries a here-document")
        self.target_of = prefix + operator
        self.at += len(operator)


_ACTIONS: dict[str, Callable[[_Splitter], None]] = {
    **dict.fromkeys(" \t", _Splitter._blank),
    "\n": _Splitter._newline,
    "'": _Splitter._single,
    '"': _Splitter._double,
    "\\": _Splitter._backslash,
    "$": _Splitter._dollar,
    "`": _Splitter._backtick,
    **dict.fromkeys("<>", _Splitter._redirect),
    **dict.fromkeys("()", _Splitter._parenthesis),
    "&": _Splitter._ampersand,
    ";": _Splitter._semicolon,
    "|": _Splitter._pipe,
    **dict.fromkeys("*?[", _Splitter._glob),
    **dict.fromkeys("{}", _Splitter._brace),
    "~": _Splitter._tilde,
    "#": _Splitter._hash,
}
