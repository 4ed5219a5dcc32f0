"""One annotation out of several: what the majority says, and what a person still has to decide.

Three or more people settle a query by majority: the characters that more than half of them marked, the rating
that more than half gave, the median of each score. Two people cannot outvote each other: their spans are
united and their scores averaged, a rating on which they differ is left out, and wherever they differ at all
`metadata["needs_adjudication"]` is true. So it is where three or more have no majority. What one person alone
annotated is taken over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from statistics import fmean, median
from typing import Any

from ..io.ground_truth import Annotation
from .agreement import OVERALL, RATINGS, SCORES
from .annotators import Annotators, Judged
from .marked_spans import MarkedPlace, marked_by, marks_of, place_finder, span_agreement

ADJUDICATED = "adjudicated"
_MEANS = ("relevance_score", "annotation_confidence", "confidence_score")


def adjudicated(people: Annotators, *, file_of: Callable[[str], str] = str) -> list[Annotation]:
    """One annotation for each query that was marked and each answer that was judged, in their order."""
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
    if not differ:  # as the first of them wrote it: nobody's boundaries are lost
        citations = [dict(citation) for citation in next(iter(said.values()))["citations"]]
        settled_by = _alike(said)
    else:
        majority = len(said) >= 3
        least = len(said) // 2 + 1 if majority else 1
        place_of = place_finder(said, file_of)
        found = marked_by(marks, least)
        citations = [_citation(place, span, said, place_of) for place, span in found]
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
    """A span with what the citations that it was made of say of it."""
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
    """The text of a span, put together from the texts of others; None if they do not tell all of it alike."""
    known: dict[int, str] = {}
    for source in sources:
        text, first = source.get("text", ""), source["start_char"]
        if len(text) != source["end_char"] - first:
            continue
        for position, letter in enumerate(text, start=first):
            if known.setdefault(position, letter) != letter:
                return None
    if end - start > len(known) or any(position not in known for position in range(start, end)):
        return None
    return "".join(known[position] for position in range(start, end))


def _settled_judgement(judged: Judged, said: Mapping[str, Annotation]) -> Annotation:
    scores, open_scores, distances = _settled_scores(said)
    ratings, open_ratings, rating_distances = _settled_ratings(said)
    annotation: Annotation = {
        "query_id": judged.query_id,
        "annotator_id": ADJUDICATED,
        "answer_text": judged.answer,
        SCORES: scores,
    }
    overall = [one[OVERALL] for one in said.values() if one.get(OVERALL) is not None]
    if overall:
        # The mean of its parts, which is what an overall score is; without parts, as the others are settled.
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
    settled_by = ("majority" if len(said) >= 3 else "mean") if distance > 0 else _alike(said)
    annotation["metadata"] = _metadata(said, settled_by, open_scores + open_ratings, distance)
    return annotation


def _settled_scores(said: Mapping[str, Annotation]) -> tuple[dict[str, float], list[str], list[float]]:
    """The scores, those that are open, and how far apart people were on each."""
    scores, open_scores, distances = {}, [], []
    for name in dict.fromkeys(name for one in said.values() for name in one[SCORES]):
        values = [one[SCORES][name] for one in said.values() if name in one[SCORES]]
        scores[name] = round(_centre(values), 6)
        distances.append(max(values) - min(values))
        if len(values) < 3 and len(set(values)) > 1:
            open_scores.append(f"{SCORES}.{name}")
    return scores, open_scores, distances


def _centre(values: list[float]) -> float:
    return median(values) if len(values) >= 3 else fmean(values)


def _settled_ratings(said: Mapping[str, Annotation]) -> tuple[dict[str, str], list[str], list[float]]:
    ratings, open_ratings, distances = {}, [], []
    for name in dict.fromkeys(name for one in said.values() for name in one.get(RATINGS) or {}):
        given = Counter(one[RATINGS][name] for one in said.values() if name in (one.get(RATINGS) or {}))
        rating, votes = given.most_common(1)[0]
        distances.append(1 - votes / given.total())
        if 2 * votes > given.total():
            ratings[name] = rating
        else:
            open_ratings.append(f"{RATINGS}.{name}")
    return ratings, open_ratings, distances


def _feedback(said: Mapping[str, Annotation]) -> dict[str, Any]:
    """Everybody's remarks, each once."""
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
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "needs_adjudication": bool(open_questions),
        "settled_by": settled_by,
        "annotators": list(said),
        "distance": round(distance, 6),
    }
    if open_questions:
        metadata["open"] = open_questions
    return metadata
