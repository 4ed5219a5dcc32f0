"""An intervention is a run: the generator of a system, asked on documents that we choose."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..builder.corpus import read_corpus
from ..calls.executors import Executor
from ..calls.policy import CallPolicy
from ..calls.usage import Usage
from ..core.dataset import DatasetForms, InMemoryDataset, canonical_json
from ..core.matching import BY_ID, gold_found, match_of
from ..core.metrics_base import SampleMetric, parse_metric
from ..core.plan import EvaluationPlan, PartialCoverageWarning
from ..core.rag_interface import Answerer, answerer_of, name_of
from ..core.runner import AueporaEvaluator, OnOutput, in_this_folder
from ..core.scores import Batch, Scores, as_columns, has_field
from ..core.scoring import RunRecord, score_record
from ..core.systems.resources import CACHED, counted_usage, is_from_cache
from ..core.types import (
    ANSWER_MISSING,
    Document,
    EvaluationRun,
    EvaluationSample,
    Response,
    SystemOutputs,
    TargetCategory,
    as_document,
    gold_documents,
    names_documents,
    retrieved_ids,
)
from ..core.watches import UnmatchedIds
from ..errors import ArgumentError, AueporaError, warn_user
from ..io.loader import load_dataset
from ..metrics.parse import correctness_metric
from ..read.messages import HISTORY
from ..read.outputs import to_output
from ..store.cache import CallCache, call_key
from ..store.database import ANSWER, ANSWERED, CallRow, decoded_output
from ..store.identity import system_facts
from ..store.lock import locked
from ..store.state import RunState, read_results_head
from ..store.storage import EvaluationResultsStorage
from ..store.writer import call_reply
from .documents import DEPTH, FIXES, Case, Corpus
from .report import USE_DOCUMENTS, unreached_text
from .stress import STRESS, stress_dataset, stress_plan, stress_results

RETRIEVED, AGAIN, NONE = "retrieved", "again", "none"
REPEATED, DEEP, INDEXED = OF_RETRIEVER = "repeated", "deep", "indexed"
_SOME = 20  # questions that show whether retrieval repeats, and whether documents matter
_KNOWN_ITEM = 300  # characters of a document that a retriever is asked for by its own words
Documents = Mapping[str, Sequence[Document]]  # by sample


def _documents_alone(raw: Any) -> SystemOutputs:
    return SystemOutputs(to_output(raw).retrieved, Response(""), extra={ANSWER_MISSING: True})


def _answers(run: EvaluationRun) -> dict[str, str]:
    """Return the answers of a run by question, but for failed calls."""
    pairs = zip(run.samples, run.outputs, strict=True)
    return {one.sample_id: output.response.text for one, output in pairs if output.error is None}


def _with_shared_texts(output: SystemOutputs) -> SystemOutputs:
    """Keep each text in memory once: the lists of many questions have the same documents."""
    for hit in output.retrieved:
        hit.doc.text = sys.intern(hit.doc.text)
    return output


class Intervention:
    """The system of a run: a generator on the documents that each question is shown; without, a retriever.

    A question that is not among those shown is put to the whole system.
    """

    def __init__(self, name: str, answerer: Answerer, shown: Documents | None) -> None:
        self.name, self.is_async = name, answerer.is_async
        self._answerer, self._shown = answerer, shown

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        if self._shown is None:
            raw = self._answerer.retrieve(sample.query, top_k)
            return self._awaited(raw) if hasattr(raw, "__await__") else _documents_alone(raw)
        if sample.sample_id not in self._shown:
            return self._answerer.system.run(sample, top_k=top_k)
        return self._answerer.answer(sample, self._shown[sample.sample_id])

    async def _awaited(self, raw: Any) -> SystemOutputs:
        return _documents_alone(await raw)


@dataclass(repr=False)
class Probe:
    """A system's own run and its runs under interventions, by name, and what was learnt beside them."""

    runs: dict[str, EvaluationRun]
    cases: dict[str, Case]
    metric: SampleMetric
    again: frozenset[str] = frozenset()  # wrong, and right when asked again with the same documents
    calls: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    unreached: str = ""  # why interventions mean nothing, if they do
    is_black_box: bool = False  # the generator cannot be handed documents

    def __repr__(self) -> str:
        return f"Probe({len(self.run.samples)} samples; runs: {', '.join(self.runs)})"

    @cached_property
    def names_documents(self) -> bool:
        """Whether the run says what was retrieved: an answer without a list of documents does not."""
        return any(one.error is None and names_documents(one) for one in self.run.outputs)

    @property
    def run(self) -> EvaluationRun:
        """The system's own run."""
        return self.runs[RETRIEVED]

    @property
    def is_asked(self) -> bool:
        """Whether the generator was asked on other documents: not without gold, nor for a black box."""
        return bool(set(self.runs) & set(FIXES))

    def right(self, name: str) -> Scores:
        """Return which answers of a run are right."""
        return as_columns(self.runs[name].result(self.metric.name).scores)


