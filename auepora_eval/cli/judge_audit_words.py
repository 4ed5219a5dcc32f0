"""What `auepora judge-audit` prints: a section for each question that one asks of a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import echo

_MEASURES = ("accuracy", "auroc", "kappa")
_NO_SPREAD = "-"
_STATISTICS = {
    "krippendorff_alpha_nominal": "Krippendorff's alpha, nominal",
    "krippendorff_alpha_ordinal": "Krippendorff's alpha, ordinal",
}
Found = Mapping[str, Any]


def say_audit(found: Found) -> None:
    """Print an audit."""
    echo.say(
        f"{echo.one_line(found['judge'], 60)} against {found['claims']} labelled claims, "
        f"{found['supported']} of the scored ones borne out"
    )
    if found["scored"] < found["claims"]:
        echo.say(f"{found['claims'] - found['scored']} claims could not be scored; they are left out")
    if found["people_evenly_split"]:
        echo.note(f"note: on {found['people_evenly_split']} claims people are evenly split, counted as yes.")
    _say_agreement(found)
    _say_calibration(found)
    _say_ceiling(found["human_ceiling"])
    _say_estimate(found)
    _say_budget(found["budget"])
    _say_parts(found["by"])


def _say_agreement(found: Found) -> None:
    titles = {
        "accuracy": f"accuracy at {found['threshold']:g}",
        "auroc": "AUROC (0.5 is chance)",
        "kappa": f"Cohen's kappa at {found['threshold']:g}",
    }
    rows = [(titles[name], *_cells(found[name])) for name in _MEASURES]
    correlations = found["correlation"] or {}
    rows += [
        (f"{kind.capitalize()} with people's mean", *_cells(each)) for kind, each in correlations.items()
    ]
    if found["bias"] is not None:
        rows.append(("mean of people", *_cells(found["people"])))
        rows.append(("mean of the judge less that", *_cells(found["bias"], signed=True)))
    echo.say()
    echo.say_table(("Agreement with people", "Value", "95% interval"), rows, numeric=(1, 2))
    if any(row[2] == _NO_SPREAD for row in rows):
        echo.say_words(
            f"{_NO_SPREAD} instead of an interval: every resample of these claims has the same value, so "
            "they cannot tell how far it is from that of others."
        )
    if found["scored"] and found["auroc"]["value"] is None:
        kind = "borne out" if found["supported"] else "not borne out"
        echo.say_words(f"No AUROC: it needs claims of both kinds, and all of these are labelled {kind}.")
    echo.say()
    table = [
        (f"labelled {label}", *(f"{row[judged]}" for judged in ("judged supported", "judged not")))
        for label, row in found["confusion"].items()
    ]
    echo.say_table(("", "judged supported", "judged not"), table, numeric=(1, 2))


def _say_calibration(found: Found) -> None:
    calibration = found["calibration"]
    if calibration is None:
        if found["scored"]:
            echo.note("note: some scores are not between 0 and 1, so their calibration is not measured.")
        return
    echo.say()
    echo.say(f"Calibration: can a score be read as a share? ({calibration['bins']} bins of equal width)")
    rows = [
        (
            f"{each['from']:.2f} to {each['to']:.2f}",
            f"{each['claims']}",
            _number(each["judge"]),
            _number(each["people"]["value"]),
            _interval(each["people"]),
        )
        for each in calibration["table"]
        if each["claims"]
    ]
    echo.say_table(("Score", "Claims", "Judge", "People", "95% interval"), rows, numeric=range(1, 5))
    chance = calibration["by_chance"]
    told = f" (a calibrated judge stays below {chance:.3f} 95 times in 100)" if chance is not None else ""
    if chance is None:
        graded = found["correlation"] is not None
        when = "is known only for labels of yes and no" if graded else "is not known for claims in clusters"
        told = f" (how much chance alone would give {when})"
    echo.say_words(f"Expected calibration error {calibration['expected_calibration_error']:.3f}{told}.")
    brier = calibration["brier"]
    echo.say_words(
        f"Brier score {_number(brier['value'])} {_interval(brier)}; to say the mean each time would give "
        f"{calibration['brier_of_the_mean']:.3f}."
    )


def _say_ceiling(ceiling: Found | None) -> None:
    if ceiling is None:
        return
    echo.say()
    echo.say(f"The human ceiling: {ceiling['annotators']} people, {ceiling['items']} claims rated by several")
    alpha = ceiling["alpha"]
    rows = [(_STATISTICS[alpha["statistic"]], *_cells(alpha))]
    for measure, title in (("agreement", "same yes or no"), ("spearman", "Spearman")):
        for who, name in (("one_person", "one person"), ("judge", "the judge")):
            rows.append((f"{name} and the others: {title}", *_cells(ceiling[who][measure])))
    rows.append(("judge less person, same yes or no", *_cells(ceiling["judge_less_person"], signed=True)))
    echo.say_table(("People among themselves", "Value", "95% interval"), rows, numeric=(1, 2))
    echo.say()
    each = [
        (echo.one_line(name, 30), f"{one['items']}", _number(one["person"]), _number(one["judge"]))
        for name, one in ceiling["each"].items()
    ]
    headings = ("Left out", "Claims", "They as the others", "The judge as the others")
    echo.say_table(headings, each, numeric=(1, 2, 3))


def _say_estimate(found: Found) -> None:
    estimate = found["estimate"]
    if estimate is None:
        return
    if found["unlabelled_not_scored"]:
        echo.note(f"note: {found['unlabelled_not_scored']} unlabelled claims could not be scored.")
    mean, share = estimate["mean"], estimate["share_of_yes"]
    echo.say()
    echo.say(f"What people would say of everything: {mean['labels']} labels, {mean['unlabelled']} without")
    graded = found["correlation"] is not None
    rows = [*_estimated("mean", mean)] if graded else []
    rows += _estimated("share of yes", share)
    by_errors = estimate["share_of_yes_by_errors"]
    if by_errors["reason"] is None:
        about = f"Se {by_errors['sensitivity']:.2f}, Sp {by_errors['specificity']:.2f}"
        rows.append((f"  corrected by its errors ({about})", *_cells(by_errors)))
    echo.say_table(("Estimate", "Value", "95% interval"), rows, numeric=(1, 2))
    if by_errors["reason"] is not None:
        echo.note(f"note: no correction by the judge's errors: {by_errors['reason']}.")
    worth = (mean if graded else share)["worth_labels"]
    if worth is not None:
        echo.say_words(
            f"With the judge, {mean['labels']} labels are worth about {worth:.0f}. "
            "That holds if the labelled claims were chosen by lot."
        )


def _estimated(title: str, one: Found) -> list[tuple[str, ...]]:
    return [
        (title,),
        ("  people's labels alone", *_cells(one["people_alone"])),
        ("  the judge alone", _number(one["judge_alone"]), "biased"),
        (f"  both (PPI++, weight {one['weight']:.2f})", *_cells(one["corrected"])),
    ]


def _say_budget(budget: list[Found] | None) -> None:
    if not budget:
        return
    echo.say()
    echo.say("Width of the 95% interval of the mean with so many labels, the rest only judged")
    columns = ("people_alone", "judge_at_weight_1", "judge_tuned")
    rows = [(f"{row['labels']}", *(f"{row[name]:.3f}" for name in columns)) for row in budget]
    headings = ("Labels", "Labels alone", "Judge at weight 1", "Judge at its best weight")
    echo.say_table(headings, rows, numeric=range(4))


def _say_parts(parts: Mapping[str, Found]) -> None:
    if not parts:
        return
    echo.say()
    rows = [
        (
            group,
            f"{part['scored']}",
            *(_number(part[name]["value"]) for name in _MEASURES),
            _interval(part["auroc"]),
        )
        for group, part in parts.items()
    ]
    headings = ("Part", "Claims", "Accuracy", "AUROC", "Kappa", "95% interval of AUROC")
    echo.say_table(headings, rows, numeric=range(1, 6))


def _cells(figure: Found, *, signed: bool = False) -> tuple[str, str]:
    return _number(figure["value"], signed=signed), _interval(figure, signed=signed)


def _number(value: float | None, *, signed: bool = False) -> str:
    return "n/a" if value is None else f"{value:{'+' if signed else ''}.3f}"


def _interval(figure: Found, *, signed: bool = False) -> str:
    from ..runs.judge_ceiling import NOT_ESTIMABLE

    limits = figure["confidence_interval"]
    if limits is None:
        return "n/a" if figure["interval_method"] == NOT_ESTIMABLE else _NO_SPREAD
    sign = "+" if signed else ""
    return f"[{limits[0]:{sign}.3f}, {limits[1]:{sign}.3f}]"
