"""What can be seen, and what it takes, in words and as a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..runs.power import MetricPower, PowerReport
from .number_texts import NOT_MEASURED, TOO_FEW, value_text

_SHOWN = 2  # sentences about metrics; the table has them all


_LEGEND = "Same: both systems answer the same samples. Other: each is asked as many samples of its own."


def power_headings(report: PowerReport) -> list[str]:
    """The headings of the table, for what was asked."""
    found = ["Metric"]
    if report.runs:
        found.append("Value")
    if _tells_detectable(report):
        found += ["Samples", "Seen, same", "Seen, other"]
    if report.effect is not None:
        found += ["Needed, same", "Needed, other"]
    return found


def power_rows(report: PowerReport) -> list[list[str]]:
    """A row for each metric, in the order of `power_headings`."""
    rows = []
    for metric in report.metrics:
        row = [metric.name]
        if report.runs:
            row.append(" → ".join(value_text(value, metric.unit) for value in metric.values))
        if _tells_detectable(report):
            row.append(_count(metric.samples))
            row += [_seen(metric.detectable_same, metric, metric.is_known)]
            row += [_seen(metric.detectable_other, metric, metric.other_is_known)]
        if report.effect is not None:
            row += [_count(metric.needed_same), _count(metric.needed_other)]
        rows.append(row)
    return rows


def power_in_words(report: PowerReport) -> list[str]:
    """Sentences for whoever decides: what would be noticed, what would go unseen, what it would take."""
    sentences = []
    for metric in report.metrics[:_SHOWN]:
        if report.effect is not None:
            sentences.append(_needed_in_words(report, metric, report.effect))
        elif metric.samples is not None:
            sentences.append(_detectable_in_words(report, metric, metric.samples))
    if len(report.metrics) > _SHOWN:
        sentences.append("The table has the other metrics.")
    sentences.append(_how(report))
    sentences.append(_LEGEND)
    return sentences


def power_to_dict(report: PowerReport) -> dict[str, Any]:
    """A report as JSON has it, with the sentences."""
    return {**asdict(report), "in_words": power_in_words(report)}


def _needed_in_words(report: PowerReport, metric: MetricPower, effect: float) -> str:
    change = f"a change of {_size(effect, metric.unit)} in {metric.name}"
    if not metric.is_known:
        return f"No sample differs in {metric.name}: how many it takes is not known."
    if metric.needed_same is None:
        if metric.largest is not None and effect > metric.largest:
            return f"{metric.name} cannot change by {_size(effect, metric.unit)}."
        return f"To notice {change} takes more than a million million samples: it is too small."
    words = (
        f"To notice {change} {_often(report.power)}, ask both systems the same {_samples(metric.needed_same)}"
    )
    if metric.needed_other is not None:
        words += f"; if each is asked other samples, {metric.needed_other:,} each"
    if metric.samples is not None and report.runs:
        less = metric.needed_same <= metric.samples
        words += f" (there are {metric.samples:,}{': enough' if less else ''})"
    return f"{words}."


def _detectable_in_words(report: PowerReport, metric: MetricPower, samples: int) -> str:
    if not metric.is_known:
        return f"No sample differs in {metric.name}: how much others would is not known."
    if metric.detectable_same is None:
        return f"{_samples(samples).capitalize()} are too few to notice any change in {metric.name}."
    least = f"change by {_size(metric.detectable_same, metric.unit)}"
    words = (
        f"With {_samples(samples)}, {metric.name} has to {least} to be noticed {_often(report.power)}, "
        "if both systems answer the same ones"
    )
    if metric.detectable_other is not None:
        words += f" ({_size(metric.detectable_other, metric.unit)} if they do not)"
    return f"{words}. A smaller change can be there and go unseen."


def _how(report: PowerReport) -> str:
    words = f"A false alarm has a chance of {report.alpha:g}"
    if report.tests > 1:
        words += f" over all {report.tests} metrics together, {report.level:.2g} each"
        words += ": name those that matter (--metric)"
    words += "."
    if report.assumed_correlation is not None:
        words += (
            f" How much two systems' scores go together is not known: a correlation of "
            f"{report.assumed_correlation:g} is assumed (--correlation); a second run would tell."
        )
    if report.per_question is not None:
        words += f" Each question is answered {report.per_question} times by each system."
    return " ".join([words, *(f"{note}." for note in report.notes)])


def _tells_detectable(report: PowerReport) -> bool:
    return any(metric.samples is not None for metric in report.metrics)


def _often(power: float) -> str:
    return "four times in five" if abs(power - 0.8) < 1e-9 else f"{100 * power:g} times in 100"


def _samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"


def _count(count: int | None) -> str:
    return NOT_MEASURED if count is None else f"{count:,}"


def _seen(size: float | None, metric: MetricPower, is_known: bool) -> str:
    return TOO_FEW if size is None and is_known else value_text(size, metric.unit)


def _size(size: float, unit: str) -> str:
    return value_text(size, unit) if unit == "s" else f"{size:.3g}"
