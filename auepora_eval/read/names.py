"""What each of our fields is called by others: the one table of names.

The others are the four seeds, ragas, DeepEval, RAGChecker, LlamaIndex, LangChain, Haystack, SQuAD, MLflow and
common spreadsheets. A record of a file is read by `NAMES`. What a system returns, a dict or an object, may
use any of these names too (`ANSWER_PARTS`, `DOCUMENT_LISTS`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any

from ..errors import DataError, nearest_names

# Of ids the first name counts; two names of another field are ambiguous.
NAMES: dict[str, tuple[str, ...]] = {
    "sample_id": ("sample_id", "id", "_id", "query_id", "task_id", "question_id", "qid", "example_id", "uid"),
    "query": ("query", "question", "user_input", "input", "query_text", "prompt", "user_question"),
    "reference_answer": (
        *("reference_answer", "ground_truth", "ground_truths", "expected_output", "expected", "reference"),
        *("expected_answer", "expected_response", "ground_truth_answer", "gt_answer", "gold_answer"),
        *("correct_answer", "reference_output", "ideal", "target", "targets", "truth", "answers"),
    ),
    "relevant_docs": (
        *("relevant_docs", "relevant_documents", "reference_contexts", "ground_truth_contexts"),
        *("gold_contexts", "gold_docs", "relevant_contexts", "expected_contexts", "supporting_facts"),
    ),
    "relevant_ids": ("reference_context_ids", "relevant_ids", "relevant_doc_ids", "gold_ids"),
    "candidate_docs": ("candidate_docs", "candidate_documents"),
    "answer": (
        *("response", "actual_output", "prediction", "predicted_answer", "generated_answer", "llm_answer"),
        *("model_answer", "model_response", "bot_answer", "completion", "generated_text"),
        *("output", "outputs"),
    ),
    "retrieved": (
        *("retrieved", "source_documents", "source_nodes", "retrieved_docs", "retrieved_documents"),
        *("retrieved_passages", "retrieved_chunks", "retrieved_contexts", "retrieval_context"),
        *("retrieved_context", "contexts"),
    ),
    "retrieved_ids": ("retrieved_context_ids", "retrieved_ids", "retrieved_doc_ids"),
    "history": ("history", "chat_history", "conversation_history"),
    "tool_calls": ("tools_called", "tool_calls"),
    "claims": ("checked_claims",),
    "error": ("error",),
    "labels": ("labels",),
    "metadata": ("metadata",),
}
# Of answers alone: in a record with a question they may be about the question.
ANSWER_NAMES: dict[str, tuple[str, ...]] = {
    "citations": (
        *("citations", "answer_citations", "citation_list", "cited_spans", "cited_documents", "cited_docs"),
        *("cited_sources", "cited_ids"),
    ),
    "timings": ("timings",),
    "latency_ms": ("latency_ms",),
    "extra": ("extra",),
}
# Of answers alone, too: the first that is there, if no other name is.
ANSWER_NAMES_IF_NONE: dict[str, tuple[str, ...]] = {
    "answer": ("result", "output_text", "text", "content", "answers", "replies"),
    "retrieved": ("documents", "passages", "nodes", "chunks", "sources"),
}
OUTPUT_FIELDS = ("answer", "retrieved", "retrieved_ids", "tool_calls", "claims", "error", *ANSWER_NAMES)
# Fields that `columns` may name.
COLUMNS = (*(field for field in NAMES if not field.endswith("_ids")), "citations")
# The names of our own files, in which each has one meaning.
ID = "sample_id"
SAMPLE_NAMES = {
    *("sample_id", "query", "relevant_docs", "candidate_docs", "reference_answer", "labels", "metadata")
}
OUTPUT_NAMES = {"retrieved", "response", "answer", "citations", "error", "timings", "extra"}
OF_DEEPEVAL = {"input", "actual_output"}  # beside these `name` is an id; in other tables it is anything
# A conversation holds the question, unless that has a field of its own: then it is what came before it.
CONVERSATIONS = ("messages", "conversation")
_TABLES = (NAMES, {"citations": ANSWER_NAMES["citations"]})
KNOWN = {
    *("answer", "context", *CONVERSATIONS),
    *(name for table in _TABLES for names in table.values() for name in names),
}
# The names whose strings are ids, and those whose strings may be ids; all others hold texts.
IDS = {*NAMES["relevant_ids"], *NAMES["retrieved_ids"], "relevant_documents"}
IDS_OR_TEXTS = {
    *("relevant_docs", "candidate_docs", "retrieved", "retrieved_docs", "retrieved_documents"),
    *("documents", "chunks", "sources"),
}

# What a system returns. Of answers the first with a text counts, and the others are kept in `extra`.
QUERY_PARAMETERS = ("query", "question", "input", "user_input", "prompt", "text")
# The parameter of a function that takes documents; those of the second line are texts to most people.
DOCUMENT_PARAMETERS = ("documents", "docs", "context_docs", "contexts", "passages", "context")
TEXT_PARAMETERS = ("contexts", "passages", "context")
ANSWER_PARTS = ("answer", *NAMES["answer"], *ANSWER_NAMES_IF_NONE["answer"], "data")
MESSAGE_PARTS = ("choices", "message", "messages")  # of chat protocols; not an answer by themselves
DOCUMENT_LISTS = (*NAMES["retrieved"], *ANSWER_NAMES_IF_NONE["retrieved"], "context")
# Others put texts into these. One word in one of them may still be an id.
PASSAGE_LISTS = {*DOCUMENT_LISTS} - IDS_OR_TEXTS - {"source_documents", "source_nodes"}
_LIKE = 0.8  # similarity of two names, of 1: refernce_answer is like reference_answer, answered is not
# The parts of a document, and the counts of tokens.
DOCUMENT_TEXT = ("page_content", "content", "text", "body")
DOCUMENT_ID = ("doc_id", "id", "_id", "node_id", "id_", "document_id", "doc_uri")
INPUT_TOKENS, OUTPUT_TOKENS = ("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")


def plain_name(name: object) -> str:
    """Return a name as the table has it: "Ground Truth" is ground_truth."""
    return re.sub(r"[\s-]+", "_", str(name).strip().lower())


def name_like(field: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like one that a field may have; None if none is."""
    known = (field, *NAMES.get(field, ()))
    plain = {plain_name(name): name for name in names}
    near = (nearest_names(one, tuple(plain), 1, _LIKE) for one in known)
    return next((plain[names[0]] for names in near if names), None)


