"""`.gt.json`: what people said about the queries of a dataset, an annotation each; YAML likewise.

A citation annotation marks the spans that answer a query, an answer-quality annotation scores an answer. A
file holds one annotation, a list of them, or a set that names its dataset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.types import EvaluationSample
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


def with_annotations(dataset: EvaluationDataset, annotations: Iterable[Annotation]) -> InMemoryDataset:
    """The dataset with each annotation in `metadata["annotations"]` of the sample that it is about."""
    samples, annotations = list(dataset), list(annotations)
    check_annotations(annotations, "annotations")
    by_query: dict[str, list[Annotation]] = {
        sample.sample_id: list(_annotations_of(sample)) for sample in samples
    }
    known = {annotation["annotation_id"] for each in by_query.values() for annotation in each}
    for annotation in annotations:
        where = f"annotation {annotation['annotation_id']!r:.80}"
        if annotation["annotation_id"] in known:
            raise DataError(where, "is there already.", fix="Give each annotation its own id.")
        if annotation["query_id"] not in by_query:
            raise DataError(
                where,
                f"is about {annotation['query_id']!r:.80}, a query that {dataset.name!r:.80} does not have.",
                fix="Is it the ground truth of another dataset, or of another version?",
            )
        known.add(annotation["annotation_id"])
        by_query[annotation["query_id"]].append(annotation)
    annotated = []
    for sample in samples:
        own = by_query[sample.sample_id]
        # A copy: the sample of the caller stays as it was.
        annotated.append(replace(sample, metadata={**sample.metadata, ANNOTATIONS: own}) if own else sample)
    return InMemoryDataset(dataset.name, annotated, info=dict(dataset.info), documents=dataset.documents)


def _annotations_of(sample: EvaluationSample) -> list[Annotation]:
    annotations = sample.metadata.get(ANNOTATIONS, [])
    if not isinstance(annotations, list) or not all(
        isinstance(each, dict) and {"annotation_id", "query_id"} <= each.keys() for each in annotations
    ):
        raise DataError(
            f"sample {sample.sample_id!r:.80}",
            'metadata["annotations"] holds something else than annotations.',
            fix="Keep it under another name.",
        )
    return annotations


# What each annotator said in an export of Label Studio, as ground truth that `annotate --agree` compares.
