"""The components of pages: what is shown, what is marked, and that hostile text stays text."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

import pytest

from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    Failure,
    MetricResult,
    Response,
    RetrievedDocument,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.pages.components.charts import (
    SHARE,
    Point,
    change_scale,
    interval_bar,
    linear_scale,
    trend_chart,
)
from auepora_eval.pages.components.markup import tag
from auepora_eval.pages.components.parts import Column, card, chip, group_row, number, strip, table, verdict
from auepora_eval.pages.components.sample import Answered, Claim, sample_parts
from auepora_eval.pages.layout import document, inside, own_file
from tests.builders import a_sample

EVIL = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>\u202e\u0000"


def words(markup: object) -> str:
    """The text of markup, one space between words."""
    return " ".join(re.sub(r"<[^>]*>", " ", str(markup)).split())


# Numbers and tables.


@pytest.mark.parametrize(
    ("value", "unit", "signed", "text"),
    [
        (0.75931, "", False, "0.759"),
        (-0.0066, "", True, "−0.007"),
        (0.0001, "", True, "±0.000"),
        (23.456, "", False, "23.5"),
        (0.0127, "s", False, "12.7 ms"),
        (math.nan, "", False, "n/a"),
    ],
)
def test_numbers_are_short_and_changes_have_a_sign(value: float, unit: str, signed: bool, text: str) -> None:
    assert number(value, unit, signed=signed) == text


def test_low_scores_are_tinted_if_more_is_better() -> None:
    share = MetricResult("recall@5", TargetCategory.RETRIEVAL_RELEVANCE, 0.5)
    rate = MetricResult(
        "over_refusal_rate", TargetCategory.NEGATIVE_REJECTION, 0.5, {"higher_is_better": False}
    )
    assert [str(chip(each, share)) for each in (0.1, 0.65)] == [
        '<span class="h h0">0.10</span>',
        '<span class="h h3">0.65</span>',
    ]
    assert str(chip(0.1, rate)) == '<span class="h">0.10</span>'
    assert str(chip(None, share)) == '<span class="h mute">n/a</span>'


def test_a_heading_sorts_by_its_column_and_the_second_click_turns_it_round() -> None:
    columns = [Column("Sample", None, "sample"), Column("recall", "n", "recall")]
    made = str(
        table("t", columns, [["a", "1"]], sort=("recall", "down"), href=lambda *to: f"/?{'-'.join(to)}")
    )
    assert '<th scope="col" aria-sort="none"><a href="/?sample-down">' in made
    assert '<th scope="col" class="n" aria-sort="descending"><a href="/?recall-up">' in made
    assert '<tr><th scope="row">a<td class="n">1' in made


# Charts.


def test_a_scale_of_changes_fits_them_and_shows_small_ones() -> None:
    scale = change_scale([(0.733, None), (0.007, None)])
    assert scale.ticks == (-1.0, -0.25, 0.0, 0.25, 1.0)
    assert scale(0) == 50
    assert scale(0.007) - 50 > 4, "0.007 of 1 is seen"
    assert change_scale([(0.01, (-0.02, 0.04))]).high == 0.05


def test_an_interval_that_goes_on_ends_in_an_arrow() -> None:
    assert str(interval_bar(SHARE, 0.5, (0.4, 0.6))).count("<svg") == 1
    assert str(interval_bar(SHARE, 0.5, (-0.4, 1.6))).count("<svg") == 3
    # Also a value beyond the scale; the arrow is beside a dot at the same end, which would hide it.
    beyond = str(interval_bar(SHARE, 1.4))
    assert 'cx="100%"' in beyond
    assert 'd="M11 0' in beyond


@pytest.mark.parametrize("values", [[0.61, 0.79], [3.0], [0.001, 0.0013], [math.nan]])
def test_an_axis_has_round_numbers_around_the_values(values: list[float]) -> None:
    scale = linear_scale(values)
    assert 2 <= len(scale.ticks) <= 7
    assert all(scale.low <= value <= scale.high for value in values if not math.isnan(value))


# Samples.


def test_the_names_of_lines_that_end_at_one_height_do_not_touch() -> None:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    lines = [[Point(day, value, None, name, "/")] for name, value in (("a", 0.5), ("b", 0.5), ("c", 1.0))]
    drawn = trend_chart(lines, names=["a", "b", "c"], label="over time")
    names = re.findall(r'<text[^>]*y="([0-9.]+)" class="name \w+"[^>]*>(\w)', str(drawn))
    places = {name: float(y) for y, name in names}
    assert places["c"] < places["a"] == places["b"] - 14


def test_a_huge_answer_is_cut() -> None:
    output = SystemOutputs([], Response("word " * 100_000))
    body = sample_parts(a_sample(reference="x" * 1_000_000), [Answered(output), Answered(output)], None)
    assert len(str(body)) < 160_000


def test_hostile_text_in_every_field_of_a_sample() -> None:
    doc = Document(EVIL, EVIL, {"title": EVIL, "spans": [{"start": 0, "end": 5, "text": EVIL}]})
    sample = EvaluationSample(
        EVIL, EVIL, [doc], None, Response(EVIL, metadata={"alternatives": [EVIL]}), {EVIL: EVIL}
    )
    output = SystemOutputs(
        [RetrievedDocument(doc, math.nan, 1)], Response(EVIL, metadata={"citations": EVIL})
    )
    result = MetricResult(EVIL, TargetCategory.LATENCY, 0.5)
    answers = [
        Answered(output, [(result, SampleScore(None, EVIL))], EVIL, [Claim(EVIL, EVIL, EVIL, EVIL)]),
        Answered(SystemOutputs([], Response(""), error=Failure(EVIL, EVIL)), [(result, None)], EVIL),
    ]
    made = str(sample_parts(sample, answers, EVIL))
    made += (
        f"{verdict(EVIL)}{strip('down', EVIL, EVIL)}{card(EVIL, EVIL, about=EVIL)}{group_row(2, EVIL, EVIL)}"
    )
    made += f"{table(EVIL, [EVIL], [[EVIL]])}{interval_bar(SHARE, 0.5, title=EVIL)}"
    made += document(EVIL, inside("1", "a{}"), tag("body", EVIL))
    elements = set(re.findall(r"<(\w+)", made))
    assert "img" not in elements
    assert "script" not in elements
    assert "\u202e" not in made
    assert "onerror=alert" in made  # it is there, as text


# Pages.


def test_a_page_in_one_file_allows_its_own_style_and_script_only() -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', str(inside("let a = 1", "a{}")))
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2
    assert re.search(r"default-src .{0,10}none", policy)


def test_colours_have_enough_contrast() -> None:
    """4.5 to 1 for each text colour on each background, in both schemes: WCAG 2.2 AA."""
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", own_file("style.css"))
    for scheme in (1, 2):
        colours = {pair[0]: pair[scheme] for pair in pairs}
        for text in (
            "ink",
            "soft",
            "mute",
            "good",
            "bad",
            "warn",
            "link",
            "base",
            "third",
            "fourth",
            "fifth",
        ):
            for back in ("paper", "side", "over", "tint"):
                assert contrast(colours[text], colours[back]) >= 4.5, (scheme, text, back)
        for text, back in (
            ("good", "good-back"),
            ("bad", "bad-back"),
            ("warn", "warn-back"),
            ("link", "link-back"),
        ):
            assert contrast(colours[text], colours[back]) >= 4.5, (scheme, text)
            assert contrast(colours["ink"], colours[back]) >= 7, (scheme, back)


def contrast(one: str, other: str) -> float:
    lights = sorted((luminance(one), luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_gold_span_is_marked_in_a_document_that_goes_by_the_name_of_its_record() -> None:
    gold = Document("all.jsonl#tides#0", "It turns. Twice a day.", {"source": "all.jsonl#tides"})
    gold.metadata["spans"] = [{"start": 10, "end": 21, "text": "Twice a day"}]
    output = SystemOutputs([RetrievedDocument(Document("tides", "Tide. Twice a day."), 1.0, 1)], Response(""))
    sample = EvaluationSample("1", "How often?", [gold])
    body = sample_parts(sample, [Answered(output, match="source")], None)
    assert "<mark>Twice a day</mark>" in body.text


def test_a_document_says_where_it_was_in_the_other_run() -> None:
    """Which place it had there, also if this run lost it; nothing of a document that neither found."""
    gold = [Document(name, "text") for name in ("kept", "lost", "never")]
    rankings = ["lost kept up", "up kept more"]
    answers = [
        Answered(
            SystemOutputs(
                [
                    RetrievedDocument(Document(name, "text"), 9.0 - at, at)
                    for at, name in enumerate(ranking.split(), start=1)
                ],
                Response("x"),
            ),
            name=name,
        )
        for name, ranking in zip(("old", "new"), rankings, strict=True)
    ]
    body = words(sample_parts(EvaluationSample("1", "q", gold), answers, None))
    for part in (
        "2 kept ✓ gold same in old score 7 text",
        "– lost ✕ gold, not retrieved ▼ was 1 in old text",
        "– never ✕ gold, not retrieved text",
        "1 up ▲ was 3 in old score 8 text",
        "3 more new score 6 text",
    ):
        assert part in body


def test_a_reason_that_several_metrics_have_is_said_once() -> None:
    sample = EvaluationSample("1", "q", [Document("a", "")])
    scores = [
        (MetricResult(name, TargetCategory.RETRIEVAL_RELEVANCE, 0.0), SampleScore(0.0))
        for name in ("hit@5", "mrr")
    ]
    body = words(sample_parts(sample, [Answered(SystemOutputs([], Response("x")), scores)], "mrr"))
    assert "mrr 0.00 0 of 1 gold documents retrieved; missed a hit@5 0.00" in body
    assert body.count("missed a") == 1


def test_the_place_that_a_gold_citation_names_is_marked_beside_what_the_answer_cites() -> None:
    gold = {"file_name": "tides", "start_char": 6, "end_char": 18}
    cited = [{"file_name": "tides", "start_char": 0, "end_char": 5}]
    tides = Document("tides", "Tide. Twice a day.")
    output = SystemOutputs(
        [RetrievedDocument(tides, 1.0, 1)], Response("Often.", metadata={"citations": cited})
    )
    sample = EvaluationSample("1", "How often?", [Document("tides", "")], metadata={"citations": [gold]})
    body = sample_parts(sample, [Answered(output)], None)
    assert '<mark class="cited">Tide.</mark> <mark>Twice a day.</mark>' in body.text
