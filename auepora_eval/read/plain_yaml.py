"""YAML as plain data: what JSON can say.

2024-01-01, 12:30, yes and 007 stay the texts that they are. No tags, no aliases, no key twice.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from ..errors import DataError
from .text import FLATTEN, MAX_DEPTH, check_same_text

# What YAML 1.2 and JSON agree on. YAML 1.1 reads yes, 07, 1_000 and 12:30 as other types.
_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$")
_FLOAT = re.compile(
    r"^[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$"
)
_NO_NUMBER = re.compile(r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$")
# The characters that a number can start with: PyYAML looks resolvers up by them.
_SIGNS = list("-+0123456789.")
_TAGS = (None, *(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "str", "seq", "map")))


def parse_yaml(content: bytes, name: str) -> Any:
    """The document of a YAML file; DataError where it is none, or one that could do harm."""
    if content[:2] not in (b"\xff\xfe", b"\xfe\xff"):  # YAML may be UTF-16 if it says so
        check_same_text(content, name)
    try:
        _check_no_harm(content, name)
        return yaml.load(content, _loader(name))  # noqa: S506 - a SafeLoader
    except DataError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, LookupError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        where = name if place is None else f"{name}:{place.line + 1}"
        parts = [getattr(error, name, None) for name in ("context", "problem")]
        problem = " ".join(" ".join(filter(None, parts)).split()) or " ".join(str(error).split())
        problem = problem.replace("tag:yaml.org,2002:", "!!")
        fix = "Check indentation and quotes. Tags are not read."
        raise DataError(where, f"not YAML: {problem.rstrip('.'):.200}.", fix=fix) from error


def yaml_text(document: Any) -> str:
    """A document of plain data as YAML; `parse_yaml` reads it back unchanged."""
    text = yaml.dump(document, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=100)
    return str(text)


def _check_no_harm(content: bytes, name: str) -> None:
    """A first look at the events: nothing is built yet."""
    depth = 0
    for event in yaml.parse(content, Loader=_fast("CSafeLoader", "SafeLoader")):
        line = getattr(event.start_mark, "line", 0)  # an event may come without its place
        where = f"{name}:{line + 1}"
        if isinstance(event, yaml.AliasEvent):
            # A few lines of aliases of aliases unfold to billions of values.
            raise DataError(where, "aliases (*name) are not read.", fix="Write the value out.")
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            depth += 1
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise DataError(where, "the YAML is nested too deeply.", fix=FLATTEN)


def _fast(name: str, otherwise: str) -> Any:
    """The class of libyaml, or that of Python where PyYAML was built without."""
    return getattr(yaml, name, None) or getattr(yaml, otherwise)


def _loader(name: str) -> Any:
    base = _fast("CSafeLoader", "SafeLoader")

    class Loader(base):  # type: ignore[misc, valid-type]
        yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - PyYAML's own idiom
        # A tag (!!timestamp, !!binary) asks for a type that JSON does not have.
        yaml_constructors = {tag: base.yaml_constructors[tag] for tag in _TAGS}  # noqa: RUF012

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                where = f"{name}:{key_node.start_mark.line + 1}"
                if key == "<<" and not key_node.style:
                    raise DataError(where, "merge keys (<<) are not read.", fix="Write the fields out.")
                if not isinstance(key, str):
                    raise DataError(where, f"the key {key!r:.60} is not a text.", fix="Put it in quotes.")
                if key in seen:
                    raise DataError(where, f"the key {key!r:.60} occurs twice.", fix="Keep one of them.")
                seen.add(key)
            return dict(super().construct_mapping(node, deep=deep))

    def number(loader: Any, node: Any) -> Any:
        where = f"{name}:{node.start_mark.line + 1}"
        text = loader.construct_scalar(node)
        if len(text) > 308 or _NO_NUMBER.match(text):
            raise DataError(where, "NaN, Infinity and numbers beyond 1e308 are not data.", fix="Write null.")
        value = int(text) if _INT.match(text) else float(text)
        if not -math.inf < value < math.inf:
            raise DataError(where, "NaN, Infinity and numbers beyond 1e308 are not data.", fix="Write null.")
        return value

    _resolve(Loader)
    Loader.add_constructor("tag:yaml.org,2002:int", number)
    Loader.add_constructor("tag:yaml.org,2002:float", number)
    return Loader


def _resolve(kind: Any) -> None:
    """Teach a loader or a dumper which plain words are not texts."""
    kind.add_implicit_resolver("tag:yaml.org,2002:null", _NULL, ["~", "n", "N", ""])
    kind.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("tTfF"))
    kind.add_implicit_resolver("tag:yaml.org,2002:int", _INT, _SIGNS)
    kind.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, _SIGNS)
    kind.add_implicit_resolver("tag:yaml.org,2002:float", _NO_NUMBER, _SIGNS)


def _dumper() -> Any:
    class Dumper(_fast("CSafeDumper", "SafeDumper")):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = "|" if "\n" in value and not _AWKWARD.search(value) else None
        if style is None and _AWKWARD.search(value):
            style = '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    # What other YAML readers take for a date, a time or a yes is quoted as well: PyYAML's own resolvers stay.
    _resolve(Dumper)
    Dumper.add_representer(str, text)
    return Dumper


# Control characters, other line ends, spaces at a line's edge: block text would lose them.
_AWKWARD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\t]|^[ \n]|[ ]$|[ ]\n|\n[ ]", re.ASCII)
