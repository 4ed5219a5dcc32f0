"""Label sets: questions, stored answers, and what people said they are (accurate, hallucination, ...).

A file is one document with `samples`, a bare list of them, or a sample a line. Lists within the list are
flattened. What the label describes, the stored answer, becomes `metadata["stored_output"]`: it is not an
output of the system that is evaluated. `notes`, `rubric` and `your_annotation` are carried along for people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.types import PAIR, STORED_OUTPUT, TRUE_LABEL, EvaluationSample, Failure, Response, SystemOutputs
from ..errors import DataError, warn_user
from ..read.messages import HISTORY
from ..read.outputs import to_output
from ..text.label_terms import CONTRADICTION, FHRI_SCENARIO, LABELS, PREDICTED_LABEL, label_of
from .csv import DroppedWarning
from .documents import read_document, write_document
from .files import stem
from .jsonl import read_records
from .schema import check_no_errors, label_errors, schema_errors
from .tables import placed_rows

Record = dict[str, Any]

# What becomes a label, and the field of fhri_spec that it comes from.
_SPEC_LABELS = {
    FHRI_SCENARIO: "scenario_override",
    "risk_tier": "risk_tier",
    "category": "category",
    "compliance_tag": "compliance_tag",
    PAIR: PAIR,
}
# What becomes metadata: of fhri_spec, of its hallucination_check, and of the record itself.
_SPEC_METADATA = ("expected_behavior", "rubric", "expected_scenario")
_CHECK = ("requires_verifiable_facts", "ground_truth_hint")
_FOR_PEOPLE = ("your_annotation", "notes")
_STORED = ("llm_answer", "retrieved_passages")


def load_label_set(path: str | Path) -> InMemoryDataset:
    """The samples of a label set; DataError that names the first wrong record and counts the others."""
    path = Path(path)
    document = read_label_document(path)
    check_no_errors(label_set_errors(document), path.name)
    return dataset_from_label_set(document, stem(path))


def save_label_set(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write a dataset whose answers have labels; `load_label_set` reads it back unchanged.

    The answers are those that were labelled (`metadata.stored_output`), or else those of the dataset's file.
    """
    left_out: Counter[str] = Counter()
    records = [_record(sample, dataset.outputs.get(sample.sample_id), left_out) for sample in dataset]
    head = _object(_object(dataset.info.get("metadata")).get("label_set"))
    document = {**head, "samples": records}
    check_no_errors(label_set_errors(document), Path(path).name)
    write_document(document, path, force=force)
    if left_out:
        names = ", ".join(f"{name} ({count})" for name, count in left_out.most_common(12))
        warn_user(f"{Path(path).name}: a label set has no place for {names:.300}.", DroppedWarning)


def _record(sample: EvaluationSample, output: SystemOutputs | None, left_out: Counter[str]) -> Record:
    """Return a sample as a record of a label set; DataError if its answer has no label."""
    where, labels, metadata = f"sample {sample.sample_id!r:.80}", dict(sample.labels), dict(sample.metadata)
    label = labels.pop(TRUE_LABEL, None)
    if label is None:
        fix = f"Label the answers of a run: auepora annotate RUN --labels {','.join(LABELS)}"
        raise DataError(where, f"there is no label {TRUE_LABEL!r}.", fix=f"{fix} --export FILE.labels.json")
    stored = _object(metadata.pop(STORED_OUTPUT, None)) or _stored_answer(output)
    other = {name: _object(part) for name, part in _object(metadata.pop("other_fields", None)).items()}
    spec = {field: labels.pop(name) for name, field in _SPEC_LABELS.items() if name in labels}
    spec |= {name: metadata.pop(name) for name in _SPEC_METADATA if name in metadata}
    check = {name: metadata.pop(name) for name in _CHECK if name in metadata} | other.get(
        "hallucination_check", {}
    )
    spec |= other.get("fhri_spec", {}) | ({"hallucination_check": check} if check else {})
    record: Record = {"id": sample.sample_id, "question": sample.query, TRUE_LABEL: label}
    if stored.get("turns"):
        record["question_sequence"] = stored["turns"]
        metadata.pop(HISTORY, None)  # made of the turns
    else:
        record["llm_answer"] = stored.get("answer", "")
    record["retrieved_passages"] = stored.get("passages", [])
    record |= {name: metadata.pop(name) for name in _FOR_PEOPLE if name in metadata}
    if metadata.get("cluster") == sample.labels.get(PAIR):  # made of the pair
        metadata.pop("cluster", None)
    documents = [name for name in ("relevant_docs", "candidate_docs") if getattr(sample, name)]
    left_out.update(documents + ["reference_answer"] * (sample.reference_answer is not None))
    left_out.update([*(f"labels.{name}" for name in labels), *(f"metadata.{name}" for name in metadata)])
    return {**record, **({"fhri_spec": spec} if spec else {}), **other.get("record", {})}


