"""Import traces as samples and outputs, or as outputs for the samples of a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ..core.dataset import EvaluationDataset
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import DataError
from ..io.files import written
from ..io.jsonl import encode
from ..io.spans import SpanDump
from ..io.traces import Trace, TraceReader
from ..read.records import prediction_record, sample_record

_FIX = "Does it hold spans with input.value, output.value, or gen_ai.* messages? Is their content recorded?"


@dataclass
class Imported:
    """Samples with their outputs, and the ids of traces that were left out, by reason."""

    pairs: list[tuple[EvaluationSample, SystemOutputs]] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    not_spans: Counter[str] = field(default_factory=Counter)
    first_not_span: dict[str, str] = field(default_factory=dict)  # where it is, by reason
    total: int = 0
    without_trace: int | None = None  # samples of the dataset

    @property
    def failed(self) -> int:
        """Return the number of calls that failed; they are outputs too."""
        return sum(output.error is not None for _, output in self.pairs)

    def leave_out(self, trace: Trace, reason: str) -> None:
        """Record a trace that is not used."""
        self.left_out.setdefault(reason, []).append(trace.trace_id)

    def write(self, outputs: Path, samples: Path | None = None, *, force: bool = False) -> None:
        """Write the files; all of them or none."""
        with ExitStack() as stack:
            to_outputs = stack.enter_context(written(outputs, force=force))
            to_samples = stack.enter_context(written(samples, force=force)) if samples else None
            for sample, output in self.pairs:
                to_outputs.write(encode(prediction_record(sample.sample_id, output)) + b"\n")
                if to_samples is not None:
                    to_samples.write(encode(sample_record(sample)) + b"\n")


def import_traces(
    path: Path,
    *,
    dataset: EvaluationDataset | None = None,
    id_attribute: str | None = None,
    doc_id: str | None = None,
) -> Imported:
    """Read a dump of spans; with a dataset, outputs are those of its samples.

    All spans are kept in memory: the spans of a trace may be anywhere in the file.
    """
    dump = SpanDump(path)
    reader = TraceReader(id_attribute, doc_id).add(dump)
    by_id = id_attribute is not None
    samples = None if dataset is None else _samples_by_key(dataset, by_id=by_id)
    imported, used = Imported(not_spans=dump.left_out, first_not_span=dump.first), set[str]()
    for trace in reader:
        imported.total += 1
        sample = trace.sample if samples is None else samples.get(_key(trace.sample, by_id=by_id))
        if trace.problem:
            imported.leave_out(trace, trace.problem)
        elif sample is None:
            imported.leave_out(trace, "no sample of the dataset")
        elif sample.sample_id in used:
            imported.leave_out(trace, "the sample of a trace before it")
        else:
            used.add(sample.sample_id)
            imported.pairs.append((sample, trace.output))
    if dataset is not None:
        imported.without_trace = len(dataset) - len(used)
    if not imported.pairs:
        reasons = "; ".join(f"{len(ids)} with {reason}" for reason, ids in imported.left_out.items())
        what = f"none of its {imported.total} traces can be used{f': {reasons}' if reasons else ''}."
        raise DataError(path.name, what, fix=_FIX)
    return imported


def _samples_by_key(
    samples: Iterable[EvaluationSample], *, by_id: bool
) -> dict[str, EvaluationSample | None]:
    """Return the samples of a dataset by id or by question; None for a question that two samples have."""
    found: dict[str, EvaluationSample | None] = {}
    for sample in samples:
        key = _key(sample, by_id=by_id)
        found[key] = None if key in found else sample  # a trace could be of either
    return found


def _key(sample: EvaluationSample, *, by_id: bool) -> str:
    return sample.sample_id if by_id else " ".join(sample.query.casefold().split())
