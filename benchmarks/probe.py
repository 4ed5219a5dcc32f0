"""Check diagnoses and robustness where the truth is known: systems with planted faults, on fresh seeds.

    PYTHONPATH=. python benchmarks/probe.py              # some minutes
    PYTHONPATH=. python benchmarks/probe.py --quick      # a tenth of the datasets
    PYTHONPATH=. python benchmarks/probe.py --rgb DIR    # also RGB's protocol, on its file en_fact.json
    PYTHONPATH=. python benchmarks/probe.py --model      # only: a small local model behind an endpoint

Faults are switched off one by one to know what their fix brings; 100 questions are drawn with replacement.
The reader of the sound base is simulated: these figures say that the rules find what is planted, not that
every model has its faults one after the other.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import auepora_eval as ae
from auepora_eval import Document, EvaluationSample
from auepora_eval.demo.systems import ExtractiveAnswerer, bm25, hybrid
from auepora_eval.interventions.checks import suspects
from tests.interventions.planted import (
    FAULTS,
    RIGHT,
    STAGES_OF,
    Faulty,
    Reader,
    World,
    drawn,
    mistaken,
    truth_of,
)

SIZE = 100
RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8)  # of negative documents, as RGB has them


def show(what: str, found: str, bar: str, *, holds: bool) -> None:
    print(f"{what:62} {found:>16}  {bar:>10}  {'yes' if holds else 'NO'}")


def share(values: list[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def diagnosed(system: Faulty, asked: Any) -> ae.Diagnosis:
    return ae.diagnose(ae.probe(system.pair(), asked, system.world.corpus.documents, metric="right"))


def mixtures(world: World, base: dict[str, float], count: int, times: int, seed: int) -> None:
    """Draw mixtures of two to four faults; compare stages and gains with the truth."""
    rng, named, inside, below = Random(seed), [], [], []
    for mixture in range(1000 * seed, 1000 * seed + count):
        chosen = rng.sample(FAULTS, rng.choice((2, 3, 4)))
        faults = {**base, **{name: round(rng.uniform(0.08, 0.35), 2) for name in chosen}}
        pool, _ = mistaken(world.samples, faults.get("references", 0), mixture)
        truth = truth_of(world, faults, mixture, pool)
        for draw in range(times):
            samples = drawn(pool, SIZE, Random(f"{mixture} {draw}"))
            found = ae.diagnose(
                ae.probe(
                    Faulty(world, faults, mixture).pair(), samples, world.corpus.documents, metric="right"
                )
            )
            for stage in found.stages:
                for name in stage.sample_ids:
                    causes = truth.causes[name.split("~")[0]]
                    if len(causes) == 1:  # one fix would do
                        named.append(stage.name in STAGES_OF[next(iter(causes))])
            for fix in found.fixes:
                if fix.name in truth.gain and fix.interval is not None:
                    true = truth.gain[fix.name]
                    inside.append(fix.interval[0] <= true <= fix.interval[1])
                    below.append(true <= fix.interval[1])
    kind = "sound" if world.sound else "demo"
    if world.sound:
        show(
            f"{kind} base: cause of {len(named):,} answers that one fix corrects",
            f"{share(named):.1%}",
            ">= 95%",
            holds=share(named) >= 0.95,
        )
        show(
            f"{kind} base: gain inside its interval ({len(inside)})",
            f"{share(inside):.1%}",
            ">= 93%",
            holds=share(inside) >= 0.93,
        )
    show(
        f"{kind} base: gain below the upper end of its interval ({len(below)})",
        f"{share(below):.1%}",
        ">= 95%",
        holds=share(below) >= 0.95,
    )


def sound_system(world: World, count: int) -> None:
    firsts = []
    for seed in range(count):
        samples = drawn(world.samples, SIZE, Random(seed))
        system = Faulty(world, {"slips": 0.03}, 15000 + seed)
        found = diagnosed(system, samples)
        firsts.append(found.first is None)
    show(
        f"sound system, {count} datasets: nothing stands out",
        f"{share(firsts):.1%}",
        ">= 95%",
        holds=share(firsts) >= 0.95,
    )


def chance(world: World, count: int) -> None:
    lost: Counter[str] = Counter()
    for seed in range(count):
        system = Faulty(world, {"flips": 0.1}, 17000 + seed)
        found = diagnosed(system, world.samples)
        lost.update({one.name: one.count for one in found.stages})
    blamed = (lost["order"] + lost["context"]) / max(1, lost.total())
    show(
        f"10% of the calls wrong at random ({lost.total()}): blamed on documents",
        f"{blamed:.1%}",
        "<= 10%",
        holds=blamed <= 0.1,
    )


def failing(world: World, count: int) -> None:
    """Let interventions fail: a cause that the same system does not have without failures is false."""
    false, lost = 0, Counter[str]()
    for seed in range(count):
        samples = drawn(world.samples, SIZE, Random(seed))
        system = Faulty(world, {"slips": 0.03}, 18000 + seed)
        run = ae.evaluate(system.pair(), samples, metrics="right")
        system.faults["fails"] = 0.15
        found = diagnosed(system, run)
        false += found.first is not None
        lost.update({one.name: one.count for one in found.stages})
    print(f"  stages with 15% of the interventions failing: {dict(lost.most_common())}")
    what = f"15% of the interventions fail, {count} datasets: a cause is named"
    show(what, str(false), "0", holds=not false)


def readers(world: World) -> None:
    """Compare a robust with a fragile reader on each stress, on the same sixty questions."""
    pool = [one for one in world.samples if one.labels["scenario"] == "base"]
    sixty = Random(3).sample([one for one in pool if one.labels["answerable"] is not False], 60)
    found = []
    for fragile in (False, True):
        system = (Faulty(world, {}).retrieve, Reader(world, fragile=fragile))
        found.append(
            ae.robustness(ae.probe(system, sixty, world.corpus.documents, names="stress", metric="right"))
        )
    print(f"\n{'60 questions':30}{'robust':>16}{'fragile':>22}  apart")
    apart = 0
    differ = {
        *("noise_near@0.5", "noise_near@0.8", "noise_random@0.8", "gold_middle", "gold_last", "no_gold"),
        *("false_fact", "conflict", "injected"),
    }
    for one, other in zip(*(each.rows for each in found), strict=True):
        low, high = sorted((one, other), key=lambda row: row.value)
        assert low.interval is not None
        assert high.interval is not None
        is_apart = low.interval[1] < high.interval[0]
        apart += is_apart and one.name in differ
        cells = (f"{row.value:.2f} [{row.interval[0]:.2f}, {row.interval[1]:.2f}]" for row in (one, other))
        mark = "yes" if is_apart else "should" if one.name in differ else "-"
        print(f"{one.text:30}{next(cells):>16}{next(cells):>22}  {mark}")
    show(
        "robust and fragile reader, 60 questions: intervals apart",
        f"{apart} of {len(differ)}",
        ">= 8 of 9",
        holds=apart >= 8,
    )


def wrong_references(count: int) -> None:
    """Plant wrong references in the demo's questions, and look how many of the first suspects they are."""
    world, hits, total, chances = World(sound=False), 0, 0, []
    for seed in range(count):
        pool, changed = mistaken(world.samples, 0.05, 19000 + seed)
        runs = [ae.evaluate(system(), pool, metrics="right") for system in (bm25, hybrid)]
        first = [one.sample_id for one in suspects(pool, runs, RIGHT)][: len(changed)]
        hits, total = hits + len(changed & set(first)), total + len(changed)
        answerable = sum(one.labels["answerable"] is not False for one in pool)
        chances.append(len(changed) / answerable)
    precision, usual = hits / max(1, total), float(np.mean(chances))
    show(
        f"5% wrong references ({total} in {count} datasets): precision at that many",
        f"{precision:.0%} ({precision / usual:.1f} x)",
        ">= 5 x",
        holds=precision >= 5 * usual,
    )


