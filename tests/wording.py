"""Find words that the style of the project replaces, in what a person reads: help, messages, docs.

`python -m tests.wording [PATH ...]` lists them. The right column says what to write instead.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
UNITS = "line|sample|query|question|rule|system|document|row|person|file|answer|metric|variant|annotator"

# Pattern -> what to write instead.
BANNED = {
    r"go(es|ne|ing)? on with": "resume",
    r"begun|beg[ai]ns? anew|anew": "started, restart, again",
    r"told|tells?": "reported, reports, warned",
    r"stands? (in|on|behind|for itself)": "is in, is based on",
    r"surely|sure (loss|gain)": "significantly, significant loss",
    r"cannot tell|can tell|unclear": "inconclusive",
    r"so many": "N, this many",
    r"h(old|olds|eld|olding) (\S+ ){0,5}against": "compare with, check against",
    r"borne out": "supported",
    r"(?<!there )(?<!There )is no (?!(longer|worse|more|better|less|fewer|such)\b)[a-z]+": "is not a",
    r"the house|front door|the door|rooms?": "auepora, the library, the public API, packages",
    r"draws": "resamples",
    r"losers?": "regressions",
    r"twins?": "variants",
    r"the first of a kind": "each kind once",
    r"on board": "included",
    r"fits? together": "are consistent",
    r"mend(s|ed|ing)?": "fix",
    r"(put|puts|putting) (in place|away)": "commit, clean up",
    r"may go out": "may be released",
    r"what the data allow": "what the dataset supports",
    rf"one [a-z]+( [a-z]+)? an? ({UNITS})": "one X per Y",
    r"(?-i:refuse_)\w+": "check_*",
}
PATTERN = re.compile(rf"(?<!\w)(?:{'|'.join(BANNED)})(?!\w)", re.IGNORECASE)

# Words that are data, not prose: (file, word) pairs that are skipped.
ALLOWED = {
    ("auepora_eval/generate/variants.py", "tell"),
    ("auepora_eval/quality/samples.py", "tell"),
    ("benchmarks/generator.py", "rooms"),
    ("auepora_eval/text/refusal.py", "unclear"),
    ("auepora_eval/text/refusal.py", "tell"),
    # "this judge cannot tell": a verdict on a judge, not on a comparison.
    ("auepora_eval/judges/trust/calibration.py", "cannot tell"),
}


class Finding(NamedTuple):
    """A word in a place."""

    path: Path
    line: int
    word: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.word}"


def findings(paths: list[Path] | None = None) -> Iterator[Finding]:
    """Yield every banned word in the library, its docs and its examples."""
    for path in paths or everything():
        text = path.read_text(encoding="utf-8")
        texts = texts_of_code(text) if path.suffix == ".py" else [(1, text)]
        for start, written in texts:
            for match in PATTERN.finditer(written):
                if (str(path.relative_to(ROOT)), match[0].lower()) in ALLOWED:
                    continue
                yield Finding(path, start + written.count("\n", 0, match.start()), match[0])


def everything() -> list[Path]:
    """Return the files that a user or a contributor reads."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    code = [
        path
        for folder in ("auepora_eval", "examples", "scripts", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ]
    return sorted([*pages, *code, *(ROOT / "auepora_eval").rglob("*.html")])


def texts_of_code(source: str) -> Iterator[tuple[int, str]]:
    """Yield string literals and comments with their first lines. Names are not read."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


if __name__ == "__main__":
    listed = list(findings([Path(name).resolve() for name in sys.argv[1:]] or None))
    for finding in listed:
        print(finding)
    print(f"{len(listed)} banned words")
