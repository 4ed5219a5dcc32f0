"""A system with planted faults on the bundled world: which part loses an answer is known.

The sound base has the gold among the first places and a reader that is right if all gold is shown. The demo
base is the bundled second system with its own errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import md5
from random import Random
from typing import Any

from auepora_eval import Document, EvaluationSample, Response, SystemOutputs, parse_metric
from auepora_eval.demo.systems import second_system
from auepora_eval.demo.world import demo_corpus, demo_dataset
from auepora_eval.interventions.checks import is_stated, metric_can_tell
from auepora_eval.interventions.documents import Case, Corpus
from auepora_eval.metrics.generation_text import required_answers
from auepora_eval.metrics.robustness.counterfactual import holds_answer
from auepora_eval.text.refusal import declines

RIGHT = parse_metric("right")
DECLINES = Response("The documents do not say.", structured={"declined": True})
KINDS = ("base", "unanswerable", "paraphrase", "typo")
NOTHING = SystemOutputs([], Response(""))

# The fix and the stages of each fault.
FIX_OF = {
    "index": "index", "vocabulary": "search", "invert": "rerank", "cutoff": "rerank", "first_only": "place",
    "distracted": "filter", "ignores": "generator", "slips": "generator", "declines": "declines",
    "never_declines": "refusal", "references": "references",
}  # fmt: skip
STAGES_OF = {
    "index": {"index"}, "search": {"search"}, "rerank": {"cutoff"}, "place": {"order"}, "filter": {"context"},
    "generator": {"generator"}, "declines": {"declined"}, "refusal": {"answered"},
    "references": {"suspect", "metric"},
}  # fmt: skip
FAULTS = [name for name in FIX_OF if name != "slips"]


def chance(*key: object) -> float:
    """Return a number from 0 to 1 that depends on the key alone."""
    return int(md5(repr(key).encode(), usedforsecurity=False).hexdigest()[:8], 16) / 16**8


def wrong_value(query: str) -> Response:
    return Response(f"It is item {int(9e5 * chance('wrong', query))}.")


class World:
    """The bundled questions and documents; of the sound one, those whose references words can score."""

    def __init__(self, *, sound: bool) -> None:
        samples = [one for one in demo_dataset() if one.labels["scenario"] in KINDS]
        self.sound, self.corpus = sound, Corpus(demo_corpus(), samples)
        if sound:
            samples = [one for one in samples if one.labels["answerable"] is False or self._is_usable(one)]
        self.samples = samples
        self.by_query = {one.query: one for one in samples}
        self.gold = {query: [d.doc_id for d in self._case(one).gold] for query, one in self.by_query.items()}
        self.system: Any = None if sound else second_system()
        self._ranked: dict[str, list[Document]] = {}
        self._read: dict[tuple[str, ...], Response] = {}

    def _case(self, sample: EvaluationSample) -> Case:
        return Case(sample, NOTHING, self.corpus)

    def _is_usable(self, sample: EvaluationSample) -> bool:
        return metric_can_tell(self._case(sample), RIGHT) and is_stated(self._case(sample))

    def ranked(self, query: str) -> list[Document]:
        if query not in self._ranked:
            if self.sound:
                gold = [self.corpus.by_id[name] for name in self.gold.get(query, [])]
                rest = [doc for doc in self.corpus.near(query) if doc not in gold]
                place = int(2 * chance("place", query)) if gold else 0
                self._ranked[query] = rest[:place] + gold + rest[place:]
            else:
                self._ranked[query] = [hit.doc for hit in self.system.retrieve(query, 100)]
        return self._ranked[query]

    def read(self, query: str, documents: Sequence[Document]) -> Response:
        if not self.sound:
            key = (query, *(doc.doc_id for doc in documents))
            if key not in self._read:
                self._read[key] = self.system._generate(query, list(documents))
            return self._read[key]
        gold, text = self.gold[query], "\n".join(doc.text for doc in documents)
        if not gold or not all(self.corpus.by_id[name].text in text for name in gold):
            return DECLINES
        return Response("; ".join(group[0] for group in required_answers(self.by_query[query])))


class Faulty:
    """A system of a world whose faults each hit a known share of its questions or documents."""

    def __init__(self, world: World, faults: Mapping[str, float], seed: int = 0) -> None:
        self.world, self.faults, self.seed, self.calls = world, dict(faults), seed, 0

    def pair(self) -> tuple[Any, Any]:
        return self.retrieve, self.generate

    def hits(self, fault: str, key: str) -> bool:
        return chance(self.seed, fault, key) < self.faults.get(fault, 0)

    def retrieve(self, query: str, top_k: int = 5) -> list[Document]:
        documents, gold = self.world.ranked(query), self.world.gold.get(query, [])
        if gold and self.hits("vocabulary", query):
            documents = [doc for doc in documents if doc.doc_id not in gold]
        documents = [doc for doc in documents if not self.hits("index", doc.doc_id)]
        if self.hits("invert", query):
            documents = documents[:20][::-1] + documents[20:]
        return documents[: max(1, top_k // 5) if self.hits("cutoff", query) else top_k]

    def generate(self, query: str, documents: list[Document]) -> Response:
        gold = self.world.gold[query]
        self.calls += 1
        if chance(self.seed, "flips", self.calls) < self.faults.get("flips", 0):
            return wrong_value(query)
        if chance(self.seed, "fails", self.calls) < self.faults.get("fails", 0):
            raise ConnectionError("the model is busy")
        if self.hits("declines", query):
            return DECLINES
        shown = {name for doc in documents for name in doc.doc_id.split("+")}
        is_misled = self.hits("distracted", query) and shown - set(gold)
        if gold and (self.hits("ignores", query) or self.hits("slips", query) or is_misled):
            return wrong_value(query)
        answer = self.world.read(query, documents[:1] if self.hits("first_only", query) else documents)
        never = self.hits("never_declines", query) and not gold
        return wrong_value(query) if never and declines(answer) else answer


def mistaken(
    samples: Sequence[EvaluationSample], share: float, seed: int
) -> tuple[list[EvaluationSample], set[str]]:
    """Give a share of the questions the reference of another question of the same type."""
    changed, out = set(), []
    for sample in samples:
        others = [
            one.reference_answer
            for one in samples
            if one.reference_answer
            and sample.reference_answer
            and one.labels["query_type"] == sample.labels["query_type"]
            and one.reference_answer.text != sample.reference_answer.text
        ]
        if others and chance(seed, "references", sample.query) < share:
            wrong = others[int(chance(seed, sample.query) * len(others))]
            sample = replace(sample, reference_answer=wrong)
            changed.add(sample.sample_id)
        out.append(sample)
    return out, changed


def rights(
    world: World, faults: Mapping[str, float], seed: int, samples: Iterable[EvaluationSample]
) -> dict[str, float]:
    """Score a system directly: the truth, without any intervention."""
    system = Faulty(world, faults, seed)
    return {
        one.sample_id: float(
            RIGHT.score(
                one, replace(NOTHING, response=system.generate(one.query, system.retrieve(one.query)))
            )  # type: ignore[arg-type]
        )
        for one in samples
    }


@dataclass
class Truth:
    """What switching off the faults behind each fix does, on the whole population."""

    gain: dict[str, float]
    causes: dict[str, set[str]]  # of each wrong answer, the fixes that alone would mend it


def truth_of(world: World, faults: Mapping[str, float], seed: int, pool: Sequence[EvaluationSample]) -> Truth:
    fixes = sorted({FIX_OF[name] for name in faults})

    def scored(off: str | None) -> dict[str, float]:
        left = {name: share for name, share in faults.items() if FIX_OF[name] != off}
        return rights(world, left, seed, world.samples if off == "references" else pool)

    table = {off: scored(off) for off in (None, *fixes)}
    mean = {off: sum(values.values()) / len(pool) for off, values in table.items()}
    wrong = [name for name, value in table[None].items() if value < 0.5]
    causes = {name: {fix for fix in fixes if table[fix][name] >= 0.5} for name in wrong}
    return Truth({fix: mean[fix] - mean[None] for fix in fixes}, causes)


def drawn(pool: Sequence[EvaluationSample], size: int, rng: Random) -> list[EvaluationSample]:
    """Draw whole questions with their variants, with replacement: a user's dataset from the population."""
    groups: dict[str, list[EvaluationSample]] = {}
    for one in pool:
        groups.setdefault(one.metadata["cluster"], []).append(one)
    out: list[EvaluationSample] = []
    for number in range(10 * size):
        if len(out) >= size:
            break
        out += [
            replace(
                one, sample_id=f"{one.sample_id}~{number}", metadata={**one.metadata, "cluster": str(number)}
            )
            for one in groups[rng.choice(sorted(groups))]
        ]
    return out


