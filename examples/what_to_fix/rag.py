"""Questions about lighthouses: a system with two faults, found and corrected one after the other.

first    as it was released
second   with the first fault corrected
third    with both corrected
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from auepora_eval import Document

FILE = Path(__file__).with_name("corpus.jsonl")
CORPUS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


class Search:
    """Ranks documents by the words that they share with the question; a rare word weighs more."""

    def __init__(self, limit: int | None = None) -> None:
        self._index = [(set(_words(one["text"])), one) for one in CORPUS[:limit]]
        self._counts = Counter(word for words, _ in self._index for word in words)

    def retrieve(self, query: str, top_k: int = 5) -> list[Document]:
        asked = set(_words(query))
        weights = {word: 1 / self._counts[word] for word in asked if word in self._counts}
        ranked = sorted(
            self._index, key=lambda entry: -sum(weights.get(word, 0) for word in sorted(entry[0]))
        )
        return [Document(one["doc_id"], one["text"]) for _, one in ranked[:top_k]]


def _words(text: str) -> list[str]:
    return re.findall(r"\w{4,}", text.lower())


def read(query: str, documents: list[Document]) -> str:
    """Answer from the documents: a language model would be here."""
    place = re.search(r"of the ([A-Z]\w+ [A-Z]\w+) light", query)
    for document in documents:
        about = rf"The {place[1] if place else '-'} light .*?keeper is ([A-Z]\w+ [A-Z]\w+)"
        if found := re.search(about, document.text):
            return f"The keeper is {found[1]}."
    return "I don't know."


def read_the_first(query: str, documents: list[Document]) -> str:
    """Answer from the first document alone: somebody cut the prompt to save tokens."""
    return read(query, documents[:1])


# The loader of the index asked for one page of 42 documents, and never for the next.
first = (Search(limit=42).retrieve, read_the_first)
second = (Search().retrieve, read_the_first)
third = (Search().retrieve, read)
