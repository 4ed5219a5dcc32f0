"""A file that is one document, JSON or YAML: read whole, within limits, and written whole.

Of YAML only the types of JSON are read: 2024-01-01, 12:30, yes and 007 stay the texts that they are. No tags,
no aliases, no key twice.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import plain
from ..errors import DataError
from ..read.text import FLATTEN, MAX_DEPTH, TOO_DEEP, check_same_text, kind_of, parse_document, walk
from .files import write_bytes
from .jsonl import BYTE_ORDER_MARK, encode, opened

# A document is parsed in memory, where it takes two to three times its size.
MAX_DOCUMENT_BYTES = 2_000_000_000
MAX_UNPACKED_BYTES = 300_000_000
YAML_SUFFIXES = (".yaml", ".yml")


def read_document(path: str | Path, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> Any:
    """The document of a file; gzip is unpacked, but no further than `max_bytes`."""
    path = Path(path)
    content = read_content(path, max_bytes)
    if not is_yaml(path):
        return parse_document(content, path.name)
    document = parse_yaml(content, path.name)
    if document is None and all(line.lstrip()[:1] in (b"", b"#") for line in content.splitlines()):
        raise DataError(path.name, "there is nothing in it.", fix="Write one YAML document.")
    return document


def read_content(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """The bytes of a file, unpacked; a file that unpacks to more than the limit is an error, not a crash."""
    with opened(path) as file:
        # A few bytes of gzip may unpack to any number of them.
        max_bytes = min(max_bytes, MAX_UNPACKED_BYTES) if isinstance(file, gzip.GzipFile) else max_bytes
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DataError(
            path.name,
            f"the file holds more than {max_bytes / 1e6:g} MB.",
            fix="Is it the right file? Large datasets are better kept as .jsonl or .parquet.",
        )
    return content.removeprefix(BYTE_ORDER_MARK)


def write_document(document: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a document as indented JSON, or as YAML if the name says so."""
    path = Path(path)
    content = encode(document)
    if is_yaml(path):
        content = yaml_text(msgspec.json.decode(content)).encode("utf-8")
    else:
        content = msgspec.json.format(content, indent=2) + b"\n"
    write_bytes(path, packed(content) if path.suffix == ".gz" else content, force=force)


def packed(content: bytes, level: int = 6) -> bytes:
    """Content as gzip, with no name and no time in it: equal content gives equal bytes."""
    return gzip.compress(content, compresslevel=level, mtime=0)


def is_yaml(path: Path) -> bool:
    """Whether a file is YAML by its name."""
    return path.name.lower().removesuffix(".gz").endswith(YAML_SUFFIXES)


# Values that JSON returns as they were: texts, numbers, true, false, null, lists, and objects of them.

_PLAIN = (str, int, float, type(None), list, tuple)
_LARGEST = 2**1023  # the largest whole number that the readers accept


def check_storable(document: Any, where: str) -> None:
    """DataError for the first value that would be read back as something else.

    A tuple becomes a list, an array of numpy a list of numbers; NaN and the infinities, which JSON lacks, are
    read back as null: not measured.
    """
    for path, depth, value in walk(document):
        place = f"{where}: {path:.80}"
        if depth > MAX_DEPTH:
            raise DataError(place, TOO_DEEP, fix=FLATTEN)
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    what = f"the key {key!r:.60} is not a text: it would be read back as one."
                    raise DataError(place, what, fix="Write it in quotes.")
        elif isinstance(value, int) and abs(value) > _LARGEST:
            raise DataError(place, "the number is too large.", fix="Write it as a text.")
        elif not isinstance(value, _PLAIN) and not hasattr(value, "dtype"):
            what = f"{type(value).__name__} would be read back as something else."
            raise DataError(place, what, fix="Write it as a text, a number, a list or an object.")


# Evaluation data as gzip bytes and back; what unpacks to too much is an error, not a crash.

_WHERE = "evaluation data"
_PACKED = "compressed data"


class DataCompressor:
    """Packs a document as gzip of compact JSON; equal documents give equal bytes."""

    @staticmethod
    def compress_evaluation_data(data: Mapping[str, object], compression_level: int = 6) -> bytes:
        """Return the document as gzip; level 0 only stores it, 9 is the smallest. NaN becomes null."""
        if isinstance(compression_level, bool) or compression_level not in range(10):
            raise DataError(
                "compression_level", f"{compression_level!r:.40} is not a level.", fix="Use 0 to 9."
            )
        _check_object(data, _WHERE)
        try:
            return packed(encode(data), compression_level)
        except RecursionError as error:
            raise DataError(_WHERE, TOO_DEEP, fix=FLATTEN) from error

    @staticmethod
    def decompress_evaluation_data(compressed_data: bytes) -> dict[str, Any]:
        """Return the document of `compress_evaluation_data`; DataError if it is too large."""
        try:
            with gzip.GzipFile(fileobj=BytesIO(compressed_data), mode="rb") as file:
                content = file.read(MAX_UNPACKED_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(_PACKED, "cannot be unpacked.", fix="Are they gzip, and complete?") from error
        if len(content) > MAX_UNPACKED_BYTES:
            raise DataError(_PACKED, f"they unpack to more than {MAX_UNPACKED_BYTES / 1e6:g} MB.")
        document: dict[str, Any] = parse_document(content, _PACKED)
        _check_object(document, _PACKED)
        return document

    @staticmethod
    def estimate_compression_ratio(original_data: Mapping[str, object]) -> float:
        """Return how many times smaller the gzip is than the JSON that `json.dumps` writes.

        That JSON has spaces and \\u escapes, which the packed one does not have.
        """
        compressed = len(DataCompressor.compress_evaluation_data(original_data))
        return len(json.dumps(original_data, default=plain)) / compressed


def _check_object(document: object, where: str) -> None:
    if not isinstance(document, dict):
        raise DataError(
            where,
            f"an object was expected, not {kind_of(document)}.",
            fix='Put a list in an object, such as {"annotations": [...]}.',
        )


# YAML as plain data: what JSON can say, in YAML's clothes.

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
    import yaml

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
    import yaml

    text = yaml.dump(document, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=100)
    return str(text)


def _check_no_harm(content: bytes, name: str) -> None:
    """A first look at the events: nothing is built yet."""
    import yaml

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
    import yaml

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
