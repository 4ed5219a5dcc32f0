"""Read the annotations of several people on one dataset, and settle the spans that they marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..errors import DataError
from ..io.documents import read_document
from ..io.files import stem
from ..io.ground_truth import Annotation, annotations_in, check_annotations
from ..metrics.retrieval.spans import Interval, length, merged, shared_length

# What a file may state of the dataset that was annotated; files that differ in it cannot be compared.
_ABOUT = ("dataset_id", "version")
RATINGS, SCORES, OVERALL = "aspect_ratings", "quality_scores", "overall_score"  # fields of an annotation

Said = Mapping[str, Annotation]  # what people said about one thing, by annotator


class Judged(NamedTuple):
    """An answer that was judged: people are compared only on the same answer."""

    query_id: str
    answer: str


@dataclass
class Annotators:
    """The annotations of several people, by query or answer and then by annotator."""

    about: dict[str, str] = field(default_factory=dict)  # dataset_id and version, if the files state them
    names: list[str] = field(default_factory=list)
    spans: dict[str, dict[str, Annotation]] = field(default_factory=dict)
    judgements: dict[Judged, dict[str, Annotation]] = field(default_factory=dict)

    @property
    def items(self) -> list[dict[str, Annotation]]:
        """The annotations of each query that was marked and of each answer that was judged."""
        return [*self.spans.values(), *self.judgements.values()]


def by_name(said: Said, part: str) -> dict[str, dict[str, Any]]:
    """Return the ratings of each aspect, or the scores of each name, by annotator."""
    values: dict[str, dict[str, Any]] = {}
    for annotator, annotation in said.items():
        for name, value in (annotation.get(part) or {}).items():
            values.setdefault(name, {})[annotator] = value
    return values


def read_annotators(paths: Sequence[str | Path], *, least: int = 2) -> Annotators:
    """Read the annotations of several files; DataError if they are by fewer people, or on two datasets."""
    documents = []
    for path in map(Path, paths):
        document = read_document(path)
        check_annotations(document, path.name)
        documents.append((path.name, document))
    return annotators_of(documents, least=least)


def annotators_of(documents: Iterable[tuple[str, Any]], *, least: int = 2) -> Annotators:
    """Return the annotations of documents, each given with the name of its file.

    The annotator of an annotation without an `annotator_id` is named after the file.
    """
    people = Annotators()
    for where, document in documents:
        _note_dataset(people, where, document)
        for annotation in annotations_in(document):
            name = str(annotation.get("annotator_id") or stem(Path(where)))
            if "citations" in annotation:
                said = people.spans.setdefault(annotation["query_id"], {})
            else:
                judged = Judged(annotation["query_id"], annotation["answer_text"])
                said = people.judgements.setdefault(judged, {})
            if name in said:
                raise DataError(
                    f"{where}: annotation {annotation['annotation_id']!r:.80}",
                    f"{name!r:.80} annotated it already.",
                    fix="Give each person an annotator_id of their own, and name each file once.",
                )
            said[name] = annotation
            if name not in people.names:
                people.names.append(name)
    if least > 1:
        _check_enough(people)
    return people


def _note_dataset(people: Annotators, where: str, document: object) -> None:
    if not isinstance(document, Mapping) or "annotations" not in document:
        return
    for name in _ABOUT:
        stated = document.get(name)
        if stated is not None and people.about.setdefault(name, stated) != stated:
            what = f"its {name} is {stated!r:.80}, that of the files before is {people.about[name]!r:.80}."
            raise DataError(where, what, fix="Agreement is measured on one version of one dataset.")


def _check_enough(people: Annotators) -> None:
    if len(people.names) < 2:
        who = (
            f"all annotations are by {people.names[0]!r:.80}" if people.names else "there are no annotations"
        )
        fix = "Agreement needs two people: name the file of another annotator as well."
        raise DataError("agreement", f"{who}.", fix=fix)
    if not any(len(said) > 1 for said in people.items):
        raise DataError(
            "agreement",
            f"no query was annotated by two of {', '.join(people.names)[:200]} in the same way.",
            fix="Do the files belong to one dataset? Of answers, only the same one can be compared.",
        )


def gold_dataset(dataset: EvaluationDataset, people: Annotators) -> InMemoryDataset:
    """Return the dataset with the settled spans as the gold citations of the samples that were annotated."""
    _check_same_dataset(people, dataset)
    gold = {
        annotation["query_id"]: {"citations": annotation["citations"]} for annotation in settled_spans(people)
    }
    samples = [
        replace(sample, metadata={**sample.metadata, **gold.get(sample.sample_id, {})}) for sample in dataset
    ]
    return InMemoryDataset(dataset.name, samples, info=dict(dataset.info), documents=dataset.documents)


def _check_same_dataset(people: Annotators, dataset: EvaluationDataset) -> None:
    """Raise DataError if the annotations cannot be those of this dataset."""
    for name, expected in people.about.items():
        stated = dataset.info.get(name)
        if stated is not None and str(stated) != expected:
            raise DataError(
                f"{dataset.name:.80}",
                f"its {name} is {stated!r:.80}, the annotations are about {expected!r:.80}.",
                fix="Use the dataset that was annotated.",
            )
    sample_ids = {sample.sample_id for sample in dataset}
    queries = dict.fromkeys([*people.spans, *(judged.query_id for judged in people.judgements)])
    missing = [query_id for query_id in queries if query_id not in sample_ids]
    if missing:
        raise DataError(
            f"{dataset.name:.80}",
            f"{len(missing)} of the {len(queries)} annotated queries are not in it, "
            f"the first is {missing[0]!r:.80}.",
            fix="Is it the ground truth of another dataset, or of another version?",
        )


# Spans that several people marked for one query: where they overlap, and what most of them marked.
#
# Spans are half-open. Two spans can overlap only in the same file and, if every span of the file has a page
# number, on the same page.

_HERE = ""  # one place at a time, so the intervals need no name of their source


class MarkedPlace(NamedTuple):
    """A file, and the page if it is known."""

    file_name: str
    page: int | None = None

    def __str__(self) -> str:
        return self.file_name if self.page is None else f"{self.file_name} p. {self.page}"


Marks = dict[str, dict[MarkedPlace, list[Interval]]]  # by annotator and place: disjoint, in order


def marks_of(said: Said) -> Marks:
    """Return what each annotator of a query marked; overlaps of their own spans count once."""
    place_of = _place_finder(said)
    marks: Marks = {}
    for name, annotation in said.items():
        pieces: dict[MarkedPlace, list[Interval]] = {}
        for citation in annotation["citations"]:
            pieces.setdefault(place_of(citation), []).append((citation["start_char"], citation["end_char"]))
        marks[name] = {
            place: merged((_HERE, span) for span in spans).get(_HERE, []) for place, spans in pieces.items()
        }
    return marks


def _place_finder(said: Said) -> Callable[[Annotation], MarkedPlace]:
    """Return a function for the place of a citation, with its page only if all spans in the file have one."""
    citations = [citation for annotation in said.values() for citation in annotation["citations"]]
    without_page = {each["file_name"] for each in citations if each.get("page_number") is None}

    def place_of(citation: Annotation) -> MarkedPlace:
        file_name = citation["file_name"]
        return MarkedPlace(file_name, None if file_name in without_page else citation["page_number"])

    return place_of


def span_agreement(marks: Marks) -> dict[MarkedPlace | None, float]:
    """Return the mean character Jaccard over pairs of annotators, per place that one of a pair marked.

    Two people who both marked nothing agree: 1.0, with None as the place.
    """
    values: dict[MarkedPlace | None, list[float]] = {}
    for one, other in combinations(marks.values(), 2):
        if not one and not other:
            values.setdefault(None, []).append(1.0)
        for place in [*one, *(place for place in other if place not in one)]:
            values.setdefault(place, []).append(_jaccard(one.get(place, []), other.get(place, [])))
    return {place: fmean(each) for place, each in values.items()}


def _jaccard(one: list[Interval], other: list[Interval]) -> float:
    first, second = {_HERE: one}, {_HERE: other}
    both = shared_length(first, second)
    return both / (length(first) + length(second) - both)


def marked_by(marks: Marks, least: int) -> Iterator[tuple[MarkedPlace, Interval]]:
    """Yield the stretches of text that at least `least` annotators marked, in order."""
    places = dict.fromkeys(place for marked in marks.values() for place in marked)
    for place in places:
        steps: Counter[int] = Counter()
        for marked in marks.values():
            for first, end in marked.get(place, []):
                # One annotator more from `first` on, one fewer from `end` on.
                steps[first] += 1
                steps[end] -= 1
        people, start = 0, 0
        for position in sorted(steps):
            before, people = people, people + steps[position]
            if before < least <= people:
                start = position
            elif people < least <= before:
                yield place, (start, position)


# One set of spans out of several: what more than half of three or more people marked, or what one of two did.

SETTLED = "settled"


def settled_spans(people: Annotators) -> list[Annotation]:
    """Return one annotation for each query that was marked, in order.

    Two people cannot outvote each other: where they differ, their spans are united, and
    `metadata["needs_decision"]` is true. It is also true if three or more have no majority.
    """
    return [_settled(query_id, said) for query_id, said in people.spans.items()]


def _settled(query_id: str, said: Said) -> Annotation:
    marks = marks_of(said)
    is_majority = len(said) >= 3
    differ = any(value < 1.0 for value in span_agreement(marks).values())
    if differ:
        spans = marked_by(marks, len(said) // 2 + 1 if is_majority else 1)
        citations = [_citation(place, span, said) for place, span in spans]
    else:  # keep the first annotator's boundaries of spans that touch
        citations = [dict(citation) for citation in next(iter(said.values()))["citations"]]
    needs_decision = differ and (not is_majority or not citations)
    return {
        "annotation_id": f"{SETTLED}_{query_id}",
        "query_id": query_id,
        "annotator_id": SETTLED,
        "citations": citations,
        "metadata": {"annotators": list(said), "needs_decision": needs_decision},
    }


def _citation(place: MarkedPlace, span: Interval, said: Said) -> Annotation:
    """Return a span, with its text if a citation that covers it has the text."""
    place_of, (start, end) = _place_finder(said), span
    citation: Annotation = {"file_name": place.file_name}
    if place.page is not None:
        citation["page_number"] = place.page
    citation |= {"start_char": start, "end_char": end}
    for source in (each for annotation in said.values() for each in annotation["citations"]):
        first, last, text = source["start_char"], source["end_char"], source.get("text", "")
        # A text of another length was shortened: it cannot be aligned with the positions.
        if place_of(source) == place and first <= start and end <= last and len(text) == last - first:
            return {**citation, "text": text[start - first : end - first]}
    return citation
