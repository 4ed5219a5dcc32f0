"""Correctness of an answer as text: the metrics of this family, by name, in one place."""

from __future__ import annotations

from .answers import (
    AnswerMetric,
    AnswerShare,
    ContainsAnswer,
    ExactMatch,
    TokenF1,
    TokenPrecision,
    TokenRecall,
)
from .bleu import Bleu, bleu_statistics
from .chrf import ChrF, ChrFPlusPlus
from .claims import ClaimF1, ClaimFaithfulness, ClaimPrecision, ClaimRecall
from .nuggets import NuggetRecall
from .numbers import NumericF1, NumericMatch
from .pairs import references
from .rouge import Rouge1, Rouge2, RougeLAnswer, RougeLsum
from .similarity import SemanticSimilarity

__all__ = [
    "AnswerMetric",
    "AnswerShare",
    "Bleu",
    "ChrF",
    "ChrFPlusPlus",
    "ClaimF1",
    "ClaimFaithfulness",
    "ClaimPrecision",
    "ClaimRecall",
    "ContainsAnswer",
    "ExactMatch",
    "NuggetRecall",
    "NumericF1",
    "NumericMatch",
    "Rouge1",
    "Rouge2",
    "RougeLAnswer",
    "RougeLsum",
    "SemanticSimilarity",
    "TokenF1",
    "TokenPrecision",
    "TokenRecall",
    "bleu_statistics",
    "references",
]
