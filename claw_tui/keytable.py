"""Every key of the console in one table: stable ids, what it does, where it works. Bindings,
hint line, help page and palette all come from here, so they cannot disagree."""

from __future__ import annotations

from msgspec import Struct


class Key(Struct, frozen=True):
    """`where`: any (also while typing), type, nav, pane (view 1), list, talk (conversation),
    card, queue (view 8), rows (pages with a list), runs (interrupted ones), prompt (view 2), past
    (past runs and their replay), logs (view 9), lanes (view 6), ask (pages that take
    `y`), choose (those with choices)."""

    id: str
    keys: str
    shown: str
    label: str
    help: str
    where: str
    action: str
    priority: bool = False


# fmt: off
_PROMPT = (
    ("older", "left_square_bracket", "[", "older call", "the call before", "call(-1)"),
    ("newer", "right_square_bracket", "]", "newer", "the call after", "call(1)"),
    ("follow", "f", "f", "newest", "the newest call, and follow what comes", "follow"),
    ("calls", "tab", "tab", "calls", "this run's calls; again: the session's", "calls"),
    ("compare", "equals_sign", "=", "compare", "compare with another call; there: fold", "compare"),
    ("search", "slash", "/", "search", "search inside the request", "search"),
    ("edit", "e", "e", "edit", "edit the file a part comes from ($EDITOR)", "edit"),
    ("copy", "c", "c", "copy", "copy the selected part (OSC 52)", "copy_part"),
    ("left", "h,left", "h", "before", "the part before; the match before", "leaf(-1)"),
    ("right", "l,right", "l", "next", "the next part; the next match", "leaf(1)"),
)
_PAST = (
    ("play", "space", "space", "play", "replay: go on, stop; from the end: start again", "play"),
    ("back", "left", "←", "step back", "one step of the run back", "step(-1)"),
    ("on", "right", "→", "step", "one step of the run on", "step(1)"),
    ("faster", "plus,equals_sign", "+", "faster", "replay twice as fast", "speed(1)"),
    ("slower", "minus", "-", "slower", "replay half as fast", "speed(-1)"),
    ("leaf_back", "h", "h", "page back", "earlier page of an opened output", "leaf(-1)"),
    ("leaf", "l", "l", "page on", "later page of an opened output", "leaf(1)"),
    ("close", "escape", "esc", "back", "back to where you came from", "back"),
    ("prompt", "p", "p", "prompt", "what was sent in the selected call", "prompt"),
)
_LOGS = (
    ("follow", "f", "f", "follow", "keep to the end of the log, or stop", "follow"),
    ("filter", "slash", "/", "filter", "filter by words (! inverts)", "filter"),
    ("level", "l", "l", "level", "all levels, info, warn, error and worse", "level"),
    ("copy", "c", "c", "copy", "copy the record (OSC 52)", "copy_record"),
)
_LANES = (
    ("wider", "plus,equals_sign", "+", "wider", "one slot more in the lane", "width(1)"),
    ("narrower", "minus", "-", "narrower", "one slot less in the lane", "width(-1)"),
    ("reset", "0", "0", "default", "the lane as wide as configured", "width(0)"),
    ("earlier", "K", "K", "earlier", "let the waiting message go one place earlier", "place(-1)"),
    ("later", "J", "J", "later", "let the waiting message go one place later", "place(1)"),
    ("drop", "d", "d", "drop", "drop the waiting message; its sender is told", "drop"),
)
# fmt: on
VIEW_KEYS = tuple(
    Key(f"{where}.{name}", keys, shown, label, words, where, action)
    for where, table in (("prompt", _PROMPT), ("past", _PAST), ("logs", _LOGS), ("lanes", _LANES))
    for name, keys, shown, label, words, action in table
)
"""Of the views that have keys of their own."""

