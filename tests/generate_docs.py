"""Write the pages that are made from the code: docs/metrics.md, commands.md and api.md (`make docs`)."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import os
import re
import textwrap
import tomllib
from argparse import Action
from collections import Counter
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import auepora_eval
from auepora_eval.cli.main import GROUPS, command_parser, load_command, main
from auepora_eval.core.metrics_base import METRICS, Metric
from auepora_eval.core.settings import PLAN_KEYS
from auepora_eval.core.targets import QUESTIONS, TargetCategory

DOCS = Path(__file__).parents[1] / "docs"
PACKAGE = DOCS.parent / "auepora_eval"

METRICS_IN_WORDS = Path(__file__).parent / "metrics_in_words.md"
API_EXAMPLES = Path(__file__).parent / "api_examples.md"


def printed(*words: str) -> str:
    """Return what a command prints."""
    os.environ["COLUMNS"] = "100"  # argparse wraps its help to the terminal
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(list(words))
    return out.getvalue()


def metrics_page() -> str:
    """Return the page of all metrics, by target."""
    lines = [
        "# Metrics",
        "",
        "Made from the code by `make docs`. A name is `base@number[option]`. The option may be left out.",
        "*Equals* names the reference tool that our values are tested against. Unless it says otherwise, a",
        "metric needs only the outputs, has values from 0 to 1, and higher is better.",
    ]
    described = json.loads(printed("metrics", "--json"))
    for target in TargetCategory:
        metrics = [metric for metric in described if metric["target"] == target.name]
        if not metrics:
            continue
        lines += ["", f"## {target.name}", "", QUESTIONS[target]]
        for metric in metrics:
            lines += ["", f"### `{metric['name']}`", "", described_metric(metric)]
    lines += ["", "## Metrics that lists leave out", ""]
    lines += ["Rarely needed, and known by their names: `auepora metrics NAME` explains each.", ""]
    for made in (made for made in map(METRICS.get, METRICS) if not made.listed):
        summary = inspect.cleandoc(made.__doc__ or "").partition("\n")[0]
        lines.append(f"- `{made.usage()}`: {summary}")
    # Written by hand: tables of benchmarks/grounding.py and benchmarks/refusal.py, as printed.
    lines += ["", METRICS_IN_WORDS.read_text("utf-8").rstrip()]
    return "\n".join(lines) + "\n"


def described_metric(metric: dict[str, Any]) -> str:
    """Return the description of a metric and what is special about its fields and values."""
    facts = [", ".join(f"`{name}`" for name in metric["requires"])]
    facts[0] = f"Needs {facts[0]}." if facts[0] else ""
    low, high = ("∞" if end is None else f"{end:g}" for end in metric["bounds"])
    if (low, high) != ("0", "1"):
        facts.append(f"{low.replace('∞', '-∞')} to {high}.")
    facts += [] if metric["higher_is_better"] else ["Lower is better."]
    facts += [f"Equals {metric['oracle']}."] if metric["oracle"] else []
    return "\n\n".join(filter(None, [metric["description"], " ".join(filter(None, facts))]))


def commands_page() -> str:
    """Return the page of all commands, by task: what each does, examples, and its flags as a table."""
    lines = [
        "# Commands",
        "",
        "Made from the code by `make docs`. For completion with Tab, write",
        '`eval "$(auepora completion bash)"` into `~/.bashrc`, the same with `zsh` into `~/.zshrc`, or',
        "`auepora completion fish | source` into `~/.config/fish/config.fish`.",
        "",
        "At the end: [shared flags](#shared-flags), [plan files](#plan-files), [exit codes](#exit-codes).",
    ]
    for title, names in GROUPS.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += command_section(name)
    lines += ["", "## Shared flags", ""]
    lines += [f"- `{flag}`: {help_text}" for flag, help_text in sorted(shared_flags())]
    lines += plan_section()
    lines += ["", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(lines) + "\n"


def command_section(name: str) -> list[str]:
    """Return the lines about one command."""
    parser = command_parser(name, load_command(name))
    guide = f" [Guide]({GUIDES[name]})." if name in GUIDES else ""
    lines = ["", f"### auepora {name}", "", f"{parser.description}{guide}"]
    for paragraph in (parser.epilog or "").split("\n\n"):
        if paragraph.startswith(" "):
            lines += ["", "```text", textwrap.dedent(paragraph).rstrip(), "```"]
        elif paragraph:
            lines += ["", paragraph]
    actions = [action for action in parser._actions if not COMMON_FLAGS & set(action.option_strings)]
    shared = [action for action in actions if (flag_name(action), flag_help(action)) in shared_flags()]
    keys = [action for action in actions if is_plan_key(action) and action not in shared]
    if own := [action for action in actions if action not in (*shared, *keys)]:
        lines += ["", *map(flag_line, own)]
    for what, some in (("[Shared](#shared-flags)", shared), ("[Plan keys](#plan-files)", keys)):
        lines += (
            ["", f"{what}: {', '.join(f'`{action.option_strings[-1]}`' for action in some)}."] if some else []
        )
    return lines


@cache
def shared_flags() -> set[tuple[str, str]]:
    """Return the flags that mean the same wherever several commands have them, each with its help."""
    counts = Counter(
        (flag_name(action), flag_help(action))
        for names in GROUPS.values()
        for name in names
        for action in command_parser(name, load_command(name))._actions
        if action.option_strings and (not is_plan_key(action) or action.dest == "out")
    )
    meanings = Counter(name for name, _ in counts)
    return {
        (name, help_text)
        for (name, help_text), count in counts.items()
        if count > (1 if meanings[name] == 1 else 3) and "--help" not in name
    }


def is_plan_key(action: Action) -> bool:
    """Return whether a flag is a key of plans, which are explained at the end of the page."""
    return (
        bool(action.option_strings)
        and action.dest in PLAN_KEYS
        and action.help == PLAN_KEYS[action.dest].help
    )


def plan_section() -> list[str]:
    """Return the lines about plan files: every key, its type and what it means."""
    lines = ["", "## Plan files", "", PLAN_FILES, ""]
    for name, setting in PLAN_KEYS.items():
        kind = f" ({KINDS[setting.kind]})" if setting.kind in KINDS else ""
        lines.append(f"- `{name}`{kind}: {setting.help}")
    return lines


PLAN_FILES = (
    "A plan is a YAML or JSON file for `--config` of `run`, `score`, `judge`, `judge-audit`, `compare` and "
    "`init` ([example](formats.md#plans)). A flag overrides the key of the same name. Keys that a command "
    "does not use have no effect there. A key without a type is a text or a number."
)
KINDS = {"names": "list", "switch": "boolean", "options": "mapping"}


def flag_line(action: Action) -> str:
    """Return a flag or argument with its help, as an item of a list."""
    return f"- `{flag_name(action)}`: {flag_help(action)}"


def flag_help(action: Action) -> str:
    """Return the help of a flag, for Markdown."""
    return markdown(" ".join((action.help or "").replace("%%", "%").split()))


def flag_name(action: Action) -> str:
    """Return a flag or argument with its value."""
    name = "/".join(action.choices) if action.choices and action.metavar is None else action.metavar
    value = "" if action.nargs == 0 else str(name or action.dest.upper())
    return f"{', '.join(action.option_strings)} {value}".strip()


COMMON_FLAGS = {"--help"}
GUIDES = {
    "run": "tutorial.md",
    "score": "tutorial.md",
    "compare": "how-to/compare.md",
    "gate": "how-to/gate.md",
    "power": "how-to/experiments.md",
    "experiment": "how-to/experiments.md",
    "dataset generate": "how-to/make-a-test-set.md",
    "dataset build": "how-to/make-a-test-set.md",
    "dataset check": "formats.md",
    "dataset convert": "formats.md",
    "import-traces": "how-to/observe.md",
    "metrics": "metrics.md",
    "annotate": "how-to/annotate.md",
    "judge-audit": "how-to/judge-audit.md",
    "labels score": "how-to/labels.md",
    "labels sweep": "how-to/labels.md",
    "list": "how-to/observe.md",
}
EXIT_CODES = {
    "0": "done",
    "1": "the check failed: more failures than `max_failures` allows, a failed gate, a used-up budget",
    "2": "not possible: wrong usage, unreadable or malformed input, a missing extra, a refused API key",
    "3": "incomplete or inconclusive: too many samples failed (`--min-coverage`), or an inconclusive gate",
    "4": "storage: the disk is full or read-only, or the run exists already",
    "130, 143": "interrupted, terminated (finished outputs are kept)",
}


def architecture_page() -> str:
    """Return the contributors' page with the layers and the tree as they are."""
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    for name, lines in (("layers", layers), ("tree", package_tree(PACKAGE))):
        block = "\n".join(["", "", "```text", *lines, "```", "", ""]).replace("\n\n\n", "\n\n")
        pattern = rf"(<!-- {name}:[^>]*-->).*?(<!-- /{name} -->)"
        page = re.sub(pattern, lambda match: f"{match[1]}{block}{match[2]}", page, flags=re.DOTALL)  # noqa: B023
    return page


