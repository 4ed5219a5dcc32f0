"""The components of pages: what is shown, what is marked, and that hostile text stays text."""

from __future__ import annotations

import math
import re

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
from auepora_eval.pages.components.charts import Dot
from auepora_eval.pages.components.sample import (
    Answered,
    Claim,
    sample_body,
)
from auepora_eval.pages.components.tables import (
    Change,
    Slice,
    forest,
    metric_card,
    slices_table,
)
from auepora_eval.pages.page import inside, linked, own_file, page
from tests.builders import a_sample

EVIL = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>\u202e\u0000"


def a_result(value: float = 0.5, **details: object) -> MetricResult:
    counts = {"num_total": 10, "num_samples": 8, "num_skipped": 1, "num_failed": 1}
    return MetricResult("recall@5", TargetCategory.RETRIEVAL_RELEVANCE, value, {**counts, **details})


def words(markup: object) -> str:
    """The text of markup, one space between words."""
    return " ".join(re.sub(r"<[^>]*>", " ", str(markup)).split())


# Cards and tables.


def test_a_forest_is_drawn_with_better_to_the_right() -> None:
    change = Change("latency", 2, 1, -1.0, (-1.5, -0.5), "better", "s", "0.01", higher_is_better=False)
    assert change.gain == Dot(1.0, (0.5, 1.5), kind="gain")
    text = words(forest([change], ("old", "new")))
    assert "latency ↓ better 2 s 1 s -1 s [-1.5, -0.5] s 0.01" in text


def rows_of(made: str) -> list[str]:
    return made.partition("<tbody>")[2].split("<tr>")[1:]


def places(row: str) -> tuple[float, list[float]]:
    """Return where the zero line and the dots of a row are."""
    (zero,) = re.findall(r'<line class="zero" x1="([\d.]+)"', row)
    return float(zero), [float(x) for x in re.findall(r'<circle class="\w+" cx="([\d.]+)"', row)]


def test_a_change_without_a_scale_is_in_words_only() -> None:
    share = Change("hit@5", 0.5, 0.6, 0.1, None, "inconclusive")
    times = Change("latency", 1, 2, 1.0, None, "inconclusive", "s", is_share=False)
    repeated = Change("latency", 1, 2, 1.0, (0.5, 1.5), "worse", "s", is_share=False)
    drawn = [row.count("<svg") for row in rows_of(str(forest([share, times, repeated], ("old", "new"))))]
    assert drawn == [1, 0, 1]
    assert "latency inconclusive no interval 1 s 2 s +1 s" in words(forest([times], ("old", "new")))


def test_a_small_significant_change_has_a_side_and_an_open_one_is_not_filled() -> None:
    large = Change("large", 0.1, 0.5, 0.4, (0.3, 0.5), "better")
    small = Change("small", 0.852, 0.845, -0.007, (-0.01, -0.004), "worse")
    chance = Change("chance", 0.852, 0.845, -0.007, (-0.03, 0.02), "inconclusive")
    rows = rows_of(str(forest([large, small, chance, large, large], ("old", "new"))))
    zero, (dot,) = places(rows[0])
    assert dot > zero + 50
    assert 'class="gain" cx=' in rows[0]
    assert f'<path class="loss" d="M{zero:g} 2v10l-9-5z"' in rows[1], "a triangle to the left of the line"
    assert 'class="open" cx=' in rows[2]


# Drawings.


# Differences of texts.


# Samples.


def test_a_huge_answer_is_cut() -> None:
    output = SystemOutputs([], Response("word " * 100_000))
    body = sample_body(a_sample(reference="x" * 1_000_000), [Answered(output), Answered(output)])
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
    made = str(sample_body(sample, answers, about={EVIL: EVIL}))
    made += str(metric_card(result, note=EVIL, about=EVIL))
    made += str(slices_table([Slice(EVIL, EVIL, 1, [1.0], 0.1, None, EVIL)], [EVIL], metric=EVIL))
    made += str(forest([Change(EVIL, 0, 1, 1, None, EVIL, p=EVIL, samples=EVIL)], (EVIL, EVIL)))
    made += page(EVIL, assets=inside("1"), header=EVIL, main=EVIL, footer=EVIL)
    elements = set(re.findall(r"<(\w+)", made))
    assert "img" not in elements
    assert made.count("<script") == 1  # our own
    assert "\u202e" not in made
    assert "onerror=alert" in made  # it is there, as text


# Pages.


def test_a_page_in_one_file_allows_its_own_style_and_script_only() -> None:
    made = page("t", assets=inside("let a = 1"), main="x")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', made)
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2
    assert re.search(r"default-src .{0,10}none", policy)
    assert re.search(r"script-src .{0,10}none", page("t", assets=inside()))


def test_a_page_of_a_server_has_no_inline_script_or_style() -> None:
    made = page("t", assets=linked("/static/style.css", "/static/htmx.js"), main="x")
    assert '<link rel="stylesheet" href="/static/style.css"/>' in made
    assert '<script src="/static/htmx.js" defer></script>' in made
    assert "<style" not in made


def test_colours_have_enough_contrast() -> None:
    """4.5 to 1 for each text colour on each background, in both schemes: WCAG 2.2 AA."""
    schemes = re.findall(r"--ink: .*?--s3: [^;]*;", own_file("style.css"), flags=re.DOTALL)
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--([\w-]+): (#\w+)", scheme))
        for text in ("ink", "soft", "good", "bad", "link", "gold", "cited"):
            for back in ("paper", "tint"):
                assert contrast(colours[text], colours[back]) >= 4.5, (text, back)
        for back in ("gold-back", "cited-back", "ins-back", "del-back"):
            assert contrast(colours["ink"], colours[back]) >= 7, back
        for series in ("s0", "s1", "s2", "s3"):
            assert contrast(colours[series], colours["paper"]) >= 3, series


def contrast(one: str, other: str) -> float:
    lights = sorted((luminance(one), luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
