"""`claw approvals explain COMMAND`: what would happen to it and why, without a running engine.

Reads the configuration, the rules file and the programs; starts nothing and writes nothing. Exit
code 0 when it would run unasked, 3 when it would ask, 4 when it is refused, 2 when the
configuration cannot be used.
"""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from claw_engine.approvals.evaluate import Verdict, evaluate
from claw_engine.approvals.explain import lines, to_json
from claw_engine.approvals.fsview import RealFs
from claw_engine.approvals.policy import Ask, ExecPolicy, Security
from claw_engine.approvals.safe_bins import configured
from claw_engine.approvals.store import ExecApprovals
from claw_engine.cli.attach import state_dir
from claw_engine.cli.output import note, say, say_json, visible
from claw_engine.config.load import config_path
from claw_engine.config.read import ConfigReader
from claw_engine.config.settings import Settings
from claw_engine.errors import ClawError
from claw_engine.paths import StateDir
from claw_engine.sessions.routing import workspace_of
from claw_engine.tools.exec.env import base_environment
from claw_engine.world import World, real_world

EXIT = {"allow": 0, "ask": 3, "deny": 4}


class Unusable(ClawError):
    """The configuration or the directory cannot be used."""


def run(args: Namespace) -> int:
    found = StateDir(state_dir(args))
    told = to_json(_decide(args, found))
    if args.json:
        say_json(told)
    else:
        for line in lines(told):
            say(visible(line))
    return EXIT[str(told["verdict"])]


def _decide(args: Namespace, found: StateDir) -> Verdict:
    # Its timers and processes are not used; the rules file needs its disk.
    world = real_world()
    settings = _settings(world, found)
    chosen = settings.tools.exec
    workspace = workspace_of(settings, found, args.agent)
    cwd = os.path.abspath(args.cwd or workspace)  # noqa: PTH100 - symlinks stay
    env = base_environment(
        settings.env or os.environ,
        secret_names=settings.resolved_env_names,
        secret_values=settings.secret_values,
        path_prepend=chosen.path_prepend,
    )
    safe = configured(chosen.safe_bins, chosen.safe_bin_trusted_dirs, chosen.safe_bin_profiles)
    caller = ExecPolicy(Security(chosen.security), Ask(chosen.ask), safe_bins=safe)
    rules = ExecApprovals(world, found.exec_approvals, warn=note)
    policy = rules.policy_for(args.agent, caller).tightened(chosen.security, chosen.ask)
    return evaluate(
        args.command, cwd, {**env, "PWD": cwd}, policy, RealFs(), workspace=str(workspace)
    )


def _settings(world: World, found: StateDir) -> Settings:
    path: Path = config_path(found, os.environ)
    reading = ConfigReader(path, dict(os.environ), world.disk).read(1)
    if reading.settings is None:
        problem = reading.problems[0] if reading.problems else None
        raise Unusable(
            f"The configuration {path} cannot be used{f': {problem.message}' if problem else ''}.",
            hint="Mend it; `claw config validate` says where.",
        )
    return reading.settings
