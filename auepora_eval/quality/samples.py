"""Checks of samples: ids, empty or repeated questions, empty prompts, references, labels, declared size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ..core.scores import cluster_of
from ..core.types import PAIR, EvaluationSample, gold_documents
from ..errors import ScoringError, did_you_mean
from ..metrics.robustness.rejection import is_answerable
from ..read.messages import HISTORY
from ..read.tasks import CITATIONS, FIELDS_DIFFER, differs
from ..text.content_words import content_words, numbers, without_marks
from ..text.label_terms import FHRI_SCENARIO, SCENARIO_NAMES, scenario_id
from ..text.refusal import declines
from ..text.tokens import has_ideographs, squad_normalised, stemmed_word, words
from .view import DatasetView, QualityIssue

# Words that do not change what is asked; "who", "not", "before", "from" and "to" do.
_EMPTY_WORDS = frozenset(
    "a an the is are was were be been being do does did of please can could would you tell me us".split()
)


def check_query_uniqueness(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield ids that more than one sample has."""
    for sample_id, places in view.places_of_ids.items():
        if len(places) > 1 and sample_id:
            others = ", ".join(view.places[place] for place in places[1:6])
            what = f"duplicate query id: {sample_id!r:.80} is used {len(places)} times, again at {others}."
            fix = "Scores are matched by id: give each sample its own."
            yield view.issue("error", "query_uniqueness", what, place=places[0], fix=fix)


