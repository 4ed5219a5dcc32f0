"""Evaluation as a test: the pytest plug-in, which is there once auepora-eval is installed.

    def test_no_regression(assert_no_regression):
        assert_no_regression(run, "baseline", margin={"recall@5": 0.02})

`run` and `baseline` are runs, or ids or paths of stored ones. An inconclusive result fails the test, as a
significant loss does.
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

    Run = EvaluationRun | str | Path


class Gate(Protocol):
    """What the fixtures are: called with a run, they fail the test or return the report."""

    def __call__(self, run: Run, baseline: Run | None = None, **how: Any) -> GateReport: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option for where stored runs are."""
    # Equal to core.settings.DEFAULT_OUT, which is not imported for the same reason.
    default = "data/evaluation/results"
    parser.addini("auepora_out", "folder of the stored runs, from the root of the project", default=default)


@pytest.fixture
def assert_gate(request: pytest.FixtureRequest) -> Gate:
    """Fail the test unless a run passes: assert_gate(run, rules="gate.yaml"), or rules by keyword.

    `assert_gate(run, min={"recall@5": 0.8}, max_failed=0.01)`; with a baseline `margin`, `no_regression` and
    `max_loss` too. `out` is the folder of stored runs. Files and folders go from the root of the project.
    """

    def check(run: Run, baseline: Run | None = None, **how: Any) -> GateReport:
        __tracebackhide__ = True
        from .decide.gate_report import gate_text
        from .errors import AueporaError

        try:
            report = _report(request.config, run, baseline, how)
        except AueporaError as error:
            pytest.fail(f"The run cannot be checked: {error}", pytrace=False)
        if report.exit_code:
            pytest.fail(gate_text(report), pytrace=False)
        return report

    return check


@pytest.fixture
def assert_no_regression(assert_gate: Gate) -> Gate:
    """Fail the test if a run is worse than a baseline: assert_no_regression(run, baseline, margin=0.02).

    With a `margin`, one number for all metrics or one by name, a loss of that much has to be ruled out;
    without, no metric may be significantly worse. `metrics` names those to check (default: all but latency).
    """

    def check(
        run: Run,
        baseline: Run | None = None,
        *,
        margin: float | Mapping[str, float] | None = None,
        metrics: Sequence[str] | None = None,
        **how: Any,
    ) -> GateReport:
        __tracebackhide__ = True
        if baseline is None:
            pytest.fail("assert_no_regression needs a baseline: (run, baseline).", pytrace=False)
        if margin is not None:
            by_name = isinstance(margin, Mapping) or metrics is None
            how["margin"] = margin if by_name else dict.fromkeys(metrics or (), margin)
        elif metrics is not None:
            how["no_regression"] = list(metrics)
        return assert_gate(run, baseline, **how)

    return check


def _report(config: pytest.Config, run: Run, baseline: Run | None, how: Mapping[str, Any]) -> GateReport:
    """Judge a run by the rules of a file or a mapping, and on top of them by those of the keywords."""
    from .decide.gate import gate_run
    from .decide.rules import GateRules, read_rules, rules_of

    own = {name: value for name, value in how.items() if name not in ("out", "rules", "seed")}
    folder, named = str(how.get("out") or config.getini("auepora_out")), how.get("rules")
    ground = GateRules()
    if isinstance(named, Mapping):
        ground = rules_of(named)
    elif named is not None:
        ground = read_rules(config.rootpath / named)
    # Without these, the defaults of the test's own rules would override what the file sets.
    settings = {"alpha": ground.alpha, "if_inconclusive": ground.if_inconclusive}
    return gate_run(
        _run(run, config.rootpath, folder),
        rules_of({**settings, **own}, "the test").over(ground),
        baseline=None if baseline is None else _run(baseline, config.rootpath, folder),
        seed=how.get("seed", 0),
    )


def _run(run: Run, root: Path, folder: str) -> EvaluationRun | GatedRun:
    """Return a run that is there already, or a stored one by its id or path."""
    from .core.types import EvaluationRun
    from .decide.figures import GatedRun
    from .errors import PlanError
    from .store.storage import EvaluationResultsStorage

    if isinstance(run, EvaluationRun):
        return run
    if not isinstance(run, str | Path):
        raise PlanError(f"{run!r:.60} is not a run, nor the id or path of a stored one.")
    # The flag is for the commands that a message names.
    return GatedRun.stored(EvaluationResultsStorage(root / folder), str(run), f" --out {shlex.quote(folder)}")
