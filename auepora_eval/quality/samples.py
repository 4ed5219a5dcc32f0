"""Checks of samples: ids, empty or repeated questions, empty prompts, references, labels, declared counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ..core.scores import cluster_of
from ..core.types import PAIR, EvaluationSample, gold_documents
from ..errors import ScoringError, did_you_mean
from ..read.messages import HISTORY
from ..read.tasks import EMPTY_PROMPT, FIELDS_DIFFER, NO_CONTEXTS, differs, missing_parts
from ..text.label_terms import FHRI_SCENARIO, SCENARIO_NAMES, scenario_id
from .view import DatasetView, QualityIssue

# Words that do not change what is asked; "who", "not", "before", "from" and "to" do.
_EMPTY_WORDS = frozenset(
    "a an the is are was were be been being do does did of please can could would you tell me us".split()
)
_AS_DECLARED = "Correct it, or look for what is missing."


def check_query_uniqueness(view: DatasetView) -> Iterator[QualityIssue]:
    """Ids that more than one sample has."""
    for sample_id, places in view.places_of_ids.items():
        if len(places) > 1 and sample_id:
            others = ", ".join(view.where(place) for place in places[1:6])
            yield view.issue(
                "error",
                "query_uniqueness",
                f"duplicate query id: {sample_id!r:.80} is used {len(places)} times, again at {others}.",
                place=places[0],
                fix="Scores are matched by id: give each sample its own.",
            )


def check_empty_queries(view: DatasetView) -> Iterator[QualityIssue]:
    """Samples that ask nothing."""
    for place, sample in enumerate(view.samples):
        if not any(character.isalnum() for character in sample.query):
            what = "the query is empty." if not sample.query.strip() else "the query has no word in it."
            fix = "Write the question, or drop the sample."
            yield view.issue("error", "empty_queries", what, place=place, fix=fix)


def check_prompts(view: DatasetView) -> Iterator[QualityIssue]:
    """Records with an empty prompt, without contexts although they have an answer, or with two versions."""
    for place, sample in enumerate(view.samples):
        split = sample.metadata.get("split")
        if not isinstance(split, Mapping):
            continue
        prompt, contexts = split.get("rag_prompt"), split.get("contexts")
        missing = missing_parts(
            prompt if isinstance(prompt, str) else "-", contexts if isinstance(contexts, list) else "-"
        )
        if EMPTY_PROMPT in missing:
            fix = "Add it: a model that is run on the prompt is asked nothing."
            yield view.issue("warning", "prompts", "the rag_prompt is empty.", place=place, fix=fix)
        if NO_CONTEXTS in missing and sample.labels.get("answerable") is not False:
            fix = "Add the passages that the answer comes from, or label it answerable: false."
            yield view.issue("warning", "prompts", "there are no contexts.", place=place, fix=fix)
        differing = sample.metadata.get(FIELDS_DIFFER)
        for pair in differing if isinstance(differing, list) else ():
            yield view.issue("warning", "prompts", f"{differs(*pair)}.", place=place, fix="Keep one of them.")


def check_near_duplicates(view: DatasetView) -> Iterator[QualityIssue]:
    """Questions that are asked twice: in the same content words, whatever their order and endings.

    Variants of one question (`labels.variant_of`, `metadata.cluster`) are meant to be alike.
    """
    same: dict[tuple[str, ...], list[int]] = {}
    for place, sample in enumerate(view.samples):
        key = _key_words(sample.query)
        # What a question of a conversation means depends on the turns before it.
        if key and HISTORY not in sample.metadata:
            same.setdefault(tuple(sorted(key)), []).append(place)
    for places in same.values():
        for place in _without_variants(view, places)[1:]:
            yield _repeated(view, places[0], place)


def check_declared(view: DatasetView) -> Iterator[QualityIssue]:
    """Size and lengths that the description declares, compared with those of the samples."""
    count = len(view.samples)
    size, average = view.declared.get("size"), view.declared.get("avg_query_length")
    wrong = []
    if size is not None and (isinstance(size, bool) or size != count):
        wrong.append(("size", size, f"there are {count} queries"))
    if average is not None and count:
        mean = sum(len(sample.query) for sample in view.samples) / count
        is_number = isinstance(average, int | float) and not isinstance(average, bool)
        # Rounding to a whole number of characters, or by 2%, is not an error.
        if not is_number or abs(average - mean) > max(1.0, 0.02 * mean):
            wrong.append(("avg_query_length", average, f"queries have {mean:.1f} characters on average"))
    for name, declared, counted in wrong:
        message = f"{name} is declared as {declared!r:.40}, but {counted}."
        where = f"{view.declared_at}.{name}"
        yield QualityIssue("warning", "declared", message, where=where, fix=_AS_DECLARED)
    for place, sample in enumerate(view.samples):
        declared, gold = sample.metadata.get("num_relevant_docs"), len(gold_documents(sample))
        if declared is not None and declared != gold:
            yield view.issue(
                "warning",
                "declared",
                f"num_relevant_docs is declared as {declared!r:.40}, but there are {gold}.",
                place=place,
                part="metadata.num_relevant_docs",
                fix=_AS_DECLARED,
            )


def _key_words(query: str) -> tuple[str, ...]:
    from ..text.tokens import stemmed_word, words

    *others, last = words(query) or [""]
    # The last word is never empty: "vitamin a" is not "vitamins".
    kept = [word for word in others if word not in _EMPTY_WORDS] + [last] * bool(last)
    return tuple(map(stemmed_word, kept))


def _without_variants(view: DatasetView, places: list[int]) -> list[int]:
    """Return the samples that are not variants of an earlier one."""
    kept: list[int] = []
    taken: set[tuple[str, str]] = set()
    for place in places:
        family = _family(view.samples[place])
        if taken.isdisjoint(family):
            kept.append(place)
        taken |= family
    return kept


def _family(sample: EvaluationSample) -> set[tuple[str, str]]:
    base = sample.labels.get("variant_of")
    cluster = cluster_of(sample)
    family = {("id", sample.sample_id if base is None else str(base))}
    return family if cluster is None else family | {("cluster", cluster)}


def _repeated(view: DatasetView, first: int, second: int) -> QualityIssue:
    from ..text.tokens import words

    a, b = view.samples[first], view.samples[second]
    is_verbatim = words(a.query) == words(b.query)
    how = "asks the same as" if is_verbatim else "asks nearly the same as"
    answers = _answers(a), _answers(b)
    message = f"{how} {a.sample_id!r:.80}: {a.query!r:.90}"
    severity = "warning"
    fix = "Keep one of them, or mark the other by labels.variant_of."
    if all(answers) and answers[0].isdisjoint(answers[1]):
        message += ", but has another reference"
        severity = "warning" if is_verbatim else "note"
        fix = "Say in the question how they differ, or correct the reference."
    return view.issue(severity, "near_duplicates", f"{message}.", place=second, fix=fix)


def _answers(sample: EvaluationSample) -> set[str]:
    from ..text.tokens import squad_normalised

    if sample.reference_answer is None:
        return set()
    alternatives = sample.reference_answer.metadata.get("alternatives")
    texts = [sample.reference_answer.text, *(alternatives if isinstance(alternatives, list) else ())]
    return {flat for text in texts if isinstance(text, str) and (flat := squad_normalised(text))}


# Values of labels that no metric reads.

# The values of labels.scenario that metrics ask for by name; any other is a kind of noise, which needs a base
# question (labels.variant_of) or a level (labels.noise_ratio) to be contrasted with.
SCENARIOS = ("base", "closed_book", "counterfactual", "unanswerable")


def check_label_values(view: DatasetView) -> Iterator[QualityIssue]:
    """Values that the metrics cannot use: an unknown base question or scenario, a ratio that is none."""
    contrasted = {
        str(sample.labels.get("scenario"))
        for sample in view.samples
        if sample.labels.get("variant_of") is not None or sample.labels.get("noise_ratio") is not None
    }
    pairs = Counter(str(sample.labels[PAIR]) for sample in view.samples if PAIR in sample.labels)
    for place, sample in enumerate(view.samples):
        for name, message, fix in _unusable_label_set(sample.labels, pairs):
            yield view.issue("warning", "label_values", message, place=place, part=f"labels.{name}", fix=fix)
        for name, message, fix in _unusable(sample.sample_id, sample.labels, view, contrasted):
            yield view.issue("warning", "label_values", message, place=place, part=f"labels.{name}", fix=fix)


def _unusable(
    sample_id: str, labels: Mapping[str, object], view: DatasetView, contrasted: set[str]
) -> Iterator[tuple[str, str, str]]:
    base, scenario = labels.get("variant_of"), labels.get("scenario")
    answerable, ratio = labels.get("answerable"), labels.get("noise_ratio")
    fix = "Correct the id: variants are scored beside their base question."
    if base is not None and str(base) == sample_id:
        yield "variant_of", "the sample is a variant of itself.", fix
    elif base is not None and str(base) not in view.places_of_ids:
        yield "variant_of", f"its base question {base!r:.60} is not the id of a sample.", fix
    if scenario is not None and scenario not in SCENARIOS and str(scenario) not in contrasted:
        yield (
            "scenario",
            f"no metric reads the scenario {scenario!r:.60}.",
            f"Write {', '.join(SCENARIOS)}, or add variant_of or noise_ratio to a kind of noise.",
        )
    if answerable is not None and not isinstance(answerable, bool):
        yield "answerable", f"answerable is {answerable!r:.60}, not true or false.", "Change it."
    elif answerable is True and scenario == "unanswerable":
        yield "answerable", "answerable is true, but the scenario is 'unanswerable'.", "Change one of them."
    is_share = isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 <= ratio <= 1
    if ratio is not None and not is_share:
        yield "noise_ratio", f"noise_ratio is {ratio!r:.60}, not a number from 0 to 1.", "Change it."


def _unusable_label_set(
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
    """Questions that hold their own answer: a system that repeats the question looks right."""
    for place, sample in enumerate(view.samples):
        if _gives_itself_away(sample):
            message = f"the words of the reference {_reference(sample)!r:.60} are all in the question."
            fix = "Ask for something that the question does not say."
            yield view.issue("warning", "answer_in_question", message, place=place, fix=fix)


def check_reference_support(
    view: DatasetView, min_support: float = MIN_SUPPORT, fewest_words: int = FEWEST_WORDS
) -> Iterator[QualityIssue]:
    """References whose words are, for the most part, not in their gold documents."""
    for place, sample in enumerate(view.samples):
        support = reference_support(sample, fewest_words)
        if support is None or support.share >= min_support:
            continue
        missing = ", ".join(support.missing[:6])
        yield view.issue(
            "warning",
            "reference_support",
            f"{support.share:.0%} of the reference's words are in its gold documents; not there: {missing}.",
            place=place,
            fix="Look whether the right documents are gold, and whether the reference says what they say.",
        )


def reference_support(sample: EvaluationSample, fewest_words: int = FEWEST_WORDS) -> Support | None:
    """Return the support of a sample's reference, or of its best alternative; None if it is not known.

    It is not known without a reference or the gold documents' texts, for unanswerable questions and for
    references that decline, say yes or no, or have fewer content words and numbers than `fewest_words`.
    """
    from ..text.refusal import refusal

    reference, documents = sample.reference_answer, gold_documents(sample)
    if reference is None or not reference.text.strip() or not _is_answerable(sample):
        return None
    if not documents or not all(doc.text.strip() for doc in documents):
        return None
    alternatives = reference.metadata.get("alternatives")
    texts = [reference.text, *(alternatives if isinstance(alternatives, list) else ())]
    contents = [_content(text) for text in texts if isinstance(text, str)]
    # A long alternative does not make up for a short reference, which is not judged.
    if len(contents[0]) < fewest_words:
        return None
    titles = [title for doc in documents if isinstance(title := doc.metadata.get("title"), str)]
    forms = frozenset().union(*map(_forms, [*(doc.text for doc in documents), *titles]))
    judged = [content for content in contents if len(content) >= fewest_words]
    best = max((_support(content, forms) for content in judged), key=lambda support: support.share)
    return None if best.missing and refusal(reference).declined else best


def _support(content: tuple[str, ...], forms: frozenset[str]) -> Support:
    lacking = tuple(word for word in content if not _has_form_of(word, forms))
    return Support(1 - len(lacking) / len(content), lacking)


# Samples of one document often follow each other. A text of 1,000 words takes tens of KB.
@lru_cache(maxsize=1024)
def _forms(text: str) -> frozenset[str]:
    """Return the words of a text as they are and by their stems, and its numbers in one spelling."""
    from ..text.content_words import numbers
    from ..text.tokens import stemmed_word, words

    distinct = frozenset(words(text))
    return distinct.union(map(stemmed_word, distinct), numbers(text))


def _has_form_of(word: str, forms: frozenset[str]) -> bool:
    from ..text.tokens import stemmed_word

    return word in forms or stemmed_word(word) in forms


def _content(text: str) -> tuple[str, ...]:
    """Content words without digits, then the numbers in one spelling, each once."""
    from ..text.content_words import content_words, numbers, without_marks

    plain = without_marks(text)
    content = [word for word in content_words(plain) if not any(c.isdigit() for c in word)]
    return tuple(dict.fromkeys([*content, *numbers(plain)]))


def _gives_itself_away(sample: EvaluationSample) -> bool:
    from ..text.tokens import has_ideographs, words

    reference = _reference(sample)
    if not reference or not _is_answerable(sample) or _CHOICE.search(sample.query.lower()):
        return False
    content = _content(reference)
    if not content or set(content) <= _VERDICTS:
        return False
    if has_ideographs(reference):
        return reference.strip(" 。.") in sample.query
    question_words, reference_words = words(sample.query), words(reference)
    if len(content) == 1 and (content[0].isdigit() or len(content[0]) < 3):
        return False  # a lone number is in many questions without being their answer
    if f" {' '.join(reference_words)} " in f" {' '.join(question_words)} ":
        return True
    forms = _forms(sample.query)
    return len(content) >= FEWEST_WORDS and all(_has_form_of(word, forms) for word in content)


def _reference(sample: EvaluationSample) -> str:
    return "" if sample.reference_answer is None else sample.reference_answer.text.strip()


def _is_answerable(sample: EvaluationSample) -> bool:
    """Whether a sample's labels leave it answerable; labels that contradict each other say nothing."""
    from ..metrics.robustness.rejection import is_answerable

    try:
        return is_answerable(sample) is not False
    except ScoringError:
        return True