def package_tree(folder: Path, depth: int = 0) -> list[str]:
    """Return for each package its name and what it is for."""
    indent = "  " * depth
    lines = [f"{indent}{folder.name + '/':<{18 - len(indent)}}{summary_of(folder / '__init__.py')}"]
    for path in sorted(folder.iterdir()):
        if (path / "__init__.py").is_file():
            lines += package_tree(path, depth + 1)
    return lines


def summary_of(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n", maxsplit=1)[0].rstrip(".")


def api_page() -> str:
    """Return the page of all public names, by subject."""
    lines = [
        "# Python API",
        "",
        "Made from the code by `make docs`. Every name can be imported from `auepora_eval`. Each example",
        "continues the last:",
    ]
    examples = api_examples()
    lines += ["", *examples["start"]]
    for title, modules in API_SECTIONS.items():
        lines += ["", f"## {title}"]
        for module in modules:
            names = [name for name, home in public_names().items() if home == module]
            if title == "Errors":
                lines.append("")
                lines += [
                    f"- `{name}`: {' '.join(paragraphs(getattr(auepora_eval, name)))}" for name in names
                ]
                names = [name for name in names if name in examples]
            for name in names:
                entry = [] if title == "Errors" else api_entry(name)
                lines += ["", *entry, *([""] if entry and name in examples else []), *examples.get(name, [])]
    return "\n".join(lines) + "\n"


def api_examples() -> dict[str, list[str]]:
    """Return the example of each name, as a block of Python."""
    sections = re.split(r"^## (\w+)\n", API_EXAMPLES.read_text("utf-8"), flags=re.MULTILINE)[1:]
    pairs = zip(sections[::2], sections[1::2], strict=True)
    return {name: ["```python", *code.strip().splitlines(), "```"] for name, code in pairs}


def public_names() -> dict[str, str]:
    """Return the module of each public name, without the dot in front."""
    return {name: home.removeprefix(".") for name, home in vars(auepora_eval)["_HOME"].items()}


def api_entry(name: str) -> list[str]:
    """Return the heading, the signature, the summary and the public methods of one name."""
    thing = getattr(auepora_eval, name)
    first, *more = paragraphs(thing)
    lines = [f"### `{name}`", "", first]
    if not (isinstance(thing, type) and issubclass(thing, Metric)) or inspect.isabstract(thing):
        lines += [line for paragraph in more for line in ("", paragraph)]  # of metrics, metrics.md has them
    if name in RESULTS:
        fields = ", ".join(f"`{field}`" for field in inspect.signature(thing).parameters)
        lines += ["", f"Fields: {fields}."]
    elif has_signature(thing):
        lines += ["", "```text", *signature_lines(name, thing), "```"]
    if isinstance(thing, type) and not issubclass(thing, Exception | Enum):
        members = {key: value for key, value in vars(thing).items() if is_documented_member(thing, key)}
        lines += [""] * bool(members)
        for key, member in members.items():
            lines.append(f"- `{key}{'()' if callable(member) else ''}`: {summary(member)}")
    return lines


def is_documented_member(kind: type, name: str) -> bool:
    """Whether a class member is a public method or property with a docstring that its base has not."""
    member = vars(kind)[name]
    if not (inspect.isfunction(member) or isinstance(member, property)) or name.startswith("_"):
        return False
    if issubclass(kind, auepora_eval.SampleMetric):  # the rest is for the library itself
        return kind is auepora_eval.SampleMetric and name in MEMBERS_TO_WRITE
    if name in INTERNAL_MEMBERS:
        return False
    inherited = [inspect.getdoc(getattr(base, name, None)) for base in kind.__bases__]
    return bool(inspect.getdoc(member)) and inspect.getdoc(member) not in inherited


# What functions return: nobody calls these classes.
RESULTS = {"Comparison", "GateReport", "Probe", "Diagnosis", "Robustness", "EvaluationRun", "MetricResult"}
# What only the library itself calls.
INTERNAL_MEMBERS = {
    *("with_interval", "reports_coverage", "is_share", "record", "state", "free_id", "find", "load_tally"),
    *("save_fact", "load_fact", "settings", "start", "tries_again", "names", "wait", "failed_calls"),
    *("validate_survey", "check_metrics", "is_like", "effect", "is_asked", "names_documents", "load_summary"),
}
MEMBERS_TO_WRITE = {
    "score",
    "score_all",
    "aggregate",
    "interval",
    "score_if_failed",
    "required_fields",
    "signature",
}


def summary(thing: object) -> str:
    """Return the first paragraph of a docstring, for Markdown."""
    return paragraphs(thing)[0]


def paragraphs(thing: object) -> list[str]:
    """Return the paragraphs of a docstring in words, for Markdown: no examples, no lists of names."""
    texts = (inspect.getdoc(thing) or "").split("\n\n")
    in_words = [text for text in texts[1:] if not text.startswith((">>>", " "))]
    return [markdown(" ".join(text.split())) for text in [texts[0], *in_words]]


def markdown(text: str) -> str:
    """Return a text for Markdown, where `<` outside of code would start a tag."""
    parts = text.split("`")
    return "`".join(part if place % 2 else part.replace("<", "&lt;") for place, part in enumerate(parts))


def signature_lines(name: str, thing: object) -> list[str]:
    """Return a signature on one line, or with one parameter per line if it is long."""
    signature = inspect.signature(thing)  # type: ignore[arg-type]
    texts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        texts.append(parameter_text(parameter))
    result = "" if isinstance(thing, type) else f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(texts)}){result}"
    if len(line) <= 100:
        return [line]
    return [f"{name}(", *(f"    {text}," for text in texts), f"){result}"]


