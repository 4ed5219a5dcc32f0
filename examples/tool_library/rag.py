"""A help desk for a library of tools: it finds the page of a tool, and quotes the sentence that answers.

The three settings are what somebody might change on a Friday afternoon. `pytest` says whether they may.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path

from auepora_eval import Document, Response, RetrievedDocument, SystemOutputs

STEM = False  # read "drills" and "drilling" as "drill"
LONGEST_QUESTION = 40  # words of a question that are looked at
RARE_WORDS_FIRST = True  # a word that few pages have says more

LINES = (Path(__file__).parent / "data" / "documents.jsonl").read_text(encoding="utf-8").splitlines()
DOCUMENTS = [Document(record["doc_id"], record["text"]) for record in map(json.loads, LINES)]


def words(text: str) -> list[str]:
    """The words of a text, as they are compared."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return [re.sub(r"(ing|es|s)$", "", word) for word in found] if STEM else found


PAGES = [Counter(words(document.text)) for document in DOCUMENTS]
COUNTS = Counter(word for page in PAGES for word in page)


def weight(word: str) -> float:
    """How much a word says about a page."""
    return math.log(1 + len(PAGES) / COUNTS[word]) if RARE_WORDS_FIRST else 1.0


def tool_library(query: str, *, top_k: int = 3) -> SystemOutputs:
    """The pages that share most with the question, and the sentence of the first that does."""
    asked = set(words(query)[:LONGEST_QUESTION])
    # fsum: the last digit of a sum depends on the order of the words and on the version of Python.
    scores = [math.fsum(weight(word) for word in asked if word in page) for page in PAGES]
    order = sorted(range(len(PAGES)), key=lambda place: -scores[place])[:top_k]
    hits = [RetrievedDocument(DOCUMENTS[place], scores[place], rank) for rank, place in enumerate(order, 1)]
    sentences = re.findall(r"[^.]+\.", hits[0].doc.text)[1:]  # the first only says what it is
    best = max(sentences, key=lambda sentence: len(asked & set(words(sentence))))
    return SystemOutputs(hits, Response(best.strip()))
