"""Scores that were kept chunk by chunk are those of one piece, in memory or in a file."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from auepora_eval.core.batch import Batch
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.score_store import ScoreStore, StoredNotes, StoredScores
from auepora_eval.core.scores import Note, Scores
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import StorageError
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output

SIZES = (3, 1, 6)  # of the chunks
NAMES = ("recall@2", "token_f1", "bleu", "mean_latency")  # bleu has parts


def world() -> tuple[list[EvaluationSample], list[SystemOutputs]]:
    """Two samples share a cluster, one has no gold, one failed, one has nothing that can be scored."""
    samples = [
        a_sample(f"s{n}", relevant="ab", reference="a b c", cluster="pair" if n in (4, 5) else None)
        for n in range(9)
    ]
    outputs = [an_output("axb"[: n % 4], "a b", timings={"end_to_end": n / 8}) for n in range(9)]
    outputs[7] = a_failure()
    return [*samples, a_sample("bare")], [*outputs, an_output("a")]


def metric(name: str) -> SampleMetric:
    found = parse_metric(name)
    assert isinstance(found, SampleMetric)
    return found


def pieces(name: str) -> list[Scores]:
    samples, outputs = world()
    starts = np.cumsum([0, *SIZES]).tolist()
    spans = list(pairwise(starts))
    return [metric(name).score_batch(Batch(samples[a:b], outputs[a:b])) for a, b in spans]


def stored(folder: Path, in_memory: int) -> ScoreStore:
    store = ScoreStore(folder, in_memory=in_memory)
    for chunk in zip(*(pieces(name) for name in NAMES), strict=True):
        store.add(dict(zip(NAMES, chunk, strict=True)))
    return store


@pytest.fixture(params=[0, 1_000_000], ids=["in a file", "in memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ScoreStore:
    # 0 would mean "never to a file" to the spool, 1 is the least.
    return stored(tmp_path, request.param or 1)


def assert_same(ours: Scores, whole: Scores) -> None:
    assert list(ours.sample_ids) == list(whole.sample_ids)
    np.testing.assert_array_equal(ours.values, whole.values)
    if whole.parts is None:
        assert ours.parts is None
    else:
        assert ours.parts is not None
        np.testing.assert_array_equal(ours.parts, whole.parts)
    assert dict(ours.notes) == whole.notes
    assert ours.clusters == whole.clusters
    assert (ours.if_failed is None) == (whole.if_failed is None)
    for mine, theirs in zip(ours.if_failed or (), whole.if_failed or (), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert list(ours) == list(whole)
    assert ours.coverage() == whole.coverage()


@pytest.mark.parametrize("name", NAMES)
def test_what_was_kept_is_what_joined_scores_are(store: ScoreStore, name: str) -> None:
    whole = Scores.joined(pieces(name))
    ours = store.scores(name)
    assert_same(ours, whole)
    ours.let_go()
    assert "values" not in vars(ours)
    assert_same(ours, whole)
    kept, joined = metric(name).summarise(ours), metric(name).summarise(whole)
    assert (kept.value, kept.details) == (joined.value, joined.details)


def sent(scores: Scores) -> object:
    return pickle.loads(pickle.dumps(scores))  # noqa: S301 - as to a process of ours


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, sent])
def test_a_copy_has_no_file_behind_it(store: ScoreStore, again: Callable[[Scores], Scores]) -> None:
    copied = again(store.scores("bleu"))
    assert type(copied) is Scores
    assert_same(copied, Scores.joined(pieces("bleu")))


def test_ids_are_a_sequence(store: ScoreStore) -> None:
    ids = store.scores("recall@2").sample_ids
    assert len(ids) == 10
    assert (ids[0], ids[3], ids[-1]) == ("s0", "s3", "bare")
    assert ids[2:5] == ["s2", "s3", "s4"]
    assert "s5" in ids
    with pytest.raises(IndexError):
        ids[10]


def test_threads_may_look_at_the_same_file(tmp_path: Path) -> None:
    store = stored(tmp_path, 1)
    found: list[bool] = []

    def look(name: str) -> None:
        whole = Scores.joined(pieces(name))
        for _ in range(50):
            scores = store.scores(name)
            found.append(list(scores) == list(whole) and list(scores.sample_ids) == whole.sample_ids)

    threads = [Thread(target=look, args=(name,)) for name in NAMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 50 * len(NAMES)


def test_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    store = stored(tmp_path, 1)
    del store
    assert not list(tmp_path.iterdir())


def test_no_samples_are_no_scores(tmp_path: Path) -> None:
    scores: StoredScores = ScoreStore(tmp_path).scores("recall@2")
    assert len(scores) == len(list(scores.sample_ids)) == len(scores.values) == 0
    assert metric("recall@2").summarise(scores).details["num_total"] == 0


def test_a_disk_that_is_full_is_told() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    store = ScoreStore()
    with full.open("wb", buffering=0) as file:
        store._file = file  # type: ignore[assignment]
        with pytest.raises(StorageError, match="cannot be written: No space left"):
            store.add({"recall@2": pieces("recall@2")[0]})


def test_a_reason_that_many_share_is_there_once() -> None:
    notes = StoredNotes()
    for start in range(0, 3_000, 1_000):
        notes.add({place: Note("the sample has no gold") for place in range(1_000)}, start)
    assert len(notes) == 3_000
    assert len({id(note) for note in notes.values()}) == 1
    assert notes[2_999] == Note("the sample has no gold")
    assert notes.get(3_000) is None
