"""Loads Textual without two modules that the first frame never asks for: they bring a dozen
widgets and tables, an eighth of a start. Whoever uses one of their names gets the real thing."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

LATER = ("textual.command", "rich.table")
"""Textual's application imports names from them and uses these inside functions, as types, and
as the base of a command provider that is not ours."""


class _Late(type):
    """A class that stands for one of the same name in a module that is not loaded yet."""

    _home: str
    _name: str

    def _real(cls) -> object:
        return getattr(import_module(cls._home), cls._name)

    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):  # what Python asks of every class
            raise AttributeError(name)
        return getattr(cls._real(), name)

    def __call__(cls, *args: object, **options: object) -> object:
        real = cls._real()
        assert callable(real)
        return real(*args, **options)

    def __instancecheck__(cls, thing: object) -> bool:
        real = cls._real()
        assert isinstance(real, type)
        return isinstance(thing, real)


class _Stand(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Late(name, (), {"_home": self.__name__, "_name": name})


def load_textual() -> None:
    """Load `textual.app`; does nothing when it is loaded already."""
    if "textual.app" in sys.modules:
        return
    stands = {name: _Stand(name) for name in LATER if name not in sys.modules}
    sys.modules.update(stands)
    try:
        import_module("textual.app")
    finally:
        for name in stands:
            del sys.modules[name]