KEYS = (
    Key(
        "app.stop",
        "ctrl+c",
        "ctrl+c",
        "stop",
        "copy a selection; else stop this session's run; twice: quit dialog",
        "any",
        "ladder",
        True,
    ),
    Key(
        "app.approvals",
        "f2",
        "F2",
        "approvals",
        "open the approval queue",
        "any",
        "approvals",
        True,
    ),
    Key("app.palette", "ctrl+p", "ctrl+p", "palette", "search all commands", "any", "palette"),
    Key(
        "app.redraw",
        "ctrl+l",
        "ctrl+l",
        "redraw",
        "paint the whole screen again",
        "any",
        "redraw",
        True,
    ),
    Key("app.quit_now", "ctrl+q", "ctrl+q", "quit", "quit dialog", "any", "ask_quit", True),
    Key(
        "type.nav",
        "escape",
        "esc",
        "nav",
        "close a popup; else leave the message as it is and give the letters their meaning",
        "type",
        "nav",
    ),
    Key("type.send", "enter", "enter", "send", "send the message", "type", ""),
    Key(
        "type.newline",
        "ctrl+j",
        "ctrl+j",
        "newline",
        "a new line (also: \\ before enter)",
        "type",
        "",
    ),
    Key("type.history", "up", "↑", "history", "earlier messages, from the first line", "type", ""),
    Key("nav.type", "i", "i", "type", "write a message", "nav", "type"),
    Key("nav.approvals", "a", "a", "approvals", "open the approval queue", "nav", "approvals"),
    Key("nav.stop", "s", "s", "stop", "stop the selected session's run", "nav", "stop"),
    Key(
        "nav.stop_all",
        "X",
        "X X",
        "stop all",
        "twice within 2 s: stop every run and pause",
        "nav",
        "stop_all",
    ),
    Key("nav.pause", "P", "P", "pause", "start no new runs; again: resume", "nav", "pause"),
    Key(
        "nav.next",
        "tab,right_square_bracket",
        "tab",
        "next pane",
        "next pane, also ]",
        "pane",
        "pane(1)",
    ),
    Key(
        "nav.prev",
        "shift+tab,left_square_bracket",
        "[",
        "pane back",
        "previous pane",
        "pane",
        "pane(-1)",
    ),
    Key("nav.zoom", "z", "z", "zoom", "one pane on the whole screen; again: back", "pane", "zoom"),
    Key("nav.copy", "c", "c", "copy", "copy what is selected (OSC 52)", "nav", "copy"),
    Key(
        "nav.mouse",
        "M",
        "M",
        "mouse",
        "hand the mouse back to the terminal; again: take it",
        "nav",
        "mouse",
    ),
    Key("nav.mode", "m", "m", "permission mode", "what runs without asking", "nav", "mode"),
    Key("nav.command", "colon", ":", "command", "command line", "nav", "command"),
    Key("nav.help", "question_mark", "?", "all keys", "all keys", "nav", "keys"),
    Key("nav.quit", "q", "q", "quit", "quit dialog", "nav", "ask_quit"),
    Key("list.down", "j,down", "j", "down", "down", "list", "move(1)"),
    Key("list.up", "k,up", "k", "up", "up", "list", "move(-1)"),
    Key("list.top", "g,home", "g", "first", "first", "list", "edge(-1)"),
    Key("list.end", "G,end", "G", "last", "last", "list", "edge(1)"),
    Key("list.page_down", "pagedown", "pgdn", "page", "a page down", "list", "page(1)"),
    Key("list.page_up", "pageup", "pgup", "page", "a page up", "list", "page(-1)"),
    Key("list.open", "enter", "enter", "open", "open or close what is selected", "list", "open"),
    Key("list.filter", "slash", "/", "filter", "filter this list (! inverts)", "list", "filter"),
    Key(
        "talk.left",
        "h,left",
        "h",
        "page back",
        "earlier page of an opened output",
        "talk",
        "leaf(-1)",
    ),
    Key(
        "talk.right", "l,right", "l", "page on", "later page of an opened output", "talk", "leaf(1)"
    ),
    Key("card.allow", "y", "y", "once", "allow this once", "card", "allow"),
    Key("card.deny", "n", "n", "deny", "deny", "card", "deny"),
    Key(
        "card.reason",
        "r",
        "r",
        "deny with reason",
        "deny, with a reason for the model",
        "card",
        "reason",
    ),
    Key(
        "card.always", "w", "w", "always…", "see what allowing always would mean", "card", "always"
    ),
    Key(
        "card.details", "enter", "enter", "details", "all fields of the request", "card", "details"
    ),
    Key("card.mark", "space", "space", "mark", "mark for one answer to several", "card", "mark"),
    Key("card.later", "escape", "esc", "later", "back; nothing is decided", "card", "later"),
    Key("card.down", "j,down", "j", "next", "next request", "card", "move(1)"),
    Key("card.up", "k,up", "k", "previous", "previous request", "card", "move(-1)"),
    Key(
        "card.scroll_down",
        "pagedown",
        "pgdn",
        "scroll",
        "scroll the command",
        "card",
        "scroll_card(1)",
    ),
    Key(
        "card.scroll_up",
        "pageup",
        "pgup",
        "scroll",
        "scroll the command",
        "card",
        "scroll_card(-1)",
    ),
    Key(
        "queue.filter",
        "slash",
        "/",
        "filter",
        "filter the queue by command, session or agent",
        "queue",
        "filter",
    ),
    Key("queue.group", "o", "o", "group", "list by agent and program, or by age", "queue", "group"),
    Key(
        "queue.section",
        "tab,right_square_bracket",
        "tab",
        "rules",
        "the queue, the rules, the history; [ goes back",
        "queue",
        "section(1)",
    ),
    Key(
        "queue.section_back",
        "shift+tab,left_square_bracket",
        "[",
        "back",
        "the section before",
        "queue",
        "section(-1)",
    ),
    Key("rules.undo", "u", "u", "undo", "take the selected rule or grant back", "queue", "undo"),
    Key("rows.down", "j,down", "j", "down", "down", "rows", "move(1)"),
    Key("rows.up", "k,up", "k", "up", "up", "rows", "move(-1)"),
    Key("rows.top", "g,home", "g", "first", "first", "rows", "edge(-1)"),
    Key("rows.end", "G,end", "G", "last", "last", "rows", "edge(1)"),
    Key("rows.more", "pagedown", "pgdn", "scroll", "scroll the details", "rows", "scroll(1)"),
    Key("rows.less", "pageup", "pgup", "scroll", "scroll the details", "rows", "scroll(-1)"),
    Key("rows.open", "enter", "enter", "open", "go to what it is about", "rows", "open"),
    Key("rows.back", "escape", "esc", "console", "back to the console", "rows", "back"),
    Key("runs.resume", "r", "r", "resume", "take the run up again", "runs", "resume"),
    Key("runs.discard", "d", "d", "discard", "let the run be", "runs", "discard"),
    *VIEW_KEYS,
    Key("ask.yes", "y", "y", "yes", "do it", "ask", "yes"),
    Key("ask.scroll_down", "pagedown", "pgdn", "scroll", "scroll", "ask", "scroll(1)"),
    Key("ask.scroll_up", "pageup", "pgup", "scroll", "scroll", "ask", "scroll(-1)"),
    Key("choose.down", "j,down", "j", "next", "next choice", "choose", "choose(1)"),
    Key("choose.up", "k,up", "k", "previous", "previous choice", "choose", "choose(-1)"),
    Key("ask.no", "escape,n", "esc", "back", "back; nothing is decided", "ask", "no"),
)
