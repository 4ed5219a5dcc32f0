"""The gate: what `auepora gate` prints of a run, with links to the samples behind each rule."""

from __future__ import annotations

from collections.abc import Sequence

from ..decide.gate_report import gate_table, pass_words, problem_words, title
from ..decide.rules import GateReport, Rule
from ..store.pages import RunSamples
from .comparisons import gate_of
from .components.markup import Markup, Node, join, tag
from .components.tables import data_table, notes, short
from .layout import address, link, select_box
from .requests import Ask, Page, Reply
from .workspace import Stored

_OUTCOMES = {0: "a pipeline goes on", 1: "a pipeline stops", 3: "a pipeline stops, and nobody knows yet"}


def gate_page(ask: Ask) -> Reply:
    """Check a run against a baseline, by the rules of the file that was named or by the usual ones."""
    runs = [one for one in ask.workspace.documents() if one.run is not None]
    if not runs:
        command = tag("code", "auepora demo")
        main = tag("p", "There are no finished runs yet. Make two of them: ", command, class_="lead")
        return Page("Gate", main, ask.workspace.command("list"))
    run_id = ask.workspace.document(ask.values.get("run") or runs[0].id).id
    baseline = ask.values["baseline"] if "baseline" in ask.values else _before(runs, run_id)
    form = _form(runs, run_id, baseline)
    rules = ask.workspace.rules
    if not baseline and rules is None:
        what = "Choose a baseline, or start with rules of your own: "
        main = tag("p", what, tag("code", "auepora view --rules gate.yaml"), class_="lead")
        return Page("Gate", join(form, main), "auepora gate --help")
    report = gate_of(ask.workspace, run_id, baseline or None)
    words = ["gate", ask.workspace.name(run_id)]
    words += ["--baseline", ask.workspace.name(baseline)] if baseline else []
    words += ["--rules", str(rules)] if rules is not None else []
    heading = f"Gate: {run_id} against {baseline}" if baseline else f"Gate: {run_id}"
    return Page(heading, join(form, _report(ask, report, run_id, baseline)), ask.workspace.command(*words))


def _before(runs: Sequence[Stored], run_id: str) -> str:
    """Return the run to compare with: the newest before this one that has the same samples; "" if none."""
    known = [one.id for one in runs]
    place = known.index(run_id) if run_id in known else len(runs)
    candidate = runs[place].run if place < len(runs) else None
    for one in runs[place + 1 :]:
        if candidate and one.run and one.run.dataset_fingerprint == candidate.dataset_fingerprint:
            return one.id
    return ""


def _form(runs: Sequence[Stored], run_id: str, baseline: str) -> Markup:
    options = [(one.id, short(one.id, 60)) for one in runs]
    return tag(
        "form",
        tag("label", "Run", select_box("run", options, run_id)),
        tag("label", "Baseline", select_box("baseline", [("", "none"), *options], baseline)),
        tag("button", "Check", type="submit"),
        class_="filters",
        method="get",
        action="/gate",
    )


def _report(ask: Ask, report: GateReport, run_id: str, baseline: str) -> Node:
    index = ask.workspace.index(run_id)
    rules = ask.workspace.rules
    usual = (
        "No metric may be significantly worse than in the baseline, and at most a tenth of the samples, "
        "answers and scores may be missing. Other rules: auepora view --rules gate.yaml."
    )
    about = usual if rules is None else f"The rules are those of {rules}."
    problems = [problem_words(one) for one in report.problems]
    links = {
        one.rule.title: href
        for one in report.verdicts
        if (href := _samples(one.rule, index, run_id, baseline)) is not None
    }
    return join(
        tag(
            "div",
            tag("p", f"{title(report).capitalize()}."),
            tag("p", f"Exit code {report.exit_code}: {_OUTCOMES[report.exit_code]}.", class_="small"),
            class_="lead",
        ),
        _links(run_id, baseline),
        tag("ul", (tag("li", text) for text in problems)) if problems else None,
        # The verdict second: on a phone, the last columns are out of sight.
        data_table(gate_table(report).only([0, 4, 1, 2, 3]), "Rules", links=links),
        notes([about, *pass_words(report), *(f"{text}." for text in (*report.mismatches, *report.notes))]),
    )


def _links(run_id: str, baseline: str) -> Markup:
    links = [link(f"Run {run_id}", "run", run_id)]
    if baseline:
        pair = [("run", baseline), ("run", run_id)]
        links += [link(f"Run {baseline}", "run", baseline), link("Compare them", "compare", query=pair)]
    return tag("p", ((each, " ") for each in links), class_="turns")


def _samples(rule: Rule, index: RunSamples, run_id: str, baseline: str) -> str | None:
    """Return the address of the samples that a rule is about; None if it is about a figure of the run."""
    if rule.kind == "max_failed":
        return address("run", run_id, "samples", query={"failed": 1}) if index.errors else None
    if rule.name not in index.metrics:
        return None
    if baseline and rule.kind not in ("min", "max"):
        query = [("run", baseline), ("run", run_id), ("metric", rule.name)]
        return f"{address('compare', query=query)}#samples"
    return address("run", run_id, "samples", query={"sort": rule.name})
