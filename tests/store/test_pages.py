"""Pages of the samples of a run: sorted, filtered and searched as the run itself says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.store.pages import Filter, RunSamples
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample

# Some samples have no gold documents, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")

# Sample 0 finds everything, 1 finds one of two, 2 finds nothing, 3 fails, 4 has no gold.
ANSWERS = {"0": "ab", "1": "ax", "2": "xy", "4": "ab"}


def answer(query: str) -> dict[str, object]:
    number = query.partition(" ")[0]
    if number == "3":
        raise ConnectionError("the index is down")
    return {"retrieved": list(ANSWERS[number]), "answer": f"the Ärmel of {number}"}


@pytest.fixture(params=["called", "saved"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    kinds = ("easy", "hard", "hard", "easy", "easy")
    samples = [
        a_sample(
            str(n),
            f"{n} question",
            relevant="ab" if n < 4 else None,
            labels={"kind": kind, "tags": ["x", kind]},
        )
        for n, kind in enumerate(kinds)
    ] + [
        a_sample(f"more-{n}", "4 more", labels={"kind": "easy", "tags": ["x"]}, relevant=None)
        for n in range(12)
    ]
    evaluator = AueporaEvaluator(answer, EvaluationPlan("recall@2,mrr"))
    storage = EvaluationResultsStorage(tmp_path / "runs")
    if request.param == "called":
        evaluator.run(a_dataset(*samples), evaluation_id="r", storage=storage)
    else:
        storage.save_run(evaluator.run(a_dataset(*samples), evaluation_id="r"))
    return storage.find("r")


def ids(index: RunSamples, wanted: Filter, metric: str | None = None, count: int = 50) -> list[str]:
    return [
        row.sample_id for row in index.rows(index.page(index.matching(wanted), metric, count=count).places)
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(Filter(failed=True), ["3"], id="failed"),
        pytest.param(
            Filter(gold_missed=True), ["1", "2", "3"], id="gold missed; a failed call found nothing"
        ),
        pytest.param(Filter(slices=(("kind", "hard"),)), ["1", "2"], id="slice"),
        pytest.param(
            Filter(slices=(("tags", "x"), ("kind", "hard"))), ["1", "2"], id="two slices, one of a list"
        ),
        pytest.param(Filter(ranges=(("recall@2", 0.5, 1.0),)), ["0", "1"], id="range includes both ends"),
        pytest.param(Filter(words="ARMEL of 1"), ["1"], id="words, without accents and case"),
        pytest.param(Filter(words="quest 2"), ["2"], id="parts of words, in any order"),
        pytest.param(Filter(words="more-2"), ["more-2"], id="id of a sample"),
        pytest.param(Filter(words='" OR "a* NEAR(x'), [], id="signs are signs"),
        pytest.param(Filter(words="..."), [], id="no word at all"),
        pytest.param(Filter(error=0), ["3"], id="group of failures"),
    ],
)
def test_filters(path: Path, wanted: Filter, expected: list[str]) -> None:
    assert ids(RunSamples(path), wanted) == expected


def test_worst_first_is_failed_then_low_then_high_then_skipped(path: Path) -> None:
    index = RunSamples(path)
    assert ids(index, Filter(), "recall@2")[:4] == ["3", "2", "1", "0"]
    assert index.errors == [("ConnectionError", "the index is down")]


def test_pages_join_to_the_whole_list(path: Path) -> None:
    index = RunSamples(path)
    mask = index.matching(Filter())
    whole = index.page(mask, "mrr").places
    after, pages = None, []
    while True:
        page = index.page(mask, "mrr", after=after, count=2)
        pages.append(page)
        if not page.has_more:
            break
        after = page.places[-1]
    assert [place for page in pages for place in page.places] == whole
    assert [page.start for page in pages] == list(range(0, 17, 2))
    assert [page.before for page in pages[:4]] == [None, None, whole[1], whole[3]]
    for number, place in enumerate(whole):
        before, previous, following = index.neighbours(mask, "mrr", place)
        assert before == number
        assert previous == (whole[number - 1] if number else None)
        assert following == (whole[number + 1] if number + 1 < len(whole) else None)


@settings(max_examples=60, deadline=None)
@given(words=st.text(max_size=30))
def test_no_words_are_an_error(words: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "words"
    storage = EvaluationResultsStorage(folder)
    if not storage.state("r").has_results:
        evaluator = AueporaEvaluator(lambda query: {"answer": "ﬁne 東京 ͏x"}, EvaluationPlan("mean_latency"))
        storage.save_run(evaluator.run(a_dataset(a_sample("1")), evaluation_id="r"))
    index = RunSamples(storage.find("r"))
    assert index.matching(Filter(words=words)).sum() <= 1
    index.close()
