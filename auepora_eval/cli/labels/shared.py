"""What `labels score` and `labels sweep` share: label sets, and who decides about the answers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from .. import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.types import EvaluationSample, SystemOutputs
    from ...labels.detector import LabelDecision


def add_dataset(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", metavar="FILE", required=True, help="a label set, or `demo`")
    parser.add_argument("--format", metavar="NAME", help="the dataset's format (default: detected)")


def add_detector(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default="seed",
        help="for --fhri: thresholds and weights: seed, final or a YAML file (default: seed)",
    )
    parser.add_argument(
        "--contradiction",
        choices=("lexical", "none"),
        default="lexical",
        help="for --fhri: how answers of a pair are compared (default: lexical)",
    )
    parser.add_argument(
        "--soft",
        choices=("label", "flag"),
        default="label",
        help="for --fhri: a soft contradiction is a label, or only flagged for review (default: label)",
    )
    parser.add_argument(
        "--inclusive", action="store_true", help="a score at the threshold is accurate, not only one above it"
    )


def labelled_samples(args: Namespace) -> list[EvaluationSample]:
    """Return the samples of the dataset, each with its true label."""
    from ...demo.world import demo_labels
    from ...labels.scoring import check_labelled
    from ..common import check_has_samples, open_samples

    dataset = demo_labels() if args.dataset == "demo" else open_samples(args.dataset, args.format)
    samples = list(dataset)
    check_has_samples(args.dataset, len(samples))
    check_labelled(samples)
    return samples


def decisions(
    args: Namespace, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs] | None = None
) -> list[LabelDecision]:
    """Return what the FHRI detector says about the stored answers, or about these."""
    from ...labels.detector import FhriDetector, load_profile, stored_output
    from ...metrics.answers.contradiction import lexical_contradiction

    detector = FhriDetector(
        load_profile(args.profile),
        contradiction=lexical_contradiction if args.contradiction == "lexical" else None,
        soft=args.soft,
        inclusive=args.inclusive,
    )
    return detector.decide(samples, outputs or [stored_output(sample) for sample in samples])


def note_no_detector() -> None:
    """Say how little the index is worth, wherever its labels are shown."""
    echo.note(
        "note: the FHRI ranks accurate answers no better than chance on public data (docs/how-to/labels.md)."
    )


def figure(value: Any, interval: Any = None) -> str:
    """Return a number with its interval, or n/a."""
    if value is None or value != value:
        return "n/a"
    text = f"{value:.3f}"
    return f"{text} [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else text