@dataclass
class Prober:
    """Makes the runs of interventions. With a storage each call is stored before it counts, then each run."""

    base: EvaluationRun
    answerer: Answerer | None
    corpus: Corpus
    metric: SampleMetric
    storage: EvaluationResultsStorage | None = None
    executor: Executor | None = None
    policy: CallPolicy | None = None
    on_output: OnOutput | None = None
    on_start: Callable[[str, int], None] | None = None  # the name of an intervention, and its calls
    mark: str = ""  # behind the ids of the runs, such as "@60" for a part of the questions

    def __post_init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.evaluator: AueporaEvaluator | None = None
        self._usages: list[Usage] = []
        self._cache: CallCache | None = None
        watch, self._match = UnmatchedIds(), match_of(self.base)
        watch.look(Batch(self.base.samples, self.base.outputs))
        if self._match == BY_ID and watch.needed_match:  # or everything found would count as not retrieved
            self._match = watch.needed_match
        self._learn_texts(self.base.outputs)
        self._right = self.metric.score_batch(Batch(self.base.samples, self.base.outputs))
        failed = sum(output.error is not None for output in self.base.outputs)
        self._wrong = max(failed, int((self._right.values < 0.5).sum()))
        rows = zip(self.base.samples, self.base.outputs, np.isfinite(self._right.values), strict=True)
        cases = [
            # What has no score without any failure has none under an intervention: it is not asked.
            Case(one, output, self.corpus, match=self._match, is_scored=bool(has_score or output.error))
            for one, output, has_score in rows
        ]
        self._known = {self._key(RETRIEVED, one.sample, one.retrieved): one.output for one in reversed(cases)}
        self._shown = {case.sample.sample_id: case.retrieved for case in cases}
        # A sample that brings its own documents is answered from these: nothing is chosen for it.
        own = [case for case in cases if case.sample.metadata.get("closed_context") is not True]
        self.cases = {case.sample.sample_id: case for case in own}
        self.asked = [case.sample for case in own]

    def probe(self) -> Probe:
        """Ask for everything that a diagnosis needs."""
        result = self.metric.summarise(self._right)
        others = [one for one in self.base.results if one.name != self.metric.name]
        runs = {RETRIEVED: replace(self.base, results=[result, *others])}
        probe = Probe(runs, self.cases, self.metric, calls=self.calls, is_black_box=self.answerer is None)
        if self._match != match_of(self.base):
            probe.notes.append(
                f"No id of a retrieved document is that of gold, so they are matched by {self._match}. For "
                f"the metrics of the run: auepora run --match {self._match}."
            )
        if self.answerer is not None and self._wrong and any(case.has_gold for case in self.cases.values()):
            with ExitStack() as opened:
                if self.storage is not None:  # one file for all diagnoses; two at once would pay twice
                    path = self.storage.state(self.base.evaluation_id).calls
                    opened.enter_context(locked(path))
                    self._cache = opened.enter_context(CallCache(path))
                self._intervene(probe, self.answerer)
        return probe

    def _intervene(self, probe: Probe, answerer: Answerer) -> None:
        if probe.names_documents and not self._is_system_of_the_run(probe):
            return
        names = list(FIXES) if probe.names_documents else ["gold", "merged"]
        if probe.names_documents and answerer.has_depth:
            self._look_deeper(probe)
        elif probe.names_documents:
            names.remove("deeper")
            for case in self.cases.values():
                case.is_placed = False
            probe.notes.append(
                "The retriever takes no top_k: whether gold is below its cutoff or not found is not known. "
                "Give it a parameter top_k."
            )
        if not any(case.gold for case in self.cases.values()):
            return
        for name in names:
            probe.runs[name] = self._run(name, self.base.samples, self.shown(name))
            if name == "merged" and not self._reaches(probe):
                return
        self._ask_again(probe)

    def shown(self, name: str) -> Documents:
        """Return the documents of a fix; without gold, those that were retrieved."""
        return self._shown | {key: FIXES[name](case) for key, case in self.cases.items() if case.gold}

    def planned(self) -> dict[str, int]:
        """Return at most how many calls a diagnosis takes: of the generator and of the retriever."""
        if self.answerer is None or not self._wrong:
            return {"generate": 0, "retrieve": 0}
        asked = {
            self._key(name, one, shown[one.sample_id])
            for name in FIXES
            if name != "deeper"  # not known before the retriever was asked
            for shown in [self.shown(name)]
            for one in self.asked
        }
        none = min(_SOME, sum(bool(case.gold) for case in self.cases.values()))
        deep = len(self._with_gold) if self.answerer.has_depth else 0
        unseen = {doc.doc_id for case in self.cases.values() for doc in case.missing} if deep else ()
        calls = Counter(
            generate=len(asked - self._known.keys()) + self._wrong + deep + none,
            retrieve=deep + len(unseen) + min(_SOME, len(self._with_gold)) * self.answerer.retrieves,
        )
        if not self.answerer.retrieves_alone:  # the whole system is asked
            return {"generate": calls.total(), "retrieve": 0}
        return dict(calls)

    def _is_system_of_the_run(self, probe: Probe) -> bool:
        """Ask the retriever again for some questions: another system finds other documents."""
        assert self.answerer is not None  # noqa: S101 - the caller has checked it
        some = self._with_gold[:_SOME] if self.answerer.retrieves else []
        found = self._asked(REPEATED, some)
        pairs = [(self.cases[sample.sample_id].output, out) for sample, out in zip(some, found, strict=True)]
        ids = [
            [retrieved_ids(one.retrieved) for one in pair]
            for pair in pairs
            if all(one.error is None for one in pair)
        ]
        # It may have returned more or fewer than its top_k: then those that come first must be the same.
        differ = sum(set(was[: len(is_) or None]) != set(is_[: len(was) or None]) for was, is_ in ids)
        what = f"{differ} of {len(ids)} questions"
        before = self.base.configuration.get("system") or self.base.system_name
        now = self._facts.get("named") or name_of(self.answerer.system)
        if now != before and 2 * differ > len(ids):
            probe.unreached = (
                f"{now} is not the system of the run ({before}): it retrieves other documents for {what}. "
                "Run it, then diagnose that run."
            )
        elif differ:
            probe.notes.append(
                f"The retriever does not repeat itself, or has changed since: for {what} it finds other "
                "documents than the run has. Gains are those on the documents of the run."
            )
        return not probe.unreached

    def _look_deeper(self, probe: Probe) -> None:
        """Retrieve once more at a depth, and each document that is not found there by its own words."""
        deep = self._asked(DEEP, self._with_gold)
        self._learn_texts(deep)
        for sample, output in zip(self._with_gold, deep, strict=True):
            self.cases[sample.sample_id].deep = output
        unseen = {doc.doc_id: doc for case in self.cases.values() for doc in case.unseen or ()}
        asked = [
            EvaluationSample(f"d{n}", doc.text[:_KNOWN_ITEM], [doc]) for n, doc in enumerate(unseen.values())
        ]
        failed, lost = set(), set()
        for name, sample, output in zip(unseen, asked, self._asked(INDEXED, asked), strict=True):
            if output.error is not None:
                failed.add(name)
            elif gold_found(sample, output, self._match)[1]:
                lost.add(name)
        cases = [self.cases[one.sample_id] for one in self._with_gold]
        for case in cases:
            ids = {doc.doc_id for doc in case.unseen or ()}
            case.is_placed = case.unseen is not None and ids.isdisjoint(failed)
            case.is_indexed = not case.is_placed or ids.isdisjoint(lost)
        if unplaced := sum(not case.is_placed for case in cases):
            probe.notes.append(
                f"The retriever failed when it was asked for more, for {unplaced} questions: whether their "
                "gold is below its cutoff or not found is not known."
            )

    def _learn_texts(self, outputs: Iterable[SystemOutputs]) -> None:
        """Give gold ids without a text that of the same document where it was retrieved."""
        gold = {doc.doc_id for one in self.base.samples for doc in gold_documents(one)}
        for hit in (hit for output in outputs for hit in output.retrieved):
            if hit.doc.text and hit.doc.doc_id in gold:
                self.corpus.by_id.setdefault(hit.doc.doc_id, hit.doc)

    def _ask_again(self, probe: Probe) -> None:
        """Ask what was wrong a second time: without this, chance would look like a fix."""
        first = probe.right(RETRIEVED)
        wrong = {name for name, value in zip(first.sample_ids, first.values, strict=True) if value < 0.5}
        chosen = [one for one in self.asked if one.sample_id in wrong]
        if chosen:
            shown = self._shown if probe.names_documents else {}  # not known: the system is asked as it is
            probe.runs[AGAIN] = self._run(AGAIN, chosen, shown)
            second = probe.right(AGAIN)
            pairs = zip(second.sample_ids, second.values, strict=True)
            probe.again = frozenset(name for name, value in pairs if value >= 0.5)

    def _reaches(self, probe: Probe) -> bool:
        """Ask some questions without documents, all if no answer changes: do documents matter?"""
        asked = [one for one in self.asked if self.cases[one.sample_id].gold]
        with_documents = [_answers(probe.runs[name]) for name in ("gold", "merged")]
        for some in (asked[:_SOME], asked):
            without = _answers(self._run(NONE, some, {one.sample_id: [] for one in some}))
            texts = [
                (answers[key], without[key]) for answers in with_documents for key in answers.keys() & without
            ]
            if not texts or any(a != b for a, b in texts):
                return True
        same = {text for pair in texts for text in pair}
        what = f" Each of them is {same.pop()[:60]!r}." if len(same) == 1 else ""
        probe.unreached = f"D{unreached_text(len(without))[1:]}.{what} {USE_DOCUMENTS}"
        return False

    def _run(self, name: str, samples: Sequence[EvaluationSample], shown: Documents) -> EvaluationRun:
        """Return the run of the answers to samples from what they are shown; it is stored, too."""
        outputs, plan = self._asked(name, samples, shown), self._plan(samples)
        answers = [
            [one.sample_id, output.response.text, [hit.doc.text for hit in output.retrieved]]
            for one, output in zip(samples, outputs, strict=True)
        ]
        made_of = sha256(canonical_json([[metric.name for metric in plan.metrics], answers])).hexdigest()
        about = {"of": self.base.evaluation_id, "name": name, "sha256": made_of}
        run_id, system = (f"{one}~{name}" for one in (self.base.evaluation_id, self.base.system_name))
        dataset = InMemoryDataset(self.base.dataset_name, list(samples))
        record = RunRecord(dataset, plan, system, run_id + self.mark)
        for sample, output in zip(samples, outputs, strict=True):
            record.keep(sample, output)
        configuration, top_k = {"intervention": about}, self.base.top_k
        run = score_record(record, plan, system_name=system, top_k=top_k, seed=0, configuration=configuration)
        if self.storage is not None and not self._is_stored(self.storage.state(run.evaluation_id), about):
            self.storage.save_run(run)
        return run

    def _is_stored(self, state: RunState, about: Mapping[str, str]) -> bool:
        """Return whether this run is there, maybe judged or labelled by now; remove an earlier one."""
        if not state.has_results:
            return False
        stored = (read_results_head(state.path).get("configuration") or {}).get("intervention")
        if isinstance(stored, Mapping) and stored.get("of") == about["of"] and stored != about:
            with locked(state.database):
                state.remove()
        return bool(stored == about)

    def _asked(
        self, name: str, samples: Sequence[EvaluationSample], shown: Documents | None = None
    ) -> list[SystemOutputs]:
        """Return what the generator answers to samples from what they are shown; without, the retriever."""
        assert self.answerer is not None  # noqa: S101 - the caller has checked it
        policy = self.policy
        if shown is None:  # a retriever that cannot be asked so ends no diagnosis
            policy = replace(policy or CallPolicy(), keep_going=True)
        self.evaluator = AueporaEvaluator(
            Intervention(f"{self.base.system_name}~{name}", self.answerer, shown),
            EvaluationPlan(),
            top_k=DEPTH if name in (DEEP, INDEXED) else self.base.top_k,
            executor=self.executor,
            policy=policy,
            on_output=self.on_output,
        )
        keys = {one.sample_id: self._key(name, one, (shown or {}).get(one.sample_id, ())) for one in samples}
        outputs = {key: output for key in keys if (output := self._known_output(keys[key])) is not None}
        missing = [one for one in samples if one.sample_id not in outputs]
        if missing and self.on_start is not None:
            self.on_start(name, len(missing))

        def store(sample: EvaluationSample, output: SystemOutputs) -> None:
            if self._cache is not None and output.error is None:
                reply = call_reply(sample.sample_id, output)
                self._cache.add(CallRow(keys[sample.sample_id], ANSWER, None, ANSWERED, reply))

        new = [output for output in outputs.values() if not is_from_cache(output)]  # of earlier diagnoses
        self._usages += map(counted_usage, new)
        has_answers = any(output.error is None for output in outputs.values())
        self.evaluator.start(self._usages, has_answers=has_answers)  # the budget is that of all interventions
        for sample, output in in_this_folder(self.evaluator.outputs(missing, store)):
            outputs[sample.sample_id] = _with_shared_texts(output)
            self._usages.append(counted_usage(output))
        count = len(new) + len(missing)
        self.calls["retrieve" if shown is None and self.answerer.retrieves_alone else "generate"] += count
        # A call that failed is not made again for another intervention with the same documents.
        self._known = {keys[name]: output for name, output in outputs.items()} | self._known
        return [outputs[one.sample_id] for one in samples]

    def _known_output(self, key: bytes) -> SystemOutputs | None:
        """Return an answer that need not be asked for, marked if it is counted already; None if unknown."""
        if key in self._known:
            output = self._known[key]
            return replace(output, extra={**output.extra, CACHED: True})
        reply = None if self._cache is None else self._cache.reply(key)
        if reply is None:
            return None
        return _with_shared_texts(decoded_output(reply, "calls"))

    def _key(self, name: str, sample: EvaluationSample, documents: Iterable[Document]) -> bytes:
        """Return the hash of what is asked, and of who is asked; equal documents need one answer."""
        kind = name if name in (AGAIN, NONE, *OF_RETRIEVER) else ANSWER
        asked = [sample.query, sample.metadata.get(HISTORY), [doc.text for doc in documents]]
        return call_key(kind, self._who, canonical_json(asked))

    def _plan(self, samples: Sequence[EvaluationSample]) -> EvaluationPlan:
        """Return the metrics of the system's own run that need no judge and that the samples support."""
        plan: list[SampleMetric] = [self.metric]
        for result in self.base.results:
            try:
                metric = parse_metric(result.name)
            except AueporaError:  # of a file of the user's that is not imported here
                continue
            is_of_answers = metric.target is not TargetCategory.LATENCY and not metric.needs_judge
            fields = metric.required_fields()
            is_supported = all(any(has_field(one, field) for one in samples) for field in fields)
            if is_of_answers and is_supported and metric.name != self.metric.name:
                plan.append(metric.matched_by(match_of(self.base)))
        targets = [one.target for one in plan]  # tables show the metrics of a target together
        plan.sort(key=lambda one: targets.index(one.target))
        return EvaluationPlan(plan)

    @property
    def _with_gold(self) -> list[EvaluationSample]:
        """The samples for which a retriever is asked."""
        return [one for one in self.asked if self.cases[one.sample_id].has_gold]

    @cached_property
    def _facts(self) -> dict[str, object]:
        """What identifies the system: its file, or the server, model and prompt that it asks."""
        return system_facts(self.answerer.system) if self.answerer is not None else {}

    @cached_property
    def _who(self) -> bytes:
        return canonical_json(self._facts)


