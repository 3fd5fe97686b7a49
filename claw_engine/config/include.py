"""`$include`: pull other JSON5 files into the configuration.

A file may only come from below the main file's folder (also through symlinks), is at most 2 MiB,
a regular file without hard links; chains are at most 10 deep and never circular.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from claw_engine.config.parse import (
    MAX_BYTES,
    Document,
    JsonObject,
    Reader,
    SyntaxProblem,
    decode_text,
    parse,
)
from claw_engine.config.problems import KeyPath, Problem, ProblemKind
from claw_engine.paths import contains

MAX_DEPTH = 10
KEY = "$include"


class Includer(Struct):
    """Resolves one configuration; `documents` collects every file that was read."""

    root: Path
    reader: Reader
    documents: list[Document] = field(default_factory=list)

    def expand(self, document: Document, value: JsonObject) -> JsonObject:
        """The value with all includes merged in. Raises SyntaxProblem naming the place."""
        self.documents.append(document)
        chain = (Path(document.file).resolve(),)
        expanded = self._walk(value, document, (), chain)
        assert isinstance(expanded, dict)  # an object stays an object, see _merge_siblings
        return expanded

    def _walk(
        self, value: object, document: Document, path: KeyPath, chain: tuple[Path, ...]
    ) -> object:
        if isinstance(value, list):
            return [self._walk(v, document, (*path, i), chain) for i, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        rest = {
            key: self._walk(item, document, (*path, key), chain)
            for key, item in value.items()
            if key != KEY
        }
        if KEY not in value:
            return rest
        included = self._included(value[KEY], document, path, chain)
        return self._merge_siblings(included, rest, document, path)

    def _merge_siblings(
        self, included: object, rest: JsonObject, document: Document, path: KeyPath
    ) -> object:
        if isinstance(included, dict):
            return merge(included, rest)
        if rest or not path:
            raise self._fail(document, path, "the included file must hold an object here")
        return included

    def _included(
        self, target: object, document: Document, path: KeyPath, chain: tuple[Path, ...]
    ) -> object:
        names = target if isinstance(target, list) else [target]
        if not names or not all(isinstance(name, str) and name for name in names):
            raise self._fail(document, path, "$include takes a file name or a list of file names")
        result: object = {}
        for name in names:
            result = merge(result, self._file(str(name), document, path, chain))
        return result

    def _file(
        self, name: str, document: Document, path: KeyPath, chain: tuple[Path, ...]
    ) -> object:
        target = Path(document.file).parent / name
        if len(chain) > MAX_DEPTH:
            raise self._fail(document, path, f"includes are nested deeper than {MAX_DEPTH}")
        if not contains(self.root, target):
            raise self._fail(document, path, f"{name} lies outside {self.root}")
        real = target.resolve()
        if real in chain:
            names = " → ".join(str(step) for step in (*chain, real))
            raise self._fail(document, path, f"files include each other: {names}")
        inner = Document(str(target), self._read(target, document, path), document.mount + path)
        self.documents.append(inner)
        return self._walk(parse(inner), inner, (), (*chain, real))

    def _read(self, target: Path, document: Document, path: KeyPath) -> str:
        try:
            info = target.stat()
            if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
                raise self._fail(document, path, f"{target} is not a plain file of its own")
            if info.st_size > MAX_BYTES:
                raise self._fail(document, path, f"{target} is larger than 2 MiB")
            return decode_text(self.reader.read_bytes(target), str(target))
        except OSError as error:
            raise self._fail(
                document, path, f"{target} cannot be read: {error.strerror or error}"
            ) from error

    def _fail(self, document: Document, path: KeyPath, message: str) -> SyntaxProblem:
        line, column = document.spans.locate((*path, KEY))
        return SyntaxProblem(
            Problem(
                ProblemKind.INCLUDE,
                document.mount + path,
                message,
                document.file,
                line,
                column,
                fatal=True,
            )
        )


def merge(base: object, over: object) -> object:
    """Objects merge key by key, lists are joined, anything else: `over` wins."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        merged: JsonObject = dict(base)
        for key, value in over.items():
            merged[key] = merge(merged[key], value) if key in merged else value
        return merged
    if isinstance(base, list) and isinstance(over, list):
        return [*base, *over]
    return over
