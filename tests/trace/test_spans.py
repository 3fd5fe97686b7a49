"""Issue 6, first thing that must hold: every byte of a request belongs to one part or the envelope.

A hundred random requests here; CLAW_SPANS=1000 makes it the number that is promised.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from claw_engine.models.base import ModelRef, Request, decode_span
from claw_engine.models.codecs.openai_chat import wire_text
from claw_engine.models.openai import OpenAIChatModel
from claw_engine.models.rules import RuleBook
from claw_engine.models.transport import Transport
from claw_engine.parts import Part
from claw_engine.trace import contents, reader
from claw_engine.world import real_world
from tests.models.helpers import ask
from tests.support import fake_openai
from tests.trace.random_requests import request
from tests.trace.rig import Rig

MANY = int(os.environ.get("CLAW_SPANS", "100"))
ENVELOPE_MOST = 0.03
WHOLE_BYTES = 40_000
"""From here on the share holds for each request; a "hello" is mostly envelope."""


def parts_of(req: Request) -> dict[str, Part]:
    found = {part.id: part for part in (*req.system, *(tool.part for tool in req.tools))}
    for turn in req.turns:
        found |= {part.id: part for part in (*turn.parts, *turn.reasoning)}
        found |= {call.arguments.id: call.arguments for call in turn.tool_calls}
    return found


def only_envelope(glue: str, req: Request) -> bool:
    """Punctuation, keys and parameters: nothing that anybody wrote."""
    known = {req.model.id, *(call.id for turn in req.turns for call in turn.tool_calls)}
    names = r'"[a-z_]+"|\{\}|\((?:no text|empty message|no output)\)'
    for word in sorted(known, key=len, reverse=True):
        glue = glue.replace(json.dumps(word), "")
    glue = re.sub(names, "", glue)
    return re.fullmatch(r'(?:[\[\]{},:"\s]|\\n|\d+|true|false|null|[a-z_]+)*', glue) is not None


async def test_every_byte_has_an_owner_and_the_server_received_them(tmp_path: Path) -> None:
    sent = envelope = 0
    async with fake_openai.FakeOpenAI() as server:
        world = real_world()
        transport, rules = Transport(world.clock), RuleBook()
        ref = ModelRef("fake", "one", "openai-completions", server.base_url, "sk-secret-key-1")
        model = OpenAIChatModel(ref, world, transport, rules)
        rig = Rig(tmp_path)
        try:
            for seed in range(MANY):
                req = request(seed, ref)
                encoded = model.encode(req)
                server.reply(fake_openai.answer(*fake_openai.text("ok")))
                rig.begin(encoded, run=f"r{seed}", session=f"s{seed % 7}", ref=ref)
                await ask(model, req, encoded)
                body = server.requests[-1].body
                assert body == encoded.body, f"seed {seed}: other bytes arrived"

                known, end, glue, seen = parts_of(req), 0, 0, set()
                for span in encoded.spans:
                    assert span.start == end and span.end >= span.start, f"seed {seed}: a gap"
                    end = span.end
                    if span.part_id is None:
                        glue += span.end - span.start
                        words = body[span.start : span.end].decode()
                        assert only_envelope(words, req), f"seed {seed}: {words[:200]!r}"
                    else:
                        assert span.part_id not in seen, f"seed {seed}: {span.part_id} twice"
                        seen.add(span.part_id)
                        assert decode_span(body, span) == wire_text(known[span.part_id].text)
                assert end == len(body), f"seed {seed}: bytes without an owner"
                if len(body) > WHOLE_BYTES:
                    assert glue <= ENVELOPE_MOST * len(body), f"seed {seed}: {glue}/{len(body)}"
                sent += len(body)
                envelope += glue
            await transport.aclose()

            # The store gives the same back: every part's text, and the body to the byte.
            def check(seed: int, body: bytes) -> None:
                found = reader.call(rig.db, f"r{seed}/call-1")
                assert contents.body(rig.db, found) == body
                known = contents.contents(rig.db, found)
                texts = {part.id: text for part, text in contents.texts(rig.db, known.parts)}
                wanted = parts_of(request(seed, ref))
                assert texts == {id_: wire_text(wanted[id_].text) for id_ in texts}

            rig.flush()
            for seed in range(MANY):
                check(seed, server.requests[seed].body)
            stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
            assert b"sk-secret-key-1" not in stored, "the credential is in the store"
        finally:
            rig.close()
    assert envelope <= ENVELOPE_MOST * sent
    print(f"{MANY} requests, {sent} bytes, envelope {100 * envelope / sent:.2f} %")
