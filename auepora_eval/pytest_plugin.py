"""Evaluation as a test: the pytest plug-in, which is there once auepora-eval is installed.

    def test_no_regression(assert_no_regression):
        assert_no_regression(run, "baseline", margin={"recall@5": 0.02})

`run` and `baseline` are runs, or ids or paths of stored ones. A marker gives what several tests share:

    @pytest.mark.auepora(baseline="baseline", out="runs", max_failed=0.01)

An inconclusive result fails the test, as a significant loss does.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

# Every pytest of the environment loads this module: the library is imported when a fixture is used.
if TYPE_CHECKING:
    from .core.types import EvaluationRun
    from .decide.figures import GatedRun
    from .decide.gate import GateReport

_MARKER = (
    "auepora(baseline=..., out=..., rules=..., margin=..., ...): what assert_gate and assert_no_regression "
    "are to use where a test does not say it"
)
_BASELINE = 'A baseline is named in the call, or by @pytest.mark.auepora(baseline="...").'
# Equal to core.settings.DEFAULT_OUT, which is not imported for the same reason.
_USUAL_OUT = "data/evaluation/results"
# Options of the fixtures. Every other keyword is a rule of the gate.
_OURS = ("baseline", "out", "rules", "seed", "resamples", "allow_mismatch")


class Gate(Protocol):
    """What the fixtures are: called with a run, they fail the test or give the report."""

    def __call__(
        self, run: EvaluationRun | str | Path, baseline: EvaluationRun | str | Path | None = None, **how: Any
    ) -> GateReport: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """The ini option for where stored runs are."""
    parser.addini("auepora_out", "folder of the stored runs, from the root of the project", default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def assert_gate(request: pytest.FixtureRequest) -> Gate:
    """Fail the test unless a run passes: assert_gate(run, rules="gate.yaml"), or rules by keyword.

    `assert_gate(run, min={"recall@5": 0.8}, max_failed=0.01)`; with a baseline `margin`, `no_regression` and
    `max_loss` too. Files and folders go from the root of the project.
    """

    def check(
        run: EvaluationRun | str | Path, baseline: EvaluationRun | str | Path | None = None, **how: Any
    ) -> GateReport:
        __tracebackhide__ = True
        how = {**_marked(request), **how}
        if baseline is not None:
            how["baseline"] = baseline
        report = _judged_or_failed(request, run, how)
        if report.exit_code:
            from .decide.gate_report import gate_text

            pytest.fail(gate_text(report), pytrace=False)
        return report

    return check


@pytest.fixture
def assert_no_regression(request: pytest.FixtureRequest, assert_gate: Gate) -> Gate:
    """Fail the test if a run is worse than a baseline: assert_no_regression(run, baseline, margin=0.02).

    With a `margin`, one number for all metrics or one by name, a loss of that much has to be ruled out;
    without, no metric may be significantly worse. `metrics` names those to check (default: all but latency).
    """

    def check(
        run: EvaluationRun | str | Path,
        baseline: EvaluationRun | str | Path | None = None,
        *,
        margin: float | Mapping[str, float] | None = None,
        metrics: Sequence[str] | None = None,
        **how: Any,
    ) -> GateReport:
        __tracebackhide__ = True
        if margin is not None:
            by_name = isinstance(margin, Mapping) or metrics is None
            how["margin"] = margin if by_name else dict.fromkeys(metrics or (), margin)
        elif metrics is not None:
            how["no_regression"] = list(metrics)
        if baseline is None and "baseline" not in {**_marked(request), **how}:
            pytest.fail(f"assert_no_regression has no baseline. {_BASELINE}", pytrace=False)
        return assert_gate(run, baseline, **how)

    return check


def _marked(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the markers say: that of the test over that of its class and its module."""
    options: dict[str, Any] = {}
    for marker in request.node.iter_markers("auepora"):
        if marker.args:
            what = f"pytest.mark.auepora({marker.args[0]!r:.60}) says nothing that is understood."
            pytest.fail(f"{what} Name what it is: pytest.mark.auepora(baseline=...).", pytrace=False)
        # iter_markers starts with the marker closest to the test, which has to win.
        options = {**marker.kwargs, **options}
    return options


def _judged_or_failed(
    request: pytest.FixtureRequest, run: EvaluationRun | str | Path, how: Mapping[str, Any]
) -> GateReport:
    """The report; a mistake in how it is asked for fails the test in a sentence, in the words of a test."""
    __tracebackhide__ = True
    from .errors import AueporaError

    try:
        return _judged(request.config, run, how)
    except AueporaError as error:
        message = f"The run cannot be checked: {error}"
        if "baseline" not in how:
            message += f" {_BASELINE}"
    pytest.fail(message, pytrace=False)


def _judged(config: pytest.Config, run: EvaluationRun | str | Path, how: Mapping[str, Any]) -> GateReport:
    from .decide.gate import gate_run
    from .decide.rules import GateRules, read_rules, rules_of

    folder = str(how.get("out") or config.getini("auepora_out") or _USUAL_OUT)
    out, flags = config.rootpath / folder, _out_flag(config, folder)
    named_rules = how.get("rules")
    ground = GateRules()
    if isinstance(named_rules, Mapping):
        ground = rules_of(named_rules)
    elif named_rules is not None:
        ground = read_rules(config.rootpath / named_rules)
    own = {name: value for name, value in how.items() if name not in _OURS}
    # Without these, the defaults of the test's own rules would override what the file sets.
    settings = {"alpha": ground.alpha, "if_inconclusive": ground.if_inconclusive}
    rules = rules_of({**settings, **own}, "the test").over(ground)
    baseline = how.get("baseline")
    return gate_run(
        _run(run, out, flags),
        rules,
        baseline=None if baseline is None else _run(baseline, out, flags),
        **{name: how[name] for name in ("seed", "resamples", "allow_mismatch") if name in how},
    )


def _out_flag(config: pytest.Config, folder: str) -> str:
    """What a command needs to find the runs, typed where pytest was started."""
    if config.invocation_params.dir != config.rootpath:
        folder = str(config.rootpath / folder)
    return "" if folder == _USUAL_OUT else f" --out {shlex.quote(folder)}"


def _run(run: EvaluationRun | str | Path, out: Path, flags: str) -> EvaluationRun | GatedRun:
    """A run that is there already, or a stored one by its id or path."""
    from .core.types import EvaluationRun
    from .decide.figures import GatedRun
    from .errors import PlanError
    from .store.storage import EvaluationResultsStorage

    if isinstance(run, str | Path):
        return GatedRun.stored(EvaluationResultsStorage(out), str(run), flags)
    if not isinstance(run, EvaluationRun | GatedRun):
        raise PlanError(
            f"{run!r:.60} is not a run. Give an EvaluationRun, or the id or path of a stored one."
        )
    return run
