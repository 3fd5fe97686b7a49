"""`claw call METHOD [JSON]`: any method of the gateway, answer as JSON."""

from __future__ import annotations

import json
from argparse import Namespace

from claw_engine.cli.attach import client
from claw_engine.cli.output import say_json
from claw_engine.errors import InvalidRequest


def run(args: Namespace) -> int:
    try:
        params = json.loads(args.params)
    except ValueError as error:
        raise InvalidRequest(f"The parameters are not JSON: {error}.") from error
    if not isinstance(params, dict):
        raise InvalidRequest("The parameters must be a JSON object.", hint="For example: {}")
    with client(args) as engine:
        say_json(engine.call(args.method, params, timeout=86_400.0))
    return 0
