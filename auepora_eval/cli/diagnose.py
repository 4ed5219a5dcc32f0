"""Find out what to fix first: where wrong answers were lost.

The generator of the run's system is asked again on other documents: the gold alone,
the gold first, more of them. That shows what each fix would bring at most. Each of
these is a stored run (RUN~gold) that show, compare and view open. The same command
again makes no call twice. Without a system whose generator can be handed documents,
the outputs alone are looked at.

  auepora demo
  auepora diagnose demo-bm25
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from ..calls.streams import stdout_for_results
from ..core.dataset import InMemoryDataset
from ..core.rag_interface import answerer_of
from ..core.settings import OF_ENDPOINT, RunSettings
from ..core.types import EvaluationRun
from ..errors import DataError, InterruptedRunError, PlanError, RunStoppedError
from ..interventions.diagnosis import diagnose
from ..interventions.documents import DEPTH, Corpus
from ..interventions.probe import RETRIEVED, Probe, Prober, documents_of, right_metric
from ..interventions.report import STAGES, Diagnosis
from ..io.config.plan import planned
from ..io.jsonl import save_jsonl_dataset
from ..store.identity import system_facts
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import notes_printed_once, progress
from .flags import add_flag, add_json, add_out, add_settings, call_executor, count, named_system
from .interrupts import StopNow, finishing_first

if TYPE_CHECKING:
    from ..core.rag_interface import Answerer
    from ..core.types import SystemOutputs

# The answers that --stage prints.
_SHOWN = {
    RETRIEVED: "as it is",
    "deeper": "deeper",
    "ordered": "reordered",
    "cleaned": "found gold",
    "gold_first": "gold first",
    "gold": "gold alone",
}
DIAGNOSIS = "diagnosis"  # a fact of the stored run: Diagnosis.to_dict()


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="id or path of a stored run")
    add_settings(parser, "system")
    add_intervention_flags(parser)
    add_flag(parser, "--stage", "show the answers that a stage lost", "NAME", choices=tuple(STAGES))
    add_flag(parser, "--save", "write the wrong answers' questions: a dataset for regressions", "FILE")
    add_flag(parser, "--force", "overwrite the FILE of --save if it exists")
    add_settings(parser, "config", "concurrency", "budget_calls")
    add_out(parser)
    add_json(parser)


def add_intervention_flags(parser: ArgumentParser) -> None:
    """Add the flags that diagnose and stress share."""
    add_flag(parser, "--corpus", "documents of the system: .jsonl, a folder of texts, or demo", "FILE")
    add_flag(parser, "--metric", "what decides that an answer is right (default: by the references)", "NAME")
    add_flag(parser, "--sample", "use only N questions, chosen at random", "N", type=count)
    add_flag(parser, "--estimate", "print how many calls it takes at most, and their cost; make none")


def run(args: Namespace) -> int:
    storage = EvaluationResultsStorage(args.out)
    base = _chosen(storage.load_run(args.run_id), args.sample)
    settings = _settings(args, base)
    answerer = _answerer(settings, args)
    notes = [] if answerer is None else _changed_since(storage, args.run_id, answerer)
    corpus = Corpus(documents_of(args.corpus, base.configuration.get("dataset")), base.samples)
    prober = Prober(base, answerer, corpus, right_metric(base.samples, args.metric), storage=storage)
    prober.mark = f"@{args.sample}" if args.sample else ""
    if answerer is not None:
        prober.executor, prober.policy = call_executor(settings), settings.call_policy()
    if args.estimate:
        return _estimate_of(prober, settings)
    probe = _probed(prober)
    found = diagnose(probe)
    found.notes += notes
    found.corpus = args.corpus
    if args.sample is None:
        _save(storage, args.run_id, found)
    _say(found, probe, args)
    return 0


def _save(storage: EvaluationResultsStorage, run_id: str, found: Diagnosis) -> None:
    """Store a diagnosis with its run, unless one is there that knew more."""
    stored = storage.load_fact(run_id, DIAGNOSIS)
    if stored is not None and Diagnosis.of(stored).reach > found.reach:
        echo.note("note: not stored: the run has a diagnosis that says more (--corpus, --system)")
        return
    storage.save_fact(run_id, **{DIAGNOSIS: found.to_dict()})


def _chosen(base: EvaluationRun, size: int | None) -> EvaluationRun:
    """Return the run, or a random part of it."""
    if not base.samples:
        raise DataError(base.evaluation_id, "its samples and outputs are not stored.", fix="Run it again.")
    own = [n for n, one in enumerate(base.samples) if one.metadata.get("closed_context") is not True]
    if not own:
        raise DataError(base.evaluation_id, "every sample brings its own documents.", fix="Use stress.")
    if len(own) < len(base.samples):
        count = len(base.samples) - len(own)
        echo.note(f"note: {count} samples bring their own documents and are left out")
    if size is None or size >= len(own):
        return base
    chosen = sorted(Random(0).sample(own, size))  # noqa: S311 - no secret
    samples, outputs = [base.samples[n] for n in chosen], [base.outputs[n] for n in chosen]
    return replace(base, samples=samples, outputs=outputs, failed={}, sample_count=size)


def _settings(args: Namespace, base: EvaluationRun) -> RunSettings:
    """Return how calls are made: as the run made them, unless the plan or a flag says something else."""
    variant = base.configuration.get("experiment") or {}
    made = {**base.configuration, **variant.get("settings", {}), "arguments": variant.get("arguments")}
    kept = (
        *("system", "arguments", "concurrency", "timeout", "retries", "rpm", "tpm"),
        *("price_input", "price_output", *OF_ENDPOINT),
    )
    stored = {name: made[name] for name in kept if made.get(name) is not None}
    return RunSettings.merged(stored, planned(args.config), vars(args))


def _answerer(settings: RunSettings, args: Namespace) -> Answerer | None:
    """Return the system by its halves; None for a black box, or if the run does not name its system."""
    if not settings.system:
        return None
    try:
        return answerer_of(named_system(settings))
    except DataError as error:
        if args.system:
            raise
        echo.note(f"note: the system of the run cannot be loaded ({error}) Name it: --system NAME")
        return None


def _changed_since(storage: EvaluationResultsStorage, run_id: str, answerer: Answerer) -> list[str]:
    header = storage.state(storage.find(run_id).name.removesuffix(".results.json")).header or {}
    before, now = header.get("program_sha256"), system_facts(answerer.system).get("program_sha256")
    if not before or not now or before == now:
        return []
    return ["The file of the system was changed after the run: run it again, or gains mean nothing."]


def _probed(prober: Prober) -> Probe:
    """Make the runs, with a progress bar each."""

    def stop() -> None:
        if prober.evaluator is not None:
            prober.evaluator.stop()

    with ExitStack() as bars, keeping_answers(stop):

        def start(name: str, calls: int) -> None:
            bars.close()
            prober.on_output = bars.enter_context(progress(calls, name))

        prober.on_start = start
        return prober.probe()


@contextmanager
def keeping_answers(stop: Callable[[], None]) -> Iterator[None]:
    """Finish the calls under way if a signal comes, and say that what was answered is kept."""
    with finishing_first(stop) as signalled, stdout_for_results(), notes_printed_once(as_json=False):
        try:
            yield
        except (RunStoppedError, StopNow) as error:
            signalled.is_heeded = True
            echo.note("kept: every answer so far. The same command again asks for the rest.")
            if isinstance(error, InterruptedRunError):
                raise StopNow(signalled.number) from error
            raise


def _estimate_of(prober: Prober, settings: RunSettings) -> int:
    """Print how many calls the diagnosis takes at most, and what they cost."""
    calls = prober.planned()
    per = calls["generate"] / max(1, len(prober.cases))
    words = f"{calls['generate']:,} calls of the generator ({per:.1f} per question)"
    if calls["retrieve"]:
        words += f" and {calls['retrieve']:,} of the retriever"
    elif calls["generate"] and prober.answerer is not None and prober.answerer.has_depth:
        words += f", some of them for {DEPTH} documents, which take more than those of the run"
    note = f"At most {words}. Answers that are stored are not asked for again."
    return say_estimate(calls, len(prober.cases), note, prober.base, settings)


def say_estimate(
    calls: Mapping[str, int], questions: int, note: str, base: EvaluationRun | None, settings: RunSettings
) -> int:
    """Print how many calls are made, and what those of the generator cost by what those of a run took."""
    from ..decide.pilot import Pilot, estimate_table, estimated, use_of

    policy = settings.call_policy()
    pilot = Pilot(calls["generate"], calls["generate"])
    pilot.uses = [use_of(output, policy) for output in (base.outputs if base else ())]
    estimates = estimated(pilot, policy, settings.concurrency)
    if settings.json:
        named = {name: one and one._asdict() for name, one in estimates.items()}
        echo.say_json({"calls": calls, "questions": questions, "estimate": named})
        return 0
    echo.say_words(note)
    if base is None:
        echo.say_words("Their cost is not known: no run of this system is stored. Make one: auepora run.")
        return 0
    title = f"The calls of the generator, if they take what those of {base.evaluation_id} took"
    echo.show(replace(estimate_table(pilot, estimates, settings.concurrency), title=title))
    return 0


def _say(found: Diagnosis, probe: Probe, args: Namespace) -> None:
    if args.save:
        stage = {name: one.name for one in found.stages for name in one.sample_ids}
        kept = [
            replace(one, labels={**one.labels, "stage": stage[one.sample_id]})
            for one in probe.run.samples
            if one.sample_id in stage
        ]
        save_jsonl_dataset(InMemoryDataset(Path(args.save).stem, kept), args.save, force=args.force)
        echo.note(f"{len(kept)} questions are in {args.save}")
    if args.json:
        echo.say_json(found.to_dict())
    elif args.stage:
        _say_stage(found, probe, args.stage)
    else:
        echo.say(str(found))
        if found.stages and not found.unreached:
            echo.say(f"More: --stage {found.stages[0].name} (its answers), --save wrong.jsonl, --json")


def _say_stage(found: Diagnosis, probe: Probe, name: str) -> None:
    """Print the answers that a stage lost, beside those that an intervention gave."""
    stage = found.stage(name)
    if stage is None:
        there = ", ".join(one.name for one in found.stages) or "none"
        raise PlanError(f"No answer was lost at {name}. There are: {there}.")
    echo.say(f"{stage.text}: {stage.count} answers ({stage.rule})")
    outputs = {
        key: {one.sample_id: output for one, output in zip(run.samples, run.outputs, strict=True)}
        for key, run in probe.runs.items()
    }
    for sample_id in stage.sample_ids:
        sample = probe.cases[sample_id].sample
        echo.say(f"\n{echo.one_line(sample_id, 60)}: {echo.one_line(sample.query, 200)}")
        if sample.reference_answer is not None:
            echo.say(f"  reference  {echo.one_line(sample.reference_answer.text, 200)}")
        own = outputs[RETRIEVED][sample_id]
        for key, words in _SHOWN.items():
            output = outputs.get(key, {}).get(sample_id)
            # The same documents were not asked about again.
            if output is not None and (output is own or output.retrieved != own.retrieved):
                echo.say(f"  {words:10} {_answer(output)}")


def _answer(output: SystemOutputs) -> str:
    if output.error is not None:
        return echo.one_line(f"failed: {output.error}", 200)
    shown = ", ".join(hit.doc.doc_id for hit in output.retrieved[:5])
    return echo.one_line(f"{output.response.text or '(empty)'} [{shown}]", 200)
