"""Plants a single-line fault in a loaded module, by the text of the line, and takes it out again.

The text must occur exactly once in the module's file: when the code is rewritten and the line vanishes, the planting
fails instead of testing nothing.
"""

import importlib
import inspect
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    """`old` becomes `new` in the file of `module`."""

    name: str
    module: str
    old: str
    new: str


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """While open, the module's functions run with the fault, also where other modules imported them by name."""
    module = importlib.import_module(fault.module)
    path = inspect.getfile(module)
    source = Path(path).read_text()
    count = source.count(fault.old)
    assert count == 1, f"{fault.name}: {count} times in {fault.module}: {fault.old!r}"
    changed: dict[str, Any] = {"__name__": module.__name__, "__package__": module.__package__}
    exec(compile(source.replace(fault.old, fault.new), path, "exec"), changed)
    own = vars(module)
    originals = dict(_functions(own, module.__name__))
    faulty = dict(_functions(changed, module.__name__))
    assert originals.keys() == faulty.keys(), f"{fault.name} adds or removes a function"
    codes = {name: f.__code__ for name, f in originals.items() if not _same_code(f.__code__, faulty[name].__code__)}
    constants = {name: own[name] for name, value in changed.items() if _is_constant(name, value) and own[name] != value}
    assert codes or constants, f"{fault.name} changes nothing"
    for name in codes:
        originals[name].__code__ = faulty[name].__code__
    own.update({name: changed[name] for name in constants})
    try:
        yield
    finally:
        for name, code in codes.items():
            originals[name].__code__ = code
        own.update(constants)


def _functions(namespace: dict[str, Any], module: str, prefix: str = "") -> Iterator[tuple[str, types.FunctionType]]:
    """Functions and methods that the module defines itself, by qualified name."""
    for name, value in namespace.items():
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        value = inspect.unwrap(value) if isinstance(value, types.FunctionType) else value
        if getattr(value, "__module__", None) != module:
            continue
        if isinstance(value, types.FunctionType):
            yield prefix + name, value
        elif isinstance(value, type) and not prefix:
            yield from _functions(dict(vars(value)), module, f"{name}.")


def _same_code(one: types.CodeType, other: types.CodeType) -> bool:
    return one.co_code == other.co_code and one.co_names == other.co_names and _plain(one) == _plain(other)


def _plain(code: types.CodeType) -> list[Any]:
    """Constants, with nested functions by their own constants (their code objects never compare equal by line)."""
    return [(c.co_code, _plain(c)) if isinstance(c, types.CodeType) else c for c in code.co_consts]


def _is_constant(name: str, value: Any) -> bool:
    return name.isupper() and isinstance(value, int | float | tuple | str)
