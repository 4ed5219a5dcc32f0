"""Read the annotations of several people on one dataset, and settle them into one annotation per query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.types import EvaluationSample
from ..errors import DataError
from ..io.documents import read_document
from ..io.files import stem
from ..io.ground_truth import Annotation, annotations_in, check_annotations, with_annotations
from ..metrics.retrieval.spans import Interval, length, merged, shared_length
from ..text.document_names import DocumentName, DocumentNames

# What a file may state of the dataset that was annotated; files that differ in it cannot be compared.
_ABOUT = ("dataset_id", "version")
RATINGS, SCORES, OVERALL = "aspect_ratings", "quality_scores", "overall_score"  # fields of an annotation


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

    def each(self) -> Iterator[tuple[str, Annotation]]:
        """Yield each annotator with each annotation, those of one query together."""
        for said in self.items:
            yield from said.items()

    @property
    def query_ids(self) -> list[str]:
        return list(dict.fromkeys([*self.spans, *(judged.query_id for judged in self.judgements)]))


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
    stated_in: dict[str, str] = {}
    # By the identity of an annotation: ids need not be unique across files.
    places: dict[int, str] = {}
    for where, document in documents:
        _note_dataset(people, stated_in, where, document)
        for annotation in annotations_in(document):
            name = str(annotation.get("annotator_id") or stem(Path(where)))
            place = f"{where}: annotation {annotation['annotation_id']!r:.80}"
            said = _said(people, annotation)
            if name in said:
                raise DataError(
                    place,
                    f"{name!r:.80} annotated it already, in {places[id(said[name])]}.",
                    fix="Give each person an annotator_id of their own, and name each file once.",
                )
            said[name] = annotation
            places[id(annotation)] = place
            if name not in people.names:
                people.names.append(name)
    if least > 1:
        _check_enough(people)
    return people


def check_same_dataset(people: Annotators, dataset: EvaluationDataset) -> None:
    """Raise DataError if the annotations cannot be those of this dataset."""
    sample_ids = {sample.sample_id for sample in dataset}
    for name, expected in people.about.items():
        stated = dataset.info.get(name)
        if stated is not None and str(stated) != expected:
            raise DataError(
                f"{dataset.name:.80}",
                f"its {name} is {stated!r:.80}, the annotations are about {expected!r:.80}.",
                fix="Use the dataset that was annotated.",
            )
    missing = [query_id for query_id in people.query_ids if query_id not in sample_ids]
    if missing:
        raise DataError(
            f"{dataset.name:.80}",
            f"{len(missing)} of the {len(people.query_ids)} annotated queries are not in it, "
            f"the first is {missing[0]!r:.80}.",
            fix="Is it the ground truth of another dataset, or of another version?",
        )


def file_names_of(dataset: EvaluationDataset) -> Callable[[str], str]:
    """Return a function that maps a file name to its document, so that two spellings are the same file."""
    documents = list(dataset.documents)
    names = DocumentNames(
        DocumentName(
            each.doc_id, str(each.metadata.get("file_path") or ""), str(each.metadata.get("title") or "")
        )
        for each in documents
    )

    def document_id(file_name: str) -> str:
        place = names.place_of(file_name)
        return file_name if place is None else documents[place].doc_id

    return document_id


def _said(people: Annotators, annotation: Annotation) -> dict[str, Annotation]:
    """Return the annotations of the same query or answer so far, by annotator."""
    query_id = annotation["query_id"]
    if "citations" in annotation:
        return people.spans.setdefault(query_id, {})
    return people.judgements.setdefault(Judged(query_id, annotation["answer_text"]), {})


def _note_dataset(people: Annotators, stated_in: dict[str, str], where: str, document: object) -> None:
    if not isinstance(document, Mapping) or "annotations" not in document:
        return
    for name in _ABOUT:
        stated = document.get(name)
        if stated is None:
            continue
        if people.about.setdefault(name, stated) != stated:
            raise DataError(
                where,
                f"its {name} is {stated!r:.80}, that of {stated_in[name]} is {people.about[name]!r:.80}.",
                fix="Agreement is measured on one version of one dataset.",
            )
        stated_in.setdefault(name, where)


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


def marks_of(said: Mapping[str, Annotation], file_of: Callable[[str], str] = str) -> Marks:
    """Return what each annotator of a query marked; overlaps of their own spans count once."""
    place_of = place_finder(said, file_of)
    marks: Marks = {}
    for name, annotation in said.items():
        pieces: dict[MarkedPlace, list[Interval]] = {}
        for citation in annotation["citations"]:
            span = (citation["start_char"], citation["end_char"])
            pieces.setdefault(place_of(citation), []).append(span)
        marks[name] = {
            place: merged((_HERE, span) for span in spans).get(_HERE, []) for place, spans in pieces.items()
        }
    return marks


def place_finder(
    said: Mapping[str, Annotation], file_of: Callable[[str], str] = str
) -> Callable[[Annotation], MarkedPlace]:
    """Return a function for the place of a citation, with its page only if all spans in the file have one."""
    citations = [citation for annotation in said.values() for citation in annotation["citations"]]
    without_page = {file_of(each["file_name"]) for each in citations if each.get("page_number") is None}

    def place_of(citation: Annotation) -> MarkedPlace:
        file_name = file_of(citation["file_name"])
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


def marked_by(marks: Marks, least: int) -> Iterator[tuple[MarkedPlace, Interval]]:
    """Yield the stretches of text that at least `least` annotators marked, in order."""
    places = dict.fromkeys(place for marked in marks.values() for place in marked)
    for place in places:
        steps: dict[int, int] = {}
        for marked in marks.values():
            for first, end in marked.get(place, []):
                # One annotator more from `first` on, one fewer from `end` on.
                steps[first] = steps.get(first, 0) + 1
                steps[end] = steps.get(end, 0) - 1
        people, start = 0, 0
        for position in sorted(steps):
            before, people = people, people + steps[position]
            if before < least <= people:
                start = position
            elif people < least <= before:
                yield place, (start, position)


def _jaccard(one: list[Interval], other: list[Interval]) -> float:
    first, second = {_HERE: one}, {_HERE: other}
    both = shared_length(first, second)
    return both / (length(first) + length(second) - both)


# One annotation out of several: the majority, and what a person still has to decide.
#
# Three or more people settle a query by majority: the characters that more than half of them marked, the
# rating that more than half gave, the median of each score. Two people cannot outvote each other: their spans
# are united and their scores averaged, a rating on which they differ is left out, and if they differ at all
# `metadata["needs_adjudication"]` is true. It is also true if three or more have no majority. An annotation
# by one person alone is kept as it is.

ADJUDICATED = "adjudicated"
_MEANS = ("relevance_score", "annotation_confidence", "confidence_score")


def adjudicated(people: Annotators, *, file_of: Callable[[str], str] = str) -> list[Annotation]:
    """Return one annotation for each query that was marked and each answer that was judged, in order."""
    settled = [_settled_spans(query_id, said, file_of) for query_id, said in people.spans.items()]
    settled += [_settled_judgement(judged, said) for judged, said in people.judgements.items()]
    return [
        {"annotation_id": f"{ADJUDICATED}_{number:04}", **annotation}
        for number, annotation in enumerate(settled, start=1)
    ]


def _settled_spans(
    query_id: str, said: Mapping[str, Annotation], file_of: Callable[[str], str]
) -> Annotation:
    marks = marks_of(said, file_of)
    agreed = span_agreement(marks)
    differ = any(value < 1.0 for value in agreed.values())
    if not differ:  # keep the first annotator's boundaries of spans that touch
        citations = [dict(citation) for citation in next(iter(said.values()))["citations"]]
        settled_by = _alike(said)
    else:
        majority = len(said) >= 3
        least = len(said) // 2 + 1 if majority else 1
        place_of = place_finder(said, file_of)
        spans = marked_by(marks, least)
        citations = [_citation(place, span, said, place_of) for place, span in spans]
        settled_by = "majority" if majority else "union"
    metadata = _metadata(
        said,
        settled_by,
        open_questions=["citations"] if differ and (settled_by == "union" or not citations) else [],
        distance=1 - min(agreed.values(), default=1.0),
    )
    return {"query_id": query_id, "annotator_id": ADJUDICATED, "citations": citations, "metadata": metadata}


def _citation(
    place: MarkedPlace,
    span: tuple[int, int],
    said: Mapping[str, Annotation],
    place_of: Callable[[Annotation], MarkedPlace],
) -> Annotation:
    """Return a span with the text and the mean scores of the citations that overlap it."""
    start, end = span
    sources = [
        citation
        for annotation in said.values()
        for citation in annotation["citations"]
        if place_of(citation) == place and citation["start_char"] < end and start < citation["end_char"]
    ]
    citation: Annotation = {"file_name": sources[0]["file_name"]}
    if place.page is not None:
        citation["page_number"] = place.page
    citation |= {"start_char": start, "end_char": end}
    text = _text(sources, start, end)
    if text is not None:
        citation["text"] = text
    for name in _MEANS:
        values = [source[name] for source in sources if name in source]
        if values:
            citation[name] = round(fmean(values), 6)
    return citation


def _text(sources: list[Annotation], start: int, end: int) -> str | None:
    """Return the text of a span from the texts of others; None if they differ or do not cover it."""
    letters: dict[int, str] = {}
    for source in sources:
        text, first = source.get("text", ""), source["start_char"]
        # The text was shortened or is not the marked one: it cannot be aligned with the positions.
        if len(text) != source["end_char"] - first:
            continue
        for position, letter in enumerate(text, start=first):
            if letters.setdefault(position, letter) != letter:
                return None
    if end - start > len(letters) or any(position not in letters for position in range(start, end)):
        return None
    return "".join(letters[position] for position in range(start, end))


def _settled_judgement(judged: Judged, said: Mapping[str, Annotation]) -> Annotation:
    scores, open_scores, distances = _settled_scores(said)
    ratings, open_ratings, rating_distances = _settled_ratings(said)
    annotation: Annotation = {
        "query_id": judged.query_id,
        "annotator_id": ADJUDICATED,
        "answer_text": judged.answer,
    }
    if scores:
        annotation[SCORES] = scores
    overall = [one[OVERALL] for one in said.values() if one.get(OVERALL) is not None]
    if overall:
        # An overall score is the mean of its parts; without parts it is settled like the others.
        centre = fmean(scores.values()) if scores else _centre(overall)
        annotation[OVERALL] = round(centre, 6)
        distances.append(max(overall) - min(overall))
        open_scores += [OVERALL] if len(overall) == 2 and len(set(overall)) > 1 and not scores else []
    if ratings:
        annotation[RATINGS] = ratings
    feedback = _feedback(said)
    if feedback:
        annotation["feedback"] = feedback
    distance = max([*distances, *rating_distances], default=0.0)
    settled_by = _alike(said)
    if distance > 0:
        settled_by = "majority" if len(said) >= 3 else "mean"
    annotation["metadata"] = _metadata(said, settled_by, open_scores + open_ratings, distance)
    return annotation


def _settled_scores(said: Mapping[str, Annotation]) -> tuple[dict[str, float], list[str], list[float]]:
    """Return the scores, the names of those that are open, and the range of each."""
    scores, open_scores, distances = {}, [], []
    by_name: dict[str, list[float]] = {}
    for one in said.values():
        for name, score in (one.get(SCORES) or {}).items():
            by_name.setdefault(name, []).append(score)
    for name, values in by_name.items():
        scores[name] = round(_centre(values), 6)
        distances.append(max(values) - min(values))
        if len(values) < 3 and len(set(values)) > 1:
            open_scores.append(f"{SCORES}.{name}")
    return scores, open_scores, distances


def _centre(values: list[float]) -> float:
    return median(values) if len(values) >= 3 else fmean(values)


def _settled_ratings(said: Mapping[str, Annotation]) -> tuple[dict[str, str], list[str], list[float]]:
    ratings, open_ratings, distances = {}, [], []
    votes: dict[str, Counter[str]] = {}
    for one in said.values():
        for name, rating in (one.get(RATINGS) or {}).items():
            votes.setdefault(name, Counter())[rating] += 1
    for name, counts in votes.items():
        rating, most = counts.most_common(1)[0]
        distances.append(1 - most / counts.total())
        if 2 * most > counts.total():
            ratings[name] = rating
        else:
            open_ratings.append(f"{RATINGS}.{name}")
    return ratings, open_ratings, distances


def _feedback(said: Mapping[str, Annotation]) -> dict[str, list[str]]:
    """Return the remarks of all annotators, each once."""
    remarks: dict[str, dict[str, None]] = {}
    for one in said.values():
        for kind, texts in (one.get("feedback") or {}).items():
            if isinstance(texts, list):
                remarks.setdefault(kind, {}).update(dict.fromkeys(map(str, texts)))
    return {kind: list(texts) for kind, texts in remarks.items()}


def _alike(said: Mapping[str, Annotation]) -> str:
    return "agreement" if len(said) > 1 else "single annotator"


def _metadata(
    said: Mapping[str, Annotation], settled_by: str, open_questions: list[str], distance: float
) -> Annotation:
    metadata: Annotation = {
        "needs_adjudication": bool(open_questions),
        "settled_by": settled_by,
        "annotators": list(said),
        "distance": round(distance, 6),
    }
    if open_questions:
        metadata["open"] = open_questions
    return metadata


# Annotations added to the samples of the dataset that they are about.


def merge_annotations(dataset: EvaluationDataset, people: Annotators) -> InMemoryDataset:
    """Return the dataset with every annotation on its sample, and with the settled spans as gold citations.

    Annotations are in `metadata["annotations"]`; if two have the same id, the later one gets its annotator's
    name in front. `metadata["citations"]` is set only if a sample has none.
    """
    check_same_dataset(people, dataset)
    return gold_dataset(with_annotations(dataset, with_own_ids(people)), people, keep_own=True)


def gold_dataset(
    dataset: EvaluationDataset, people: Annotators, *, keep_own: bool = False
) -> InMemoryDataset:
    """Return the dataset with the settled spans as the gold citations of the samples that were annotated.

    With `keep_own`, citations that a sample has stay, and a sample without a settled span gets none.
    """
    check_same_dataset(people, dataset)
    gold = {
        annotation["query_id"]: annotation["citations"]
        for annotation in adjudicated(people, file_of=file_names_of(dataset))
        if "citations" in annotation and (annotation["citations"] or not keep_own)
    }

    def with_gold(sample: EvaluationSample) -> EvaluationSample:
        if sample.sample_id not in gold or (keep_own and sample.metadata.get("citations")):
            return sample
        return replace(sample, metadata={**sample.metadata, "citations": gold[sample.sample_id]})

    samples = [with_gold(sample) for sample in dataset]
    return InMemoryDataset(dataset.name, samples, info=dict(dataset.info), documents=dataset.documents)


def with_own_ids(people: Annotators) -> list[Annotation]:
    """Return all annotations, each with a unique id and the name of its annotator."""
    seen: set[str] = set()
    unique = []
    for name, annotation in people.each():
        own = annotation["annotation_id"]
        number = 1
        while own in seen:
            suffix = "" if number == 1 else f"_{number}"
            own = f"{name}_{annotation['annotation_id']}{suffix}"
            number += 1
        seen.add(own)
        unique.append({**annotation, "annotation_id": own, "annotator_id": name})
    return unique
