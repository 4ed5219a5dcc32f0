"""Every regular expression of the package runs in linear time on the worst texts that its form suggests."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import auepora_eval

pytestmark = pytest.mark.full

try:
    from re import _parser as parser  # type: ignore[attr-defined]  # Python 3.11 and later
except ImportError:
    import sre_parse as parser

SIZE = 100_000  # characters
SECONDS = 1.0  # of processor time: a linear expression takes a few hundredths
_FUNCTIONS = ("compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
_UNBOUNDED = 1_000  # more repetitions than this are without limit
_BREAK = "\x00"  # ends a text so that nothing matches at its end


class Expression(NamedTuple):
    """A regular expression, where it is, and how it is used: a search may start anywhere in a text."""

    where: str
    pattern: re.Pattern[Any]
    uses: frozenset[str]  # finditer, match, fullmatch


@cache
def modules() -> list[ModuleType]:
    names = [info.name for info in pkgutil.walk_packages(auepora_eval.__path__, "auepora_eval.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


@cache
def expressions() -> list[Expression]:
    """Return all expressions: those that modules hold, those that they compile late, and those in calls."""
    sources = {module: inspect.getsource(module) for module in modules()}
    held = [each for module, source in sources.items() for each in _held(module, source)]
    in_calls = [each for module, source in sources.items() for each in _in_calls(module, source)]
    by_text: dict[tuple[Any, int], Expression] = {}
    for expression in [*held, *in_calls]:
        key = (expression.pattern.pattern, expression.pattern.flags)
        before = by_text.get(key)
        # How a compiled expression is used is seen where it is held, not where it is compiled.
        if before is None or expression in held:
            uses = expression.uses if before is None else expression.uses | before.uses
            by_text[key] = expression._replace(uses=uses)
    return list(by_text.values())


def _held(module: ModuleType, source: str) -> Iterator[Expression]:
    for name, thing in vars(module).items():
        if getattr(thing, "cache_info", None) and "Pattern" in str(getattr(thing, "__annotations__", "")):
            if thing.__module__ != module.__name__ or inspect.signature(thing).parameters:
                continue  # a pattern that is made of a user's text is escaped
            thing = thing()
        # `_X.fullmatch(` and `_X.match(` start at one place; any other use may start anywhere.
        uses = set(re.findall(rf"\b{re.escape(name)}\.(\w+)\(", source))
        if not uses or not uses <= {"fullmatch", "match"}:
            uses = {"finditer"}
        for pattern in _patterns(thing):
            yield Expression(f"{module.__name__}.{name}", pattern, frozenset(uses))


def _patterns(thing: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(thing, re.Pattern):
        yield thing
    elif isinstance(thing, Mapping):
        for value in thing.values():
            yield from _patterns(value)
    elif isinstance(thing, list | tuple):
        for value in thing:
            yield from _patterns(value)


def _in_calls(module: ModuleType, source: str) -> Iterator[Expression]:
    """Yield the patterns of re.search(...) and the like, as far as the module's own names make them."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        function, owner = node.func.attr, node.func.value
        if not (isinstance(owner, ast.Name) and owner.id == "re" and function in _FUNCTIONS):
            continue
        try:
            pattern, *flags = (_value(argument, module) for argument in [node.args[0], *_flags(node)])
        except (NameError, TypeError):
            continue  # made of local names: a cached function, or a user's text that is escaped
        use = function if function in ("match", "fullmatch") else "finditer"
        yield Expression(f"{module.__name__}:{node.lineno}", re.compile(pattern, *flags), frozenset([use]))