def has_query(names: Iterable[object]) -> bool:
    """Return whether one of the names is known to hold the question, in any spelling."""
    if isinstance(names, Mapping) and isinstance(names.get("inputs"), Mapping):  # MLflow
        return True
    return any(plain_name(name) in (*NAMES["query"], *CONVERSATIONS) for name in names)


def has_answer(names: Iterable[object]) -> bool:
    """Return whether there is an id beside the answer or the documents of a system, in any spelling."""
    known = {plain_name(name) for name in names}
    outputs = {"answer", "result", "retrieval_results", *(n for f in OUTPUT_FIELDS[:3] for n in NAMES[f])}
    is_answer = not known.isdisjoint(outputs) or {"answers", "documents"} <= known  # Haystack
    return not known.isdisjoint(NAMES["sample_id"]) and is_answer


def has_own_names(names: Collection[str]) -> bool:
    """Return whether these are the names of a sample or a prediction of ours."""
    return ID in names and has_only(SAMPLE_NAMES | OUTPUT_NAMES, names)


def has_only(own: Set[str], names: Iterable[str]) -> bool:
    """Return whether all names that are known, in any spelling, are among our own."""
    return {plain_name(name) for name in names} & KNOWN <= own


# The names in a sample's metadata that commands and metrics read. Other columns of a file are only kept: they
# are listed under NOT_READ and are not part of the question. So two files with the answers of two systems to
# the same questions are the same data, whatever another tool has written beside the answers.
METADATA = frozenset(
    """citations closed_context cluster document expected_scenario history promptfoo rag_prompt source_sha256
    split stored_output""".split()
)
NOT_READ = "columns_not_read"

# What metrics are computed from: a slip of the pen in one of these names would leave them unmeasured.
MEASURED = ("relevant_docs", "reference_answer", "retrieved", "answer", "response", "citations")


_CITES = {"cite", "cites", "cited", "citation", "citations"}


def check_spelling(unread: Mapping[str, Any], missing: Iterable[str], where: str) -> None:
    """Raise DataError if a field that metrics need is missing and an unread one has nearly its name.

    An answer without citations scores 0: a list under a name with that word in it is hardly anything else.
    """
    wanted = tuple(sorted(field for field in missing if field in MEASURED))
    for name, value in unread.items():
        name = str(name)[:80]
        # A name that only begins like it, such as retrieved_at, is another field.
        near = [f for f in nearest_names(name, wanted, cutoff=0.8) if abs(len(name) - len(f)) <= 1]
        words = {*plain_name(name).split("_")}
        if "citations" in wanted and isinstance(value, list) and value and not words.isdisjoint(_CITES):
            near = ["citations"]
        if near:
            what = f"the field {name!r} is not read, and there is no {near[0]}, which it looks like."
            fix = f"Name it: --columns {near[0]}={name} (in Python columns={{...}}), or use --convert."
            raise DataError(where, what, fix=fix)