def parameter_text(parameter: inspect.Parameter) -> str:
    """Return a parameter with its annotation and default."""
    if parameter.default is parameter.empty:
        return f"{parameter.name}: {parameter.annotation}"
    # A dataclass field that is a new list or dict for each object has a factory, which has no good repr.
    default = "..." if repr(parameter.default).startswith("<") else repr(parameter.default)
    return f"{parameter.name}: {parameter.annotation} = {default}"


def has_signature(thing: object) -> bool:
    """Whether a name is called by users: not an error, an enum, or a class to inherit from."""
    if isinstance(thing, type):
        is_base = inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)
        return (
            not is_base
            and not issubclass(thing, Exception | Enum)
            and bool(inspect.signature(thing).parameters)
        )
    return callable(thing)


API_SECTIONS = {
    "Evaluate and compare": (
        "api",
        "core.runner",
        "core.plan",
        "comparison.compare",
        "comparison.power",
        "decide.gate_report",
        "interventions.probe",
        "interventions.diagnosis",
        "interventions.report",
        "interventions.stress",
    ),
    "Data": ("core.types", "core.dataset", "io.loader", "io.jsonl"),
    "Systems and calls": (
        "core.rag_interface",
        "calls.policy",
        "calls.executors",
        "calls.processes",
        "calls.ray",
    ),
    "Metrics": (
        "core.metrics_base",
        "metrics.parse",
        "metrics.retrieval_basic",
        "metrics.generation_text",
        "metrics.additional",
        "metrics.citations.evaluator",
    ),
    "Results": ("store.storage", "reporting.tables", "core.table", "core.verdict"),
    "Checks of data": ("io.schema", "quality.checks", "io.documents"),
    "Errors": ("errors",),
}

PAGES = {
    "metrics.md": metrics_page,
    "commands.md": commands_page,
    "api.md": api_page,
    "explanation/architecture.md": architecture_page,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
