"""Environment variables that make another program run than the one on the card.

Pure tables. Blocked names (OpenClaw 2026.2.26, host execution) are removed from every child's
environment and refused as overrides; the decision core asks when one is left. Steering names are
the operator's own business, but what runs unasked does not get them.
"""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.approvals.wordlist import words

_NAMES = words(
    "NODE_OPTIONS NODE_PATH PYTHONHOME PYTHONPATH PERL5LIB PERL5OPT RUBYLIB RUBYOPT BASH_ENV ENV "
    "GIT_EXTERNAL_DIFF SHELL SHELLOPTS PS4 GCONV_PATH IFS SSLKEYLOGFILE"
)
_PREFIXES = ("DYLD_", "LD_", "BASH_FUNC_")
_STEERING = words(
    "PYTHONSTARTUP PYTHONINSPECT PYTHONBREAKPOINT PYTHONUSERBASE PYTHONEXECUTABLE PERLLIB "
    "PERL5DB PYTHONPYCACHEPREFIX NODE_REPL_EXTERNAL_MODULE LUA_INIT LUA_PATH LUA_CPATH "
    "TCLLIBPATH CLASSPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS JRUBY_OPTS PHPRC "
    "PHP_INI_SCAN_DIR R_PROFILE R_PROFILE_USER R_ENVIRON R_ENVIRON_USER JULIA_LOAD_PATH "
    "GUILE_LOAD_PATH EMACSLOADPATH AWKPATH AWKLIBPATH BASHOPTS CDPATH GLOBIGNORE PROMPT_COMMAND "
    "KSH_ENV FPATH POSIXLY_CORRECT EDITOR VISUAL PAGER BROWSER LESSOPEN LESSCLOSE LESS MANPAGER "
    "MANOPT TAR_OPTIONS RSYNC_RSH RSYNC_CONNECT_PROG CVS_RSH SVN_SSH SUDO_ASKPASS SSH_ASKPASS "
    "GREP_OPTIONS MAKEFLAGS MFLAGS GNUMAKEFLAGS RUSTC_WRAPPER GOFLAGS TERMINFO TERMINFO_DIRS "
    "TERMCAP GLIBC_TUNABLES LOCPATH NLSPATH HOSTALIASES MALLOC_TRACE GETCONF_DIR"
)
"""Code that an interpreter loads, programs that other programs start, and their options; the C
library's own."""
_STEERING_PREFIXES = ("GIT_", "LUA_INIT_", "npm_config_", "NPM_CONFIG_")
# Removed from children all the same, but they change nothing for a program started by its path.
_HARMLESS_HERE = frozenset({"SHELL"})


def is_blocked(name: str) -> bool:
    """Whether a child must not get this variable, nor a model set it."""
    return name in _NAMES or name.startswith(_PREFIXES)


def dangerous(env: Mapping[str, str]) -> tuple[str, ...]:
    """Names in `env` that could redirect a program which was allowed by its path, sorted."""
    return tuple(sorted(n for n in env if is_blocked(n) and n not in _HARMLESS_HERE))


def for_unasked(env: Mapping[str, str], search_path: str) -> dict[str, str]:
    """The environment for a command that rules allowed: without what steers other programs, and
    with a PATH in which the agent's own folders come last."""
    kept = {name: value for name, value in env.items() if not _steers(name)}
    return {**kept, "PATH": search_path}


def _steers(name: str) -> bool:
    return name in _STEERING or name.startswith(_STEERING_PREFIXES)