def _flags(node: ast.Call) -> list[ast.expr]:
    """Return the flags of a call, as far as they are behind the pattern or named."""
    named = [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
    return named or (node.args[1:2] if node.func.attr == "compile" else [])  # type: ignore[attr-defined]


def _value(node: ast.expr, module: ModuleType) -> Any:
    code = compile(ast.Expression(node), module.__name__, "eval")
    return eval(code, vars(module))  # noqa: S307  # a text of our own


def attacks(pattern: str, flags: int) -> Iterator[tuple[str, str]]:
    """Yield what to repeat and what comes before it, for each repetition in a pattern."""
    for before, body in _repeats(parser.parse(pattern, flags), ""):
        yield before, body
        yield "", body
        yield "", before
        yield "", before + body


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    for operation, value in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = value
            example = _example(body)
            if most > _UNBOUNDED and example:
                yield before, example
            yield from _repeats(body, before)
        elif name == "SUBPATTERN":
            yield from _repeats(value[-1], before)
        elif name == "ATOMIC_GROUP":
            yield from _repeats(value, before)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _repeats(value[1], before)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from _repeats(branch, before)
        before += _example([(operation, value)])


def _example(tree: Any) -> str:
    """Return a text that a part of a pattern matches, nearly always."""
    return "".join(_one(str(operation), value) for operation, value in tree)


def _one(name: str, value: Any) -> str:
    makers: dict[str, Callable[[], str]] = {
        "LITERAL": lambda: chr(value),
        "NOT_LITERAL": lambda: "a" if value != ord("a") else "b",
        "ANY": lambda: "a",
        "IN": lambda: _of_class(value),
        "MAX_REPEAT": lambda: _example(value[2]) * max(1, value[0]),
        "MIN_REPEAT": lambda: _example(value[2]) * max(1, value[0]),
        "POSSESSIVE_REPEAT": lambda: _example(value[2]) * max(1, value[0]),
        "SUBPATTERN": lambda: _example(value[-1]),
        "ATOMIC_GROUP": lambda: _example(value),
        "BRANCH": lambda: _example(value[1][0]),
    }
    return makers.get(name, lambda: "")()


def _of_class(items: Any) -> str:
    """Return a character of a class: the first that it names, or for a negated one a usual one."""
    if str(items[0][0]) != "NEGATE":
        return (_members(items) or ["a"])[0]
    excluded = set(_members(items[1:]))
    return next(character for character in "a 0-_.é\n" if character not in excluded)


_CATEGORIES = {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "0", "CATEGORY_WORD": "a", "CATEGORY_NOT_SPACE": "a"}


def _members(items: Any) -> list[str]:
    members = []
    for operation, value in items:
        if str(operation) == "LITERAL":
            members.append(chr(value))
        elif str(operation) == "RANGE":
            members.append(chr(value[0]))
        elif str(operation) == "CATEGORY":
            members.append(_CATEGORIES.get(str(value), "!"))
    return members


def test_the_package_has_many_expressions() -> None:
    assert len(expressions()) > 80
    assert any("refusal" in expression.where for expression in expressions())


class TooSlowError(Exception):
    """An expression took longer than it may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise after this processor time: the engine looks for signals while it matches."""

    def stop(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def first_slow_text(expression: Expression) -> str:
    """Return the first attack on an expression that succeeds; "" if it withstands all."""
    _, pattern, uses = expression
    for before, repeated in dict.fromkeys(attacks(pattern.pattern, pattern.flags & ~re.DEBUG)):
        if not repeated:
            continue
        text: Any = before + repeated * (SIZE // len(repeated)) + _BREAK
        if isinstance(pattern.pattern, bytes):
            text = text.encode("latin-1")
        try:
            with limited(SECONDS):
                for use in uses:
                    matches = getattr(pattern, use)(text)
                    if use == "finditer":
                        deque(matches, maxlen=0)
        except TooSlowError:
            return f"{before[:40]!r}, then {repeated[:40]!r} again and again"
    return ""


def test_every_expression_is_linear() -> None:
    slow = {expression.where: first_slow_text(expression) for expression in expressions()}
    assert {where: text for where, text in slow.items() if text} == {}


def test_the_check_finds_an_expression_that_is_not_linear() -> None:
    assert first_slow_text(Expression("here", re.compile(r"\s+$"), frozenset(["finditer"])))
    assert first_slow_text(Expression("here", re.compile(r"(\w+\s?)+$"), frozenset(["match"])))
    assert not first_slow_text(Expression("here", re.compile(r"(?<!\s)\s++$"), frozenset(["finditer"])))