def _object(value: Any) -> Record:
    return value if isinstance(value, dict) else {}


def _stored_answer(output: SystemOutputs | None) -> Record:
    if output is None:
        return {}
    return {"answer": output.response.text, "passages": [hit.doc.text for hit in output.retrieved]}


def label_set_errors(document: Any) -> list[str]:
    """Everything that is wrong with a label set: "samples[12] (fhri_013): fhri_spec.risk_tier: ..."."""
    flat = flattened(document)
    records = flat.get("samples", ()) if isinstance(flat, dict) else ()
    return [_named(error, records) for error in schema_errors(flat, "label_set", label_errors(flat))]


def flattened(document: Any) -> Any:
    """The document with all its samples in one list; a bare list, or a sample alone, becomes a document."""
    if isinstance(document, list):
        document = {"samples": document}
    if isinstance(document, dict) and TRUE_LABEL in document and "samples" not in document:
        document = {"samples": [document]}  # one sample, as the annotation guide prints it
    if not isinstance(document, dict) or not isinstance(document.get("samples"), list):
        return document
    return {**document, "samples": list(_flat(document["samples"]))}


def dataset_from_label_set(document: Any, name: str) -> InMemoryDataset:
    """A label set as a dataset; the document must be free of errors."""
    document = flattened(document)
    header = document.get("metadata") or {}
    info = {key: header[key] for key in ("version", "description") if key in header}
    info["name"] = str(header.get("dataset_name") or name)
    info["metadata"] = {
        "label_set": {key: value for key, value in document.items() if key != "samples"},
    }
    samples = list(map(_sample, document["samples"]))
    return InMemoryDataset.of_readings(
        name, zip(samples, map(stored_output, samples), strict=True), info=info
    )


def read_label_document(path: Path) -> Any:
    """The document of a label set as it is in its file, right or wrong."""
    if path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return {"samples": [record for _, record in read_records(path)]}
    return read_document(path)


def _flat(samples: list[Any]) -> Iterator[Any]:
    for each in samples:
        if isinstance(each, list):
            yield from _flat(each)  # no deeper than a document may be nested
        else:
            yield each


def _sample(record: Record) -> EvaluationSample:
    spec = dict(record.get("fhri_spec") or {})
    check = dict(spec.pop("hallucination_check", None) or {})
    labels = {TRUE_LABEL: record[TRUE_LABEL]}
    for label, field in _SPEC_LABELS.items():
        value = spec.pop(field, None)
        if value is not None:
            labels[label] = value
    metadata: Record = {name: record[name] for name in _FOR_PEOPLE if name in record}
    metadata |= {name: spec.pop(name) for name in _SPEC_METADATA if name in spec}
    metadata |= {name: check.pop(name) for name in _CHECK if name in check}
    question, stored = _stored(record)
    metadata[STORED_OUTPUT] = stored
    if earlier := (record.get("question_sequence") or ())[:-1]:
        metadata[HISTORY] = [
            {"role": role, "content": turn[name]}
            for turn in earlier
            for role, name in (("user", "question"), ("assistant", "answer"))
        ]
    if PAIR in labels:
        # The answers of a pair are judged against each other: they are not independent.
        metadata["cluster"] = labels[PAIR]
    # Other fields are kept, so that nothing of a curated file is lost.
    known = {"id", "question", TRUE_LABEL, "fhri_spec", "question_sequence", *_FOR_PEOPLE, *_STORED}
    other = {name: value for name, value in record.items() if name not in known}
    unread = {"record": other, "fhri_spec": spec, "hallucination_check": check}
    if any(unread.values()):
        metadata["other_fields"] = {name: fields for name, fields in unread.items() if fields}
    return EvaluationSample(record["id"], question, labels=labels, metadata=metadata)


def _stored(record: Record) -> tuple[str, Record]:
    """The question, and the answer that the label describes; of a conversation, those of its last turn."""
    turns = record.get("question_sequence")
    if not turns:
        stored = {"answer": record.get("llm_answer", ""), "passages": record.get("retrieved_passages", [])}
        return record["question"], stored
    stored = {"answer": turns[-1]["answer"], "passages": record.get("retrieved_passages", []), "turns": turns}
    return turns[-1]["question"], stored