def probe(
    system: Any,
    dataset: DatasetForms | EvaluationRun | str | Path,
    corpus: DatasetForms | Iterable[Document] | str | Path | None = None,
    top_k: int = 5,
    names: str | None = None,
    *,
    metric: str | None = None,
    executor: Executor | None = None,
    policy: CallPolicy | None = None,
    seed: int = 0,
) -> Probe:
    """Run a system as it is and on the documents of each intervention, and return the runs by name.

    `system` is anything that `answerer_of` accepts, `dataset` also a run of it that was made before, `corpus`
    the documents that it searches: a list, or a file. `metric` decides which answers are right (at least half
    of it is); by default it fits the references. `diagnose` says what the runs mean. With `names="stress"`
    there is one run, of questions with documents that should make the generator fail, for `robustness`.
    """
    if names not in (None, STRESS):
        raise ArgumentError(f"names must be None or {STRESS!r}, not {names!r:.60}")
    documents = documents_of(corpus, dataset)
    samples = dataset.samples if isinstance(dataset, EvaluationRun) else list(load_dataset(dataset))
    is_right = right_metric(samples, metric)
    how: dict[str, Any] = {"executor": executor, "policy": policy, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartialCoverageWarning)  # each stress has metrics of its own
        if names == STRESS:
            stressed, about = stress_dataset(samples, Corpus(documents, samples), "samples", seed=seed)
            how["configuration"] = {STRESS: {**about, "metric": is_right.name}}
            run = AueporaEvaluator(system, stress_plan(is_right), top_k=top_k, **how).run(stressed)
            run = replace(run, results=stress_results(run))
            return Probe({RETRIEVED: run, STRESS: run}, {}, is_right)
        if isinstance(dataset, EvaluationRun):
            base = dataset
        else:
            base = AueporaEvaluator(system, EvaluationPlan([is_right]), top_k=top_k, **how).run(samples)
    answerer = None if system is None else answerer_of(system)
    corpus_of_run = Corpus(documents, base.samples)
    return Prober(base, answerer, corpus_of_run, is_right, executor=executor, policy=policy).probe()


def right_metric(samples: Sequence[EvaluationSample], base: str | None) -> SampleMetric:
    """Return the metric that decides which answers are right, by the name of another one or as it fits."""
    name = base or correctness_metric(samples)
    return parse_metric(name if name.startswith("right") else f"right[{name}]")


def documents_of(corpus: Any, dataset: object = None) -> list[Document]:
    """Return the documents of a list, a .jsonl file, a folder, or "demo", also for the dataset "demo"."""
    name = dataset if corpus is None else corpus
    if isinstance(name, str) and name == "demo":
        from ..demo.world import demo_corpus

        return list(demo_corpus())
    if corpus is None:
        return []
    if not isinstance(corpus, str | Path):
        return [as_document(one, "corpus") for one in corpus]
    found = read_corpus(corpus)
    if found.left_out:
        first = found.left_out[0]
        warn_user(f"{len(found.left_out)} documents are left out, such as {first.name}: {first.reason}.")
    return [Document(one.doc_id, one.text, dict(one.metadata)) for one in found.documents]
