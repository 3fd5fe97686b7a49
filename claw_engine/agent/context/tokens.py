"""Token estimates without a tokenizer: good to about a fifth, cheap enough for every part.

The room must not know any model: an estimate is shown as an estimate, and the figure a provider
reports replaces it as soon as there is one.
"""

from __future__ import annotations

from claw_engine.patterns import late

CHARS_PER_TOKEN = 4
"""Latin text and code: about four characters a token."""

# Han, kana, hangul, full-width forms: nearly one token a character with today's vocabularies.
_WIDE = late(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)
# Other letters outside ASCII (Cyrillic, Greek, Arabic, accents, emoji): about two a token.
_OTHER = late("[^\x00-\x7f]+")


def estimate(text: str) -> int:
    """Tokens that `text` is likely to cost; 0 only for the empty string."""
    if not text:
        return 0
    if text.isascii():
        return -(-len(text) // CHARS_PER_TOKEN)
    wide = sum(map(len, _WIDE.findall(text)))
    foreign = sum(map(len, _OTHER.findall(text))) - wide
    plain = len(text) - wide - foreign
    return wide + -(-foreign // 2) + -(-plain // CHARS_PER_TOKEN)
