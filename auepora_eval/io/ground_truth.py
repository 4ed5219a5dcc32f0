"""`.gt.json`: what people said about the queries of a dataset, an annotation each; YAML likewise.

A citation annotation marks the spans that answer a query, an answer-quality annotation scores an answer. A
file holds one annotation, a list of them, or a set that names its dataset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError
from .documents import read_document, write_document
from .schema import DataFormatValidator, check_no_errors

Annotation = dict[str, Any]
ANNOTATIONS = "annotations"


def load_ground_truth(path: str | Path) -> list[Annotation]:
    """Return every annotation of a file; DataError if one is not what it should be."""
    path = Path(path)
    document = read_document(path)
    check_annotations(document, path.name)
    return annotations_in(document)


def save_ground_truth(
    annotations: Iterable[Annotation],
    path: str | Path,
    *,
    dataset_id: str | None = None,
    version: str | None = None,
    force: bool = False,
) -> None:
    """Write annotations as a set that may name its dataset; `load_ground_truth` reads them back unchanged."""
    document = {"dataset_id": dataset_id, "version": version, ANNOTATIONS: list(annotations)}
    document = {name: value for name, value in document.items() if value is not None}
    check_annotations(document, Path(path).name)
    write_document(document, path, force=force)


def check_annotations(document: Any, where: str) -> None:
    """DataError if a document is not ground truth."""
    check_no_errors(DataFormatValidator().validate_ground_truth(document), where)


def annotations_in(document: Any) -> list[Annotation]:
    """The annotations of a document: itself, its items, or what is in its set."""
    if isinstance(document, list):
        return document
    annotations: list[Annotation] = document.get(ANNOTATIONS, [document])
    return annotations


# What each annotator said in an export of Label Studio, as ground truth that `annotate --agree` compares.

_STARS = 5  # the highest rating of a control with its usual setting


@dataclass
class Annotators:
    """The annotations of each person, and how many results of which type have no place."""

    annotations: dict[str, list[Annotation]] = field(default_factory=dict)
    without_place: Counter[str] = field(default_factory=Counter)


def annotators_in(document: Any, where: str) -> Annotators:
    """Return what each annotator said; cancelled annotations are left out."""
    people = Annotators()
    for task in _objects(document if isinstance(document, list) else [document]):
        data = task.get("data")
        if not isinstance(data, Mapping):
            raise DataError(where, "a task has no 'data'.", fix="Export as JSON, not as JSON-MIN.")
        for annotation in _objects(task.get("annotations")):
            if not annotation.get("was_cancelled"):
                name = _annotator(annotation.get("completed_by"))
                own = people.annotations.setdefault(name, [])
                own += _of_task(task, data, annotation, name, people.without_place)
    if not any(people.annotations.values()):
        raise DataError(where, "nobody has annotated anything in it.", fix="Is it an export of annotations?")
    return people


def _of_task(
    task: Mapping[str, Any],
    data: Mapping[str, Any],
    annotation: Mapping[str, Any],
    annotator: str,
    without_place: Counter[str],
) -> Iterator[Annotation]:
    query_id = str(data.get("sample_id", task.get("id")))
    common = {"query_id": query_id, "annotator_id": annotator}
    texts = {str(doc.get("id")): str(doc.get("body") or "") for doc in _objects(data.get("similar_docs"))}
    relevant: list[str] = []
    is_ranked = False
    ratings: dict[str, str] = {}
    scores: dict[str, float] = {}
    for result in _objects(annotation.get("result")):
        value, name = result.get("value"), str(result.get("from_name"))
        value = value if isinstance(value, Mapping) else {}
        if isinstance(value.get("ranker"), Mapping):
            is_ranked = True
            bucket = value["ranker"].get("relevant")
            relevant += map(str, bucket if isinstance(bucket, list) else ())
        elif isinstance(value.get("choices"), list) and value["choices"]:
            ratings[name] = ", ".join(map(str, value["choices"]))
        elif isinstance(value.get("rating"), int | float) and 0 <= value["rating"] <= _STARS:
            scores[name] = value["rating"] / _STARS
        else:
            without_place[str(result.get("type"))] += 1
    identity = f"{annotation.get('id', query_id)}-{annotator}"
    if is_ranked:
        spans = [
            {"file_name": one, "start_char": 0, "end_char": len(texts[one])}
            for one in relevant
            if texts.get(one)
        ]
        yield {"annotation_id": f"{identity}-documents", **common, "citations": spans}
    if ratings or scores:
        judged: Annotation = {"annotation_id": f"{identity}-answer", **common}
        judged["answer_text"] = str(data.get("answer") or "")
        judged |= {"aspect_ratings": ratings} if ratings else {}
        judged |= {"quality_scores": scores} if scores else {}
        yield judged


def _annotator(completed_by: Any) -> str:
    # The id rather than the e-mail address: it becomes the name of a file.
    identity = completed_by.get("id") if isinstance(completed_by, Mapping) else completed_by
    return "unknown" if identity is None else str(identity)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in value if isinstance(one, Mapping)) if isinstance(value, list) else iter(())