def cost() -> None:
    """Measure what the diagnosis of the demo takes beside its calls."""
    system = hybrid()
    spent = 0.0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            nonlocal spent
            start = time.process_time()
            try:
                return function(*args)
            finally:
                spent += time.process_time() - start

        return call

    samples = World(sound=False).samples
    generate, search = timed(system._generate), timed(system.retrieve)
    pair = (lambda query, top_k=5: search(query, top_k), generate)
    documents = World(sound=False).corpus.documents
    run = ae.evaluate(pair, samples, metrics="right")
    spent, start, clock = 0.0, time.process_time(), time.perf_counter()
    found = ae.diagnose(ae.probe(pair, run, documents, metric="right"))
    own = time.process_time() - start - spent
    calls = sum(found.calls.values())
    show(
        f"CPU beside the calls, demo ({calls} calls)",
        f"{1000 * own / calls:.2f} ms/call",
        "<= 1 ms",
        holds=own / calls <= 1e-3,
    )
    seconds = time.perf_counter() - clock
    show("diagnosis of the demo, by the clock", f"{seconds:.1f} s", "<= 20 s", holds=seconds <= 20)


def rgb(folder: Path) -> None:
    """Follow RGB's protocol on its counterfactual questions, with the bundled reader in place of a model."""
    lines = (folder / "en_fact.json").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    texts = [text for record in records for text in record["positive"]]
    reader = ExtractiveAnswerer([Document(str(n), text) for n, text in enumerate(texts)])
    samples = [one for number, record in enumerate(records) for one in _of_rgb(number, record)]
    noise = [f"noise_accuracy@{ratio:g}[contains_answer[rgb]]" for ratio in RATIOS]
    metrics = [*noise, "rejection_rate", "counterfactual_accuracy", "fake_adoption_rate"]
    metrics += ["error_detection_rate", "error_correction_rate"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = ae.evaluate((lambda query: [], reader.generate), samples, metrics=metrics)
    print(f"\nRGB's protocol on en_fact.json, {len(records)} questions, bundled extractive reader (no model)")
    for result in run:
        low, high = result.interval or (float("nan"), float("nan"))
        print(
            f"  {result.name:44} {result.value:6.3f} [{low:.3f}, {high:.3f}]  {result.coverage.scored} scored"
        )


def _of_rgb(number: int, record: dict[str, Any]) -> list[EvaluationSample]:
    """Return the samples of a question: five documents of which a share is negative, none, or edited."""
    given = record["answer"]
    answers = [str(text) for text in (given if isinstance(given, list) else [given])]
    fakes = record.get("fakeanswer")
    fakes = fakes if isinstance(fakes, list) else [fakes]
    reference = {"text": answers[0], "metadata": {"alternatives": answers[1:]}}

    def documents(*kinds: str) -> list[Document]:
        found: list[Document] = []
        for kind in kinds:
            texts: list[str] = record.get(kind) or []
            found += [Document(f"{number}-{kind}-{place}", text) for place, text in enumerate(texts)]
        return found

    def sample(name: str, shown: list[Document], **labels: object) -> EvaluationSample:
        own = {"cluster": str(number), "closed_context": True}
        answer = None if labels.get("answerable") is False else reference
        return EvaluationSample(
            f"{number}~{name}", str(record["query"]), None, shown, answer, dict(labels), own
        )

    good, bad = documents("positive"), documents("negative")
    made = []
    for ratio in RATIOS:
        count = round(5 * ratio)
        if len(good) >= 5 - count and len(bad) >= count:
            shown = [*good[: 5 - count], *bad[:count]]
            made.append(sample(f"noise{ratio}", shown, scenario="noise", noise_ratio=ratio))
    if bad:
        made.append(sample("rejection", bad[:5], scenario="unanswerable", answerable=False))
    edited = documents("positive_wrong")
    if edited and fakes[0]:
        labels = {"scenario": "counterfactual", "true_answer": answers, "fake_answer": fakes}
        made.append(sample("edited", edited[:5], **labels))
    return made


def small_model() -> None:
    """Diagnose the demo's retriever with a small model behind an endpoint; quality is not the point."""
    from auepora_eval.core.systems.named import load_system
    from benchmarks.local_model import local_model

    samples = [one for one in World(sound=True).samples if one.labels["answerable"] is not False][:4]
    search = bm25()
    with local_model() as name:
        model: Any = load_system(f"openai:{name}", {"plain_http": True, "request": {"max_tokens": 40}})

        def generate(query: str, documents: list[Document]) -> Any:
            return model.run(EvaluationSample("q", query), documents=documents).response

        pair = (lambda query, top_k=2: search.retrieve(query, top_k), generate)
        print(ae.diagnose(ae.probe(pair, samples, World(sound=True).corpus.documents, top_k=2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rgb", type=Path)
    parser.add_argument("--model", action="store_true")
    args = parser.parse_args()
    if args.model:
        small_model()
        return
    part = 10 if args.quick else 1
    clock = time.perf_counter()
    sound, demo = World(sound=True), World(sound=False)
    warnings.simplefilter("ignore")
    print(f"{'what':62} {'measured':>16}  {'bar':>10}  holds")
    mixtures(sound, {"slips": 0.03}, 30 // part, 2, seed=91)
    mixtures(demo, {}, 20 // part, 1, seed=92)
    sound_system(sound, 60 // part)
    chance(sound, 20 // part)
    failing(sound, 20 // part)
    wrong_references(10 // part)
    cost()
    readers(sound)
    if args.rgb:
        rgb(args.rgb)
    print(f"\n{time.perf_counter() - clock:.0f} s")


if __name__ == "__main__":
    main()
