"""A real tokenizer, the measure of the estimates: OpenAI's vocabularies, from a wheel."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any


@cache
def _encoding(name: str) -> Any:
    with warnings.catch_warnings():
        # It reads its vocabulary through a part of importlib.resources that is out of fashion.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai  # its vocabulary takes 0.2 s and 70 MB: only for whoever counts

        return bpe_openai.get_encoding(name)


def real(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of `text`; half a surrogate pair counts as the sign for what cannot be read."""
    return len(_encoding(encoding).encode_ordinary(text.encode(errors="replace").decode()))
