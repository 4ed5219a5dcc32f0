"""Labels of people in the database of a run: they stay with it, and are not lost without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.errors import StorageError
from auepora_eval.store.database import Database
from auepora_eval.store.labels import LabelTable
from auepora_eval.store.state import ReplacedRunWarning
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.store.verify import verify_run
from tests.builders import a_sample, an_output, scored_run


@pytest.fixture
def storage(tmp_path: Path) -> EvaluationResultsStorage:
    storage = EvaluationResultsStorage(tmp_path)
    save(storage)
    return storage


def save(storage: EvaluationResultsStorage, *, force: bool = False) -> None:
    run = scored_run(EvaluationPlan([]), [a_sample("s")], [an_output("a", "x")], evaluation_id="one")
    storage.save_run(run, force=force)


def test_a_run_holds_the_labels_of_several_people(storage: EvaluationResultsStorage) -> None:
    path = storage.state("one").database
    ann, ben = LabelTable(path, "ann"), LabelTable(path, "ben")
    ann.add("s", "label", {"label": "yes"})
    ben.add("s", "label", {"label": "no"})
    ann.add("s", "label", {"label": "unsure"}, instead_of=["label"])
    assert [one.answer["label"] for one in LabelTable(path, "ann").answers] == ["unsure"]
    assert [one.answer["label"] for one in LabelTable(path, "ben").answers] == ["no"]
    assert ben.undo() == "s"
    with Database.read(path) as database:
        rows = database.select("SELECT item, question, person, answer FROM label")
    assert rows == [("s", "label", "ann", '{"label": "unsure"}')]
    assert verify_run(storage, "one").ok


def test_a_run_with_labels_is_replaced_only_by_force_and_with_a_warning(
    storage: EvaluationResultsStorage,
) -> None:
    LabelTable(storage.state("one").database, "ann").add("s", "label", "yes")
    with pytest.raises(StorageError, match="exists already"):
        save(storage)
    with pytest.warns(ReplacedRunWarning, match="1 labels of people"):
        save(storage, force=True)
