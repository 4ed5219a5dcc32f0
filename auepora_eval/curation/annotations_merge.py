"""Annotations of both kinds, of any number of people, on the dataset that they are about."""

from __future__ import annotations

from dataclasses import replace

from ..core.dataset import DescribedDataset, EvaluationDataset
from ..core.types import EvaluationSample
from ..io.ground_truth import Annotation, with_annotations
from .adjudication import adjudicated
from .annotators import Annotators, file_names_of, refuse_other_dataset


def merge_annotations(dataset: EvaluationDataset, people: Annotators) -> DescribedDataset:
    """The dataset with every annotation on its sample, and with the settled spans as gold citations.

    Annotations are in `metadata["annotations"]`; one whose id another one has gets its annotator's name in
    front. `metadata["citations"]` is set where a sample has none: a gold that is there stays.
    """
    refuse_other_dataset(people, dataset)
    merged = with_annotations(dataset, with_own_ids(people))
    gold = {
        annotation["query_id"]: annotation["citations"]
        for annotation in adjudicated(people, file_of=file_names_of(dataset))
        if annotation.get("citations")
    }
    return DescribedDataset(
        merged.name,
        [_with_gold(sample, gold) for sample in merged],
        info=merged.info,
        documents=merged.documents,
    )


def with_own_ids(people: Annotators) -> list[Annotation]:
    """All annotations, each with an id of its own and the name of its annotator."""
    seen: set[str] = set()
    unique = []
    for group in (people.spans, people.judgements):
        for said in group.values():
            for name, annotation in said.items():
                own = annotation["annotation_id"]
                number = 1
                while own in seen:
                    suffix = "" if number == 1 else f"_{number}"
                    own = f"{name}_{annotation['annotation_id']}{suffix}"
                    number += 1
                seen.add(own)
                unique.append({**annotation, "annotation_id": own, "annotator_id": name})
    return unique


def _with_gold(sample: EvaluationSample, gold: dict[str, list[Annotation]]) -> EvaluationSample:
    if sample.metadata.get("citations") or sample.sample_id not in gold:
        return sample
    return replace(sample, metadata={**sample.metadata, "citations": gold[sample.sample_id]})