def stored_output(sample: EvaluationSample) -> SystemOutputs | None:
    """Return the answer that the label describes as an output; None if it was not filled in."""
    stored = _object(sample.metadata.get(STORED_OUTPUT))  # metadata of other files may have any type
    if not str(stored.get("answer") or "").strip():
        return None
    output = to_output({"answer": stored["answer"], "retrieved_passages": stored.get("passages") or []})
    turns = stored.get("turns")
    # The last turn is the answer that is judged; the others come before it.
    earlier = [turn for turn in turns[:-1] if isinstance(turn, dict)] if isinstance(turns, list) else []
    if earlier:
        output.extra["earlier_answers"] = [str(turn.get("answer", "")) for turn in earlier]
    return output


_SAMPLE = re.compile(r"\$\.samples\[(\d+)\]\.?(.*?): ", re.DOTALL)


def _named(error: str, records: Any) -> str:
    """An error of the schema with the id of its record in it."""
    match = _SAMPLE.match(error)
    if match is None or not isinstance(records, list):
        return error
    place = int(match[1])
    inner = f"{match[2]}: " if match[2] else ""
    return f"{_place(place, records[place])}: {inner}{error[match.end() :]}"


def _place(place: int, record: Any) -> str:
    identity = record.get("id") if isinstance(record, dict) else None
    return f"samples[{place}] ({identity:.80})" if isinstance(identity, str) else f"samples[{place}]"


# Predicted labels and scores: `{"id", "predicted_label"}` or `{"id", "score"}`, in a table or a list.
#
# A report with `detailed_results` (`sample_id`, `predicted_label`, `fhri`, `scenario_detected`) is read too.
# `sample_id` may stand for `id` everywhere.

Records = dict[str, dict[str, Any]]


def read_label_records(path: str | Path, known: Container[str] | None = None) -> Records:
    """The records of a file by the id of their sample; a record of an unknown sample is an error."""
    path = Path(path)
    records: Records = {}
    for where, record in placed_rows(path):
        sample_id = record.get("id", record.get("sample_id"))
        if not isinstance(sample_id, str) or not sample_id:
            raise DataError(where, "the field 'id' is missing, or is not a text.", fix="Add it.")
        if sample_id in records:
            raise DataError(where, f"{sample_id!r:.80} was used already.", fix="Keep one record per sample.")
        if known is not None and sample_id not in known:
            what = f"the data have no sample {sample_id!r:.80}."
            raise DataError(where, what, fix="Is this the right dataset?")
        records[sample_id] = {**record, "where": where}
    return records


def read_predicted_labels(path: str | Path, known: Container[str] | None = None) -> dict[str, SystemOutputs]:
    """What a detector predicted, as outputs: the label in `extra`. A label of null is a failure."""
    return {sample_id: _prediction(record) for sample_id, record in read_label_records(path, known).items()}


class ScoredSample(NamedTuple):
    """A reliability score, None if there is none, and whether the detector saw a contradiction."""

    score: float | None
    contradiction: bool


def read_scores(path: str | Path, known: Container[str] | None = None) -> dict[str, ScoredSample]:
    """Reliability scores by the id of the sample: `score`, or `fhri`; the `predicted_label` may be there."""
    scores: dict[str, ScoredSample] = {}
    for sample_id, record in read_label_records(path, known).items():
        if "score" not in record and "fhri" not in record:
            raise DataError(
                record["where"], "the field 'score' is missing.", fix="Add it; null if there is none."
            )
        score: Any = record.get("score", record.get("fhri"))
        if isinstance(score, str):  # of a table
            with suppress(ValueError):
                score = float(score)
        if score is not None and (type(score) not in (int, float) or not 0 <= score <= 1):
            what = f"{score!r:.60} is not a score from 0 to 1."
            raise DataError(record["where"], what, fix="Write one, or null.")
        predicted = record.get(PREDICTED_LABEL)
        label = None if predicted is None else _label(predicted, record["where"])
        scores[sample_id] = ScoredSample(None if score is None else float(score), label == CONTRADICTION)
    return scores


def _prediction(record: dict[str, Any]) -> SystemOutputs:
    label = record.get(PREDICTED_LABEL)
    if PREDICTED_LABEL not in record:
        raise DataError(record["where"], f"the field {PREDICTED_LABEL!r} is missing.", fix="Add it.")
    if label is None:
        failure = Failure("NoPrediction", str(record.get("error") or "the predicted label is null")[:500])
        return SystemOutputs([], Response(""), error=failure)
    extra = {PREDICTED_LABEL: _label(label, record["where"])}
    if isinstance(record.get("scenario_detected"), str):
        extra["scenario_detected"] = record["scenario_detected"]
    return SystemOutputs([], Response(""), extra=extra)


def _label(value: Any, where: str) -> str:
    label = label_of(value)
    if label is None:
        raise DataError(
            where,
            f"the predicted label {value!r:.60} is not one of {', '.join(LABELS)}.",
            fix="Change it; null if there is none.",
        )
    return label
