"""A system that is broken on purpose in one place: the diagnosis names that place."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

import auepora_eval as ae
from auepora_eval.interventions.report import Diagnosis

from .planted import FIX_OF, STAGES_OF, Faulty, World, mistaken, rights

SHARES = {"invert": 1.0, "cutoff": 1.0, "first_only": 1.0, "never_declines": 1.0}


@cache
def sound() -> World:
    return World(sound=True)


def diagnosed(faults: dict[str, float], seed: int = 1) -> Diagnosis:
    world = sound()
    system = Faulty(world, faults, seed)
    return ae.diagnose(ae.probe(system.pair(), world.samples, world.corpus.documents))


def test_a_sound_system_has_no_first_fix() -> None:
    found = diagnosed({"slips": 0.03})
    assert found.first is None
    assert "Nothing stands out" in str(found)


@pytest.mark.parametrize("fault", [name for name in FIX_OF if name not in ("slips", "references")])
def test_one_fault_is_named_first_and_its_gain_is_bounded(fault: str) -> None:
    world, share = sound(), SHARES.get(fault, 0.2)
    found = diagnosed({"slips": 0.03, fault: share})
    fix = next(one for one in found.fixes if one.name == FIX_OF[fault])
    assert FIX_OF[fault] in (found.first, *found.rivals)
    assert {found.stages[0].name} <= STAGES_OF[FIX_OF[fault]]
    better = rights(world, {"slips": 0.03}, 1, world.samples)
    true = sum(better.values()) / len(better) - found.value
    assert fix.interval is not None
    assert true <= fix.interval[1]
    assert fix.p_holm < 0.05
    assert max(map(len, str(found).splitlines())) <= 80


def test_wrong_references_are_marked_and_no_fault_of_the_system() -> None:
    world = sound()
    pool, changed = mistaken(world.samples, 0.1, 1)
    system = Faulty(world, {"slips": 0.03}, 1)
    found = ae.diagnose(ae.probe(system.pair(), pool, world.corpus.documents))
    doubted = {name for one in found.stages if one.name in ("suspect", "metric") for name in one.sample_ids}
    assert len(changed & doubted) >= len(changed) / 2
    assert found.first is None
    assert "Look at" in str(found)


def test_chance_is_not_blamed_on_documents() -> None:
    lost: Counter[str] = Counter()
    for seed in range(5):
        found = diagnosed({"flips": 0.1}, seed)
        lost.update({one.name: one.count for one in found.stages})
        assert found.first is None
    assert lost["unstable"] >= 0.75 * lost.total()
    assert lost["order"] + lost["context"] <= 0.1 * lost.total()


def test_a_failed_intervention_is_not_a_cause() -> None:
    world = sound()
    system = Faulty(world, {"slips": 0.03})
    with pytest.warns(UserWarning, match="calls failed"):
        run = ae.evaluate(Faulty(world, {"fails": 0.1}).pair(), world.samples, metrics="right")
    system.faults["fails"] = 0.15
    found = ae.diagnose(ae.probe(system.pair(), run, world.corpus.documents))
    lost = {one.name: one.count for one in found.stages}
    assert lost["failed"] == len(run.failures())
    assert found.first is None
    assert any("failed: they are not measured" in note for note in found.notes)
