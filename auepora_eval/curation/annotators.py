"""What several people said about the queries of one dataset, each from a file or several in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..core.dataset import EvaluationDataset
from ..core.document_names import DocumentName, DocumentNames
from ..errors import DataError
from ..io.document_file import read_document
from ..io.ground_truth import Annotation, annotations_in, refuse_wrong_annotations
from ..io.names import stem

_ABOUT = ("dataset_id", "version")


class Judged(NamedTuple):
    """An answer that was judged: two people can only agree on the same one."""

    query_id: str
    answer: str


@dataclass
class Annotators:
    """The annotations of several people, by what they are about and then by who made them."""

    about: dict[str, str] = field(default_factory=dict)  # dataset_id and version, as far as they are told
    names: list[str] = field(default_factory=list)
    spans: dict[str, dict[str, Annotation]] = field(default_factory=dict)
    judgements: dict[Judged, dict[str, Annotation]] = field(default_factory=dict)

    @property
    def annotations(self) -> list[Annotation]:
        """All of them, those of one query together."""
        return [
            one for group in (self.spans, self.judgements) for said in group.values() for one in said.values()
        ]

    @property
    def query_ids(self) -> list[str]:
        return list(dict.fromkeys([*self.spans, *(judged.query_id for judged in self.judgements)]))


def read_annotators(paths: Sequence[str | Path]) -> Annotators:
    """The annotations of several files; DataError if they are not of several people on one dataset."""
    documents = []
    for path in map(Path, paths):
        document = read_document(path)
        refuse_wrong_annotations(document, path.name)
        documents.append((path.name, document))
    return annotators_of(documents)


def annotators_of(documents: Iterable[tuple[str, Any]]) -> Annotators:
    """The same of documents that are there already, each with the name of its file.

    An annotation without an `annotator_id` is that of a person named like the file.
    """
    people = Annotators()
    told: dict[str, str] = {}
    places: dict[int, str] = {}
    for where, document in documents:
        _note_dataset(people, told, where, document)
        for annotation in annotations_in(document):
            name = str(annotation.get("annotator_id") or stem(Path(where)))
            place = f"{where}: annotation {annotation['annotation_id']!r:.80}"
            said = _said(people, annotation)
            if name in said:
                raise DataError(
                    place,
                    f"{name!r:.80} said so already, in {places[id(said[name])]}.",
                    fix="Give each person an annotator_id of their own, and name each file once.",
                )
            said[name] = annotation
            places[id(annotation)] = place
            if name not in people.names:
                people.names.append(name)
    _refuse_too_few(people)
    return people


def refuse_other_dataset(people: Annotators, dataset: EvaluationDataset) -> None:
    """DataError unless the annotations can be those of this dataset."""
    known = {sample.sample_id for sample in dataset}
    for name, told in people.about.items():
        stated = dataset.info.get(name)
        if stated is not None and str(stated) != told:
            raise DataError(
                f"{dataset.name:.80}",
                f"its {name} is {stated!r:.80}, the annotations are about {told!r:.80}.",
                fix="Take the dataset that was annotated.",
            )
    strange = [query_id for query_id in people.query_ids if query_id not in known]
    if strange:
        raise DataError(
            f"{dataset.name:.80}",
            f"{len(strange)} of the {len(people.query_ids)} annotated queries are not in it, "
            f"the first is {strange[0]!r:.80}.",
            fix="Is it the ground truth of another dataset, or of another version?",
        )


def file_names_of(dataset: EvaluationDataset) -> Callable[[str], str]:
    """Tells which document a file name means, so that two ways to write it are the same file."""
    documents = list(dataset.documents)
    names = DocumentNames(
        DocumentName(
            each.doc_id, str(each.metadata.get("file_path") or ""), str(each.metadata.get("title") or "")
        )
        for each in documents
    )

    def known_name(file_name: str) -> str:
        place = names.place_of(file_name)
        return file_name if place is None else documents[place].doc_id

    return known_name


def _said(people: Annotators, annotation: Annotation) -> dict[str, Annotation]:
    """Where this annotation belongs: what has been said about the same thing so far."""
    query_id = annotation["query_id"]
    if "citations" in annotation:
        return people.spans.setdefault(query_id, {})
    return people.judgements.setdefault(Judged(query_id, annotation["answer_text"]), {})


def _note_dataset(people: Annotators, told: dict[str, str], where: str, document: Any) -> None:
    for name in _ABOUT if isinstance(document, Mapping) and "annotations" in document else ():
        stated = document.get(name)
        if stated is None:
            continue
        if people.about.setdefault(name, stated) != stated:
            raise DataError(
                where,
                f"its {name} is {stated!r:.80}, that of {told[name]} is {people.about[name]!r:.80}.",
                fix="Agreement is measured on one version of one dataset.",
            )
        told.setdefault(name, where)


def _refuse_too_few(people: Annotators) -> None:
    if len(people.names) < 2:
        who = (
            f"all annotations are by {people.names[0]!r:.80}" if people.names else "there are no annotations"
        )
        raise DataError(
            "agreement",
            f"{who}.",
            fix="Agreement needs two people: name the file of another annotator as well.",
        )
    if not any(len(said) > 1 for group in (people.spans, people.judgements) for said in group.values()):
        raise DataError(
            "agreement",
            f"no query was annotated by two of {', '.join(people.names)[:200]} in the same way.",
            fix="Do the files belong to one dataset? Of answers, only the same one can be compared.",
        )