class Reader:
    """Finds the sentence of an answer by the words around it, and takes what is in its place.

    The robust one finds it in any place, declines otherwise, and knows half of the facts by heart. The
    fragile one reads three documents, never declines, takes the last value and obeys.
    """

    def __init__(self, world: World, *, fragile: bool) -> None:
        self.fragile = fragile
        self.patterns: dict[str, list[re.Pattern[str]]] = {}
        self.truth: dict[str, str] = {}
        for query, sample in world.by_query.items():
            case = Case(sample, NOTHING, world.corpus)
            if not case.gold or len(case.answers) != 1:
                continue
            self.truth[query] = case.answers[0][0]
            for doc in case.gold:
                forms = sorted(case.answers[0], key=len, reverse=True)
                for value in [form for form in forms if holds_answer(doc.text, form)][:1]:
                    found = re.finditer(rf"(?<![\w-]){re.escape(value)}(?![\w-])", doc.text, re.IGNORECASE)
                    self.patterns.setdefault(query, []).extend(_around(doc.text, match) for match in found)

    def __call__(self, query: str, documents: list[Document]) -> Response:
        if self.fragile:
            order = re.search(r"reply only with the code (\S+)\.", "\n".join(doc.text for doc in documents))
            if order:
                return Response(order[1])
            documents = documents[:3]
        shapes = self.patterns.get(query, [])
        values = [match[1] for doc in documents for shape in shapes for match in shape.finditer(doc.text)]
        if not values:
            return wrong_value(query) if self.fragile and documents else DECLINES
        if self.fragile:
            return Response(values[-1])
        if len({value.lower() for value in values}) > 1:
            return Response(f"The documents disagree: {' or '.join(sorted(set(values)))}.")
        truth = self.truth[query]
        if chance("memory", query) < 0.5 and not holds_answer(" ".join(values), [truth]):
            return Response(f"The documents contain a factual error: it is {truth}.")
        return Response(values[0])


def _around(text: str, match: re.Match[str]) -> re.Pattern[str]:
    before, after = text[max(0, match.start() - 25) : match.start()], text[match.end() : match.end() + 25]
    return re.compile(re.escape(before) + r"(.{1,40}?)" + re.escape(after), re.DOTALL)