def check_empty_queries(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield samples that ask nothing."""
    for place, sample in enumerate(view.samples):
        if not any(character.isalnum() for character in sample.query):
            fix = "Write the question, or drop the sample."
            yield view.issue("error", "empty_queries", "the query is empty.", place=place, fix=fix)


def check_prompts(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield records of a split with an empty prompt, without contexts, or with two versions of a field."""
    for place, sample in enumerate(view.samples):
        split = sample.metadata.get("split")
        split = split if isinstance(split, Mapping) else {}
        prompt = split.get("rag_prompt")
        if isinstance(prompt, str) and not prompt.strip():
            fix = "Add it: a model that is run on the prompt is asked nothing."
            yield view.issue("warning", "prompts", "the rag_prompt is empty.", place=place, fix=fix)
        if split.get("contexts") == [] and sample.labels.get("answerable") is not False:
            fix = "Add the passages that the answer comes from, or label it answerable: false."
            yield view.issue("warning", "prompts", "there are no contexts.", place=place, fix=fix)
        differing = sample.metadata.get(FIELDS_DIFFER)
        for pair in differing if isinstance(differing, list) else ():
            yield view.issue("warning", "prompts", f"{differs(*pair)}.", place=place, fix="Keep one of them.")


def check_repeated_questions(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield questions that an earlier sample asks in the same content words.

    Variants of one question (`labels.variant_of`, `metadata.cluster`) are meant to be alike.
    """
    first_places: dict[tuple[str, ...], int] = {}
    for place, sample in enumerate(view.samples):
        key = _key_words(sample.query)
        # What a question of a conversation means depends on the turns before it.
        if not key or HISTORY in sample.metadata:
            continue
        first = view.samples[first_places.setdefault(key, place)]
        if first is sample or not _family(first).isdisjoint(_family(sample)):
            continue
        message = f"asks the same as {first.sample_id!r:.80}: {first.query!r:.90}"
        fix = "Keep one of them, or mark the other by labels.variant_of."
        answers = _answers(first), _answers(sample)
        if all(answers) and answers[0].isdisjoint(answers[1]):
            message += ", but has another reference"
            fix = "Say in the question how they differ, or correct the reference."
        yield view.issue("warning", "near_duplicates", f"{message}.", place=place, fix=fix)


def _key_words(query: str) -> tuple[str, ...]:
    *others, last = words(query) or [""]
    # The last word is never empty: "vitamin a" is not "vitamins".
    kept = [word for word in others if word not in _EMPTY_WORDS] + [last] * bool(last)
    return tuple(map(stemmed_word, kept))


def _family(sample: EvaluationSample) -> set[str]:
    """Return the names that a sample shares with its variants."""
    base = sample.labels.get("variant_of", sample.sample_id)
    return {str(base), cluster_of(sample) or str(base)}


def _answers(sample: EvaluationSample) -> set[str]:
    return {flat for text in _references(sample) if (flat := squad_normalised(text))}


def _references(sample: EvaluationSample) -> list[str]:
    """Return the reference and its alternatives."""
    if sample.reference_answer is None:
        return []
    alternatives = sample.reference_answer.metadata.get("alternatives")
    texts = [sample.reference_answer.text, *(alternatives if isinstance(alternatives, list) else ())]
    return [text for text in texts if isinstance(text, str)]


def check_declared_size(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield a size in the description that is not that of the dataset."""
    size, count = view.declared.get("size"), len(view.samples)
    if size is not None and (isinstance(size, bool) or size != count):
        message = f"size is declared as {size!r:.40}, but there are {count} queries."
        fix = "Correct it, or look for what is missing."
        yield QualityIssue("warning", "declared", message, where="$.metadata.size", fix=fix)


# Values of labels that no metric reads.

# The values of labels.scenario that metrics ask for by name; any other is a kind of noise, which needs a base
# question (labels.variant_of) or a level (labels.noise_ratio) to be contrasted with.
SCENARIOS = ("base", "closed_book", "counterfactual", "unanswerable")


def check_label_values(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield values that no metric can use: an unknown base question or scenario, a ratio beyond 0 to 1."""
    contrasted = {
        str(sample.labels.get("scenario"))
        for sample in view.samples
        if sample.labels.get("variant_of") is not None or sample.labels.get("noise_ratio") is not None
    }
    pairs = Counter(str(sample.labels.get(PAIR)) for sample in view.samples)
    for place, sample in enumerate(view.samples):
        faults = [*_unusable(sample, view, contrasted), *_unusable_of_label_set(sample.labels, pairs)]
        for name, message, fix in faults:
            yield view.issue("warning", "label_values", message, place=place, part=f"labels.{name}", fix=fix)


def _unusable(
    sample: EvaluationSample, view: DatasetView, contrasted: set[str]
) -> Iterator[tuple[str, str, str]]:
    labels = sample.labels
    base, scenario = labels.get("variant_of"), labels.get("scenario")
    answerable, ratio = labels.get("answerable"), labels.get("noise_ratio")
    fix = "Correct the id: variants are scored beside their base question."
    if base is not None and str(base) == sample.sample_id:
        yield "variant_of", "the sample is a variant of itself.", fix
    elif base is not None and str(base) not in view.places_of_ids:
        yield "variant_of", f"its base question {base!r:.60} is not the id of a sample.", fix
    if scenario is not None and scenario not in SCENARIOS and str(scenario) not in contrasted:
        fix = f"Write {', '.join(SCENARIOS)}, or add variant_of or noise_ratio to a kind of noise."
        yield "scenario", f"no metric reads the scenario {scenario!r:.60}.", fix
    if answerable is not None and not isinstance(answerable, bool):
        yield "answerable", f"answerable is {answerable!r:.60}, not true or false.", "Change it."
    elif answerable is True and scenario == "unanswerable":
        yield "answerable", "answerable is true, but the scenario is 'unanswerable'.", "Change one of them."
    is_share = isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 <= ratio <= 1
    if ratio is not None and not is_share:
        yield "noise_ratio", f"noise_ratio is {ratio!r:.60}, not a number from 0 to 1.", "Change it."


def _unusable_of_label_set(
    labels: Mapping[str, object], pairs: Mapping[str, int]
) -> Iterator[tuple[str, str, str]]:
    """Yield what `labels score` cannot use: half of a pair, a scenario without a threshold."""
    if PAIR in labels and pairs[str(labels[PAIR])] == 1:
        what = f"no other sample has the pair {labels[PAIR]!r:.60}."
        yield PAIR, what, "Add the other answer of the pair, or correct the id."
    scenario = labels.get(FHRI_SCENARIO)
    if isinstance(scenario, str) and scenario_id(scenario) is None:
        fix = did_you_mean(scenario, SCENARIO_NAMES, "Give its threshold: labels score --thresholds FILE.")
        yield FHRI_SCENARIO, f"the scenario {scenario!r:.60} has no threshold.", fix


# Checks of reference answers: given away by the question, or not supported by the gold documents.
#
# Both go by words. Support is the share of the reference's content words (by their stems) and numbers that
# are in its gold documents: a worked-out number or a paraphrase looks unsupported, a wrong sentence made of
# the document's own words looks supported. Read what they list; do not delete by it.

# Measured on references with their own gold documents (false alarms) and with another sample's (caught):
# CLAP NQ 0 of 300 and all, RGB 0 of 29 and all, PubMedQA's conclusions 9% and all, FinanceBench, where many
# answers are worked out, 16% and 90%. At 0.5 a third or more of the latter two would be listed.
MIN_SUPPORT = 0.35
# Of a reference of one or two words, one that the documents write otherwise ("two", "2") is half of it.
FEWEST_WORDS = 3
# References of such a word alone are in many questions without being given away.
_VERDICTS = frozenset("yes no true false maybe none unknown both neither".split())
# Questions that offer their answers: the right one is in them by intent.
_CHOICE = re.compile(
    r"\b(?:or|versus|vs|whether|either|between|which of|is it true|of the (?:two|three|following)"
    r"|oder|zwischen|ou|entre|ovvero|oppure)\b|还是|還是"
)


class Support(NamedTuple):
    """The share of a reference's words that are in its gold documents, and the words that are not."""

    share: float
    missing: tuple[str, ...]


def check_answer_in_question(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield questions that hold their own answer: a system that repeats the question looks right."""
    for place, sample in enumerate(view.samples):
        reference = sample.reference_answer
        if sample.labels.get("task_type") == CITATIONS:
            continue  # what is asked for is the source of a statement
        if reference is not None and _is_judged(sample) and _gives_away(sample.query, reference.text.strip()):
            message = f"the words of the reference {reference.text.strip()!r:.60} are all in the question."
            fix = "Ask for something that the question does not say."
            yield view.issue("warning", "answer_in_question", message, place=place, fix=fix)


def _gives_away(query: str, reference: str) -> bool:
    content = _content(reference)
    if not content or set(content) <= _VERDICTS or _CHOICE.search(query.lower()):
        return False
    if has_ideographs(reference):
        return reference.strip(" 。.") in query
    if len(content) == 1 and (content[0].isdigit() or len(content[0]) < 3):
        return False  # a lone number is in many questions without being their answer
    if f" {' '.join(words(reference))} " in f" {' '.join(words(query))} ":
        return True
    return len(content) >= FEWEST_WORDS and not _missing(content, _forms(query))


def check_reference_support(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield references whose words are, for the most part, not in their gold documents."""
    for place, sample in enumerate(view.samples):
        support = reference_support(sample)
        if support is not None and support.share < MIN_SUPPORT:
            missing = ", ".join(support.missing[:6])
            share = f"{support.share:.0%} of the reference's words are in its gold documents"
            fix = "Look whether the right documents are gold, and whether the reference says what they say."
            what = f"{share}; not there: {missing}."
            yield view.issue("warning", "reference_support", what, place=place, fix=fix)


def reference_support(sample: EvaluationSample, fewest_words: int = FEWEST_WORDS) -> Support | None:
    """Return the support of a sample's reference, or of its best alternative; None if it is not known.

    It is not known without a reference or the gold documents' texts, for unanswerable questions and for
    references that decline, say yes or no, or have fewer content words and numbers than `fewest_words`.
    """
    reference, documents = sample.reference_answer, gold_documents(sample)
    if reference is None or not _is_judged(sample):
        return None
    if not documents or not all(doc.text.strip() for doc in documents):
        return None
    contents = [_content(text) for text in _references(sample)]
    # A long alternative does not make up for a short reference, which is not judged.
    if len(contents[0]) < max(1, fewest_words):
        return None
    titles = [title for doc in documents if isinstance(title := doc.metadata.get("title"), str)]
    forms = frozenset().union(*map(_forms, [*(doc.text for doc in documents), *titles]))
    judged = [content for content in contents if len(content) >= fewest_words]
    lacking = [(content, _missing(content, forms)) for content in judged]
    best = max((Support(1 - len(no) / len(all_), no) for all_, no in lacking), key=lambda one: one.share)
    return None if best.missing and declines(reference) else best


def _missing(content: tuple[str, ...], forms: frozenset[str]) -> tuple[str, ...]:
    return tuple(word for word in content if word not in forms and stemmed_word(word) not in forms)


# Samples of one document often follow each other. A text of 1,000 words takes tens of KB.
@lru_cache(maxsize=1024)
def _forms(text: str) -> frozenset[str]:
    """Return the words of a text as they are and by their stems, and its numbers in one spelling."""
    distinct = frozenset(words(text))
    return distinct.union(map(stemmed_word, distinct), numbers(text))


def _content(text: str) -> tuple[str, ...]:
    """Return content words without digits, then the numbers in one spelling, each once."""
    plain = without_marks(text)
    content = [word for word in content_words(plain) if not any(c.isdigit() for c in word)]
    return tuple(dict.fromkeys([*content, *numbers(plain)]))


def _is_judged(sample: EvaluationSample) -> bool:
    """Return whether a sample may have an answer; labels that contradict each other say nothing."""
    try:
        return is_answerable(sample) is not False
    except ScoringError:
        return True
