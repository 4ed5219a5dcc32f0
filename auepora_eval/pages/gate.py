"""The gate: what `auepora gate` prints of a run, with the samples behind each rule that did not pass."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.verdict import Outcome
from ..decide.gate_report import GateReport, RuleResult, asked, pass_words, verdict_word
from ..decide.rules import Rule
from ..store.pages import RunSamples
from .compare import lost_items
from .comparisons import gate_of, pair_of
from .components import charts
from .components import parts as ui
from .components.markup import Markup, Node, join, tag
from .layout import address, compare_address, no_runs
from .requests import Ask, Page, Reply
from .run import worst_items
from .workspace import Stored

_SHOWN = 4  # samples of a rule that did not pass
_STRIPS = {Outcome.PASSED: ("up", "PASSED"), Outcome.FAILED: ("down", "FAILED")}


def gate_page(ask: Ask) -> Reply:
    """Check a run against a baseline, by the rules of the file that was named or by the usual ones."""
    runs = ask.workspace.runs()
    if not runs:
        return Page("Gate", no_runs(ask.workspace), ask.workspace.command("list"))
    run_id = ask.workspace.document(ask.values.get("run") or runs[0].id).id
    before = ask.workspace.before(run_id, runs)
    baseline = ask.values["baseline"] if "baseline" in ask.values else (before or [""])[0]
    form, rules = _form(runs, run_id, baseline), ask.workspace.rules
    if not baseline and rules is None:
        what = "Choose a baseline, or start with rules of your own: "
        main = ui.lead(what, tag("code", "auepora view --rules gate.yaml"))
        return Page("Gate", join(form, main), "auepora gate --help")
    report = gate_of(ask.workspace, run_id, baseline or None)
    words = ["gate", ask.workspace.name(run_id)]
    words += ["--baseline", ask.workspace.name(baseline)] if baseline else []
    words += ["--rules", str(rules)] if rules is not None else []
    against = f"against {baseline}, " if baseline else ""
    return Page(
        f"Gate of {run_id}",
        join(_strip(report), form, _report(ask, report, run_id, baseline)),
        ask.workspace.command(*words),
        facts=f"{against}{len(report.verdicts)} rules, exit code {report.exit_code}",
        actions=ui.button_link("Compare", compare_address([baseline, run_id])) if baseline else None,
        crumbs=[("Runs", "/"), (run_id, address("run", run_id))],
        run=run_id,
    )


def _form(runs: Sequence[Stored], run_id: str, baseline: str) -> Markup:
    names = [one.id for one in runs]
    other = ui.run_box("baseline", "Baseline", names, baseline, none=True)
    return ui.choice_form("/gate", ui.run_box("run", "Run", names, run_id), other, button="Check")


def _strip(report: GateReport) -> Markup:
    kind, word = _STRIPS.get(report.outcome, ("warn", "INCONCLUSIVE"))
    problems, total = report.problems, len(report.verdicts)
    count = f"{len(problems)} of {total} rules" if problems else f"all {total} rules"
    titles = ", ".join(one.rule.name or one.rule.title for one in problems)
    reasons = f"{titles}: {problems[0].why}" if len(problems) == 1 else titles
    return ui.strip(kind, f"{word}: {count}", tag("span", ui.short(reasons, 200)) if reasons else None)


def _report(ask: Ask, report: GateReport, run_id: str, baseline: str) -> Node:
    index, rules = ask.workspace.index(run_id), ask.workspace.rules
    usual = (
        "No metric may be significantly worse than in the baseline, and at most a tenth of the samples, "
        "answers and scores may be missing. Other rules: auepora view --rules gate.yaml."
    )
    about = usual if rules is None else f"The rules are those of {rules}."
    panels = [_panel(ask, one, index, run_id, baseline) for one in report.problems]
    passed = [one for one in report.verdicts if one.outcome is Outcome.PASSED]
    return join(
        tag("div", panels, class_="halves") if panels else None,
        _rules_table(passed, index, run_id, baseline) if passed else None,
        ui.notes(
            [about, *pass_words(report), *(f"Note: {text}." for text in (*report.mismatches, *report.notes))]
        ),
    )


def _panel(ask: Ask, one: RuleResult, index: RunSamples, run_id: str, baseline: str) -> Markup:
    """Return a rule that did not pass: what was found, what is required, and its worst samples."""
    rule, items, text = one.rule, None, "Samples"
    pair = pair_of(ask.workspace, baseline, run_id) if baseline and _is_of_pairs(rule, index) else None
    if pair is not None and rule.name in pair.metrics:
        items = lost_items(pair, [baseline, run_id], rule.name, _SHOWN)
        text = f"{pair.scores(rule.name).mask('lost').sum():,} samples lost"
    elif rule.name in index.metrics:
        baseline = ""  # the rule is about the run alone, or the baseline lacks the metric
        items = worst_items(run_id, index, rule.name, _SHOWN)
    href = samples_of(rule, index, run_id, baseline)
    more = tag("a", text, href=href, data_row=True) if href else None
    drawn = _drawn(one, index)
    found: list[Node] = [
        tag("b", _found(one)),
        # Of a change, the reason below has the interval.
        f" ({ui.interval(one.interval, one.unit)})" if one.change is None and one.interval else None,
        f", required: {asked(rule, one.unit)}",
        ui.span("other", " ┃") if drawn else None,
    ]
    sign, kind = ("✕", "down") if one.outcome is Outcome.FAILED else ("~", "warn")
    word = ui.span(f"verdict {kind}", f"{sign} {verdict_word(one)}")
    # The terminal's next step is a command; here the samples are one click away.
    why = one.why if href else f"{one.why}. {one.fix}"
    return ui.card(
        join(word, f" {ui.short(rule.name or rule.title, 80)}"),
        tag("div", tag("p", found), drawn, tag("p", why, class_="note"), class_="pad"),
        items,
        about=more,
        kind="down" if one.outcome is Outcome.FAILED else "",
    )


def _drawn(one: RuleResult, index: RunSamples) -> Node:
    """Return what was found with its interval, and what is required on the same scale."""
    is_change, required = one.change is not None, one.rule.limit
    value, limits = (one.change, one.change_interval) if is_change else (one.value, one.interval)
    if is_change and required is not None:
        up = one.rule.name in index.metrics and index.metrics[one.rule.name].higher_is_better
        required = -required if up else required
    if limits is None or value is None or one.rule.kind == "max_loss":
        return None
    required = required or 0.0
    scale = charts.linear_scale([required, value, *limits])
    bar = charts.interval_bar(scale, value, limits, baseline=required, kind="down")
    return tag("div", bar, charts.axis("", scale, signed=is_change), class_="limit")


def _found(one: RuleResult) -> str:
    if one.rule.kind in ("max_loss", "max_count_drop"):
        return ui.number(one.loss)
    is_change = one.change is not None
    return ui.number(one.change if is_change else one.value, one.unit, signed=is_change)


def _rules_table(passed: Sequence[RuleResult], index: RunSamples, run_id: str, baseline: str) -> Markup:
    changes = [one for one in passed if one.gain is not None and not one.unit]
    scale = charts.change_scale((one.gain or 0.0, one.change_interval) for one in changes)
    rows = [_passed_row(one, scale, samples_of(one.rule, index, run_id, baseline)) for one in passed]
    columns = [
        ui.Column("Rule"),
        ui.Column("Result"),
        ui.Column("Required", "spare mute"),
        ui.Column("Found", "n"),
        ui.Column(charts.axis("Interval of the change", scale, signed=True), "c"),
        ui.Column("Detectable", "n spare mute"),
    ]
    count = f"{len(passed)} rules passed" if len(passed) > 1 else "1 rule passed"
    about = "detectable: the smallest loss found with 80% power"
    return ui.section(count, ui.table("Rules that passed", columns, rows, kind="forest"), about=about)


def _passed_row(one: RuleResult, scale: charts.Scale, href: str | None) -> list[Node]:
    drawn: Node = None
    if one.change is not None and one.gain is not None and not one.unit:
        kind, up = "up" if one.why.startswith("better") else "same", one.gain == one.change
        drawn = charts.gain_bar(scale, one.change, one.change_interval, up=up, kind=kind)
    name = ui.short(one.rule.name or one.rule.title, 80)
    return [
        ui.row_link(name, href) if href else name,
        ui.verdict("passed"),
        asked(one.rule, one.unit),
        _found(one),
        drawn,
        "" if one.detectable is None else ui.number(one.detectable, one.unit),
    ]


def samples_of(rule: Rule, index: RunSamples, run_id: str, baseline: str) -> str | None:
    """Return the address of the samples that a rule is about; None if it is about a figure of the run."""
    if rule.kind == "max_failed":
        return address("run", run_id, "samples", query={"failed": 1}) if index.errors else None
    if rule.name not in index.metrics:
        return None
    query = {"sort": rule.name}
    if baseline and _is_of_pairs(rule, index):
        query = {"baseline": baseline, **query, "outcome": "lost"}
    return address("run", run_id, "samples", query=query)


def _is_of_pairs(rule: Rule, index: RunSamples) -> bool:
    """Return whether a rule is about the change of each sample, and not about the values of the run."""
    return rule.name in index.metrics and rule.kind not in ("min", "max")
