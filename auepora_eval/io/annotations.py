"""Label sets: questions, stored answers, and what people said they are (accurate, hallucination, ...).

A file is one document with `samples`, a bare list of them, or a sample a line. Lists within the list are
flattened. What the label describes, the stored answer, becomes `metadata["stored_output"]`: it is not an
output of the system that is evaluated. `notes`, `rubric` and `your_annotation` are carried along for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..core.dataset import DescribedDataset, EvaluationDataset, checked_samples
from ..core.label_terms import PAIR, STORED_OUTPUT, TRUE_LABEL
from ..core.types import EvaluationSample
from .document_file import read_document, write_document
from .jsonl import read_records
from .names import stem
from .refusal import refuse_errors
from .schema import checker

Record = dict[str, Any]

# What becomes a label, and the field of fhri_spec that it comes from.
_SPEC_LABELS = {
    "scenario": "scenario_override",
    "risk_tier": "risk_tier",
    "category": "category",
    "compliance_tag": "compliance_tag",
    PAIR: PAIR,
}
_SPEC_METADATA = ("expected_behavior", "rubric", "expected_scenario")
_CHECK = ("requires_verifiable_facts", "ground_truth_hint")
_FOR_PEOPLE = ("your_annotation", "notes")
_STORED = ("llm_answer", "retrieved_passages")


def load_label_set(path: str | Path) -> DescribedDataset:
    """The samples of a label set; DataError that names the first wrong record and counts the others."""
    path = Path(path)
    document = read_label_document(path)
    refuse_errors(label_set_errors(document), path.name)
    return dataset_from_label_set(document, stem(path))


def save_label_set(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write a dataset as a label set; each of its samples needs a ground_truth_label."""
    document = label_set_from_dataset(dataset)
    refuse_errors(label_set_errors(document), Path(path).name)
    write_document(document, path, force=force)


def label_set_errors(document: Any) -> list[str]:
    """Everything that is wrong with a label set: "samples[12] (fhri_013): fhri_spec.risk_tier: ..."."""
    flat = flattened(document)
    records = flat.get("samples", ()) if isinstance(flat, dict) else ()
    found = [_named(str(error), records) for error in checker("label_set").errors(flat)]
    if not isinstance(records, list):
        return found
    seen: dict[str, int] = {}
    for place, record in enumerate(records):
        if isinstance(record, dict) and isinstance(record.get("id"), str):
            first = seen.setdefault(record["id"], place)
            if first != place:
                found.append(
                    f"{_place(place, record)}: the id was used already, by samples[{first}]. Change it."
                )
            if "question" not in record and "question_sequence" not in record:
                found.append(f"{_place(place, record)}: the field 'question' is missing. Add it.")
    return found


def flattened(document: Any) -> Any:
    """The document with all its samples in one list; a bare list of samples becomes a document."""
    if isinstance(document, list):
        document = {"samples": document}
    if not isinstance(document, dict) or not isinstance(document.get("samples"), list):
        return document
    return {**document, "samples": list(_flat(document["samples"]))}


def dataset_from_label_set(document: Any, name: str) -> DescribedDataset:
    """A label set as a dataset; the document must be free of errors."""
    document = flattened(document)
    header = document.get("metadata") or {}
    info = {key: header[key] for key in ("version", "description") if key in header}
    info["name"] = str(header.get("dataset_name") or name)
    info["metadata"] = {
        "label_set": {key: value for key, value in document.items() if key != "samples"},
    }
    samples = checked_samples(name, map(_sample, document["samples"]))
    return DescribedDataset(name, samples, info=info)


def label_set_from_dataset(dataset: EvaluationDataset) -> Record:
    """The document that `dataset_from_label_set` reads back."""
    header = dataset.info.get("metadata", {}).get("label_set")
    if not isinstance(header, dict):
        header = {"metadata": {"dataset_name": dataset.info.get("name", dataset.name)}}
    return {**header, "samples": [_record(sample) for sample in dataset]}


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
    if PAIR in labels:
        # The answers of a pair are judged against each other: they are not independent.
        metadata["cluster"] = labels[PAIR]
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


def _record(sample: EvaluationSample) -> Record:
    metadata, stored = sample.metadata, sample.metadata.get(STORED_OUTPUT, {})
    other = metadata.get("other_fields", {})
    spec: Record = {name: metadata[name] for name in _SPEC_METADATA if name in metadata}
    spec |= {field: sample.labels[label] for label, field in _SPEC_LABELS.items() if label in sample.labels}
    check = {name: metadata[name] for name in _CHECK if name in metadata} | other.get(
        "hallucination_check", {}
    )
    if check:
        spec["hallucination_check"] = check
    record: Record = {"id": sample.sample_id}
    if "turns" in stored:
        record["question_sequence"] = stored["turns"]
    else:
        record |= {"question": sample.query, "llm_answer": stored.get("answer", "")}
    record |= {"retrieved_passages": stored.get("passages", [])}
    record |= {TRUE_LABEL: sample.labels.get(TRUE_LABEL)}
    record |= {name: metadata[name] for name in _FOR_PEOPLE if name in metadata}
    record |= other.get("record", {})
    if spec or other.get("fhri_spec"):
        record["fhri_spec"] = spec | other.get("fhri_spec", {})
    return record


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
