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
from .pairs import references
from .rouge import Rouge1, Rouge2, RougeLAnswer, RougeLsum

__all__ = [
    "AnswerMetric",
    "AnswerShare",
    "Bleu",
    "ChrF",
    "ChrFPlusPlus",
    "ContainsAnswer",
    "ExactMatch",
    "Rouge1",
    "Rouge2",
    "RougeLAnswer",
    "RougeLsum",
    "TokenF1",
    "TokenPrecision",
    "TokenRecall",
    "bleu_statistics",
    "references",
]
