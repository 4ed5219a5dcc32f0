"""Claim metrics: what an answer says, compared with its reference and with the retrieved documents.

They read claims that people or a model have checked already:

| output.extra["claims"] = {
|     "answer_in_reference": [True, False],           # a flag for each claim of the answer
|     "reference_in_answer": [True, True, False],     # a flag for each claim of the reference
|     "answer_in_documents": [[True, False], [False, False]],  # of the answer, a flag for each document
|     "reference_in_documents": [[True, False], ...],  # of the reference, a flag for each document
| }

or the same in `labels["claims"]`, where one answer only was checked. Each metric needs its own entries; a
sample without them is skipped. True means entailed: a contradiction and no opinion are both false.

With [check=judge] the judge of the run fills these lists: claim_f1[check=judge]. The claims are the sentences
of the answer and of the reference; [check=judge,claims=llm] takes the statements that the judge finds there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.metrics_base import metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import BadOutputError
from ...metrics.answers.pairs import answer_text
from ...text.refusal import declines
from ..judge import YES_FROM
from ..metric import DECLINES, SENTENCES, JudgedMetric, check_known, declined
from ..texts import shown_passages

Flags = list[bool]  # of claims
Rows = list[Flags]  # of claims, a flag for each document


@dataclass
class ClaimMetric(JudgedMetric):
    """A metric of checked claims; `needs` names the entries that `of_claims` gets."""

    check: str = ""
    claims: str = SENTENCES
    needs: ClassVar[tuple[str, ...]]
    target = TargetCategory.GENERATION_CORRECTNESS
    oracle = "RAGChecker, worked example"
    kinds = ("grounding",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.check not in ("", "judge"):
            raise ValueError(f"claims can be checked by a judge (check=judge), not by {self.check!r}")

    @property
    def needs_judge(self) -> bool:
        return self.check == "judge"

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        claims: Any
        if self.needs_judge:
            claims = self.checked(sample, output)
        else:
            claims = output.extra.get("claims") or sample.labels.get("claims")
        if claims is None:
            return skip("neither the output nor the labels have checked claims")
        if isinstance(claims, SampleScore):
            return claims
        if not isinstance(claims, dict):
            raise BadOutputError(f"the claims must be lists by name, not {claims!r:.80}")
        for name in self.needs:
            if claims.get(name) is None:
                return skip(f"the claims have no {name}")
        score = self.of_claims(*(_flags(name, claims[name]) for name in self.needs))
        is_skipped = isinstance(score, SampleScore) and score.value is None
        return self._of_refusal(sample) if is_skipped and _declines(output) else score

    def _of_refusal(self, sample: EvaluationSample) -> SampleScore:
        """Return the score of an answer that declines: wrong, if the metric says how right answers are."""
        return declined(sample) if self.says_how_right else skip(DECLINES)

    def of_claims(self, *entries: Any) -> float | SampleScore:
        """Return the score from the entries in `needs`: Flags, or Rows if they are about documents."""
        raise NotImplementedError

    def checked(self, sample: EvaluationSample, output: SystemOutputs) -> dict[str, Any] | SampleScore:
        """Return the entries that the metric needs, as the judge fills them; or why it cannot."""
        # An empty answer is scored: it makes none of the reference's claims.
        if _declines(output):
            return self._of_refusal(sample)
        ranked, shown = sorted(output.retrieved, key=lambda hit: hit.rank), shown_passages(output)
        texts = {"answer": [output.response.text], "documents": [passage.text for passage in shown]}
        if (right := sample.reference_answer) is not None:
            texts["reference"] = [right.text]
        pairs = {name: name.split("_in_") for name in self.needs}
        sides = {side for pair in pairs.values() for side in pair}
        if not sides <= set(texts):
            return skip("the sample has no reference_answer")
        if "documents" in sides and ranked and not shown:
            return skip("the retrieved documents have no text")
        claims = {source: self.claims_of(texts[source][0], sample) for source, _ in pairs.values()}
        # One question for each pair of sides, about all claims of the one and all texts of the other.
        parts = self.verdicts_on([(claims[source], texts[side]) for source, side in pairs.values()])
        check_known([part.failed for listed in parts for part in listed])
        entries: dict[str, Any] = {}
        for (name, (_, side)), listed in zip(pairs.items(), parts, strict=True):
            found = [part.passages if (part.score or 0.0) >= YES_FROM else [] for part in listed]
            entries[name] = [bool(numbers) for numbers in found]
            if side == "documents":
                named = [{shown[number - 1].passage_id for number in numbers} for numbers in found]
                entries[name] = [[hit.doc.doc_id in ids for hit in ranked] for ids in named]
        return entries


@metric("claim_precision[check={check?},claims={claims?}]")
class ClaimPrecision(ClaimMetric):
    """Share of the answer's claims that the reference supports: low when the answer says wrong things.

    Claims of the answer that the reference entails / claims of the answer. It needs checked claims
    (`answer_in_reference`, see `auepora_eval.judges.metrics.claims`), or a judge: [check=judge]. An answer
    without claims is skipped, unless it declines a question that has an answer: 0.
    """

    needs = ("answer_in_reference",)

    def of_claims(self, *entries: Any) -> float | SampleScore:
        return _share(entries[0], "the answer makes no claims")


@metric("claim_recall[check={check?},claims={claims?}]")
class ClaimRecall(ClaimMetric):
    """Share of the reference's claims that the answer makes: low when the answer leaves things out.

    Claims of the reference that the answer entails / claims of the reference. It needs checked claims
    (`reference_in_answer`), or a judge: [check=judge]. RAGChecker calls this recall; its "claim recall" is
    about the documents.
    """

    needs = ("reference_in_answer",)

    def of_claims(self, *entries: Any) -> float | SampleScore:
        return _share(entries[0], "the reference makes no claims")


@metric("claim_f1[check={check?},claims={claims?}]")
class ClaimF1(ClaimMetric):
    """Harmonic mean of claim_precision and claim_recall, by answer.

    2PR / (P + R), 0 where both are; the mean over answers, as in RAGChecker, not the F1 of the means. It
    needs checked claims (`answer_in_reference`, `reference_in_answer`), or a judge: [check=judge].
    """

    needs = ("answer_in_reference", "reference_in_answer")

    def of_claims(self, *entries: Any) -> float | SampleScore:
        of_answer: Flags
        of_reference: Flags
        of_answer, of_reference = entries
        if not of_reference:
            return skip("the reference makes no claims")
        # Precision and recall are both 0, and their harmonic mean has no value.
        if not any(of_answer) or not any(of_reference):
            return 0.0
        precision, recall = sum(of_answer) / len(of_answer), sum(of_reference) / len(of_reference)
        return 2 * precision * recall / (precision + recall)


@metric("claim_faithfulness[check={check?},claims={claims?}]")
class ClaimFaithfulness(ClaimMetric):
    """Share of the answer's claims that at least one retrieved document supports.

    Claims of the answer that some document entails / claims of the answer, whether they are right or not. It
    needs checked claims (`answer_in_documents`), or a judge: [check=judge].
    """

    needs = ("answer_in_documents",)
    target = TargetCategory.GENERATION_FAITHFULNESS

    def of_claims(self, *entries: Any) -> float | SampleScore:
        return _share([any(row) for row in entries[0]], "the answer makes no claims")


@metric("claim_hallucination[check={check?},claims={claims?}]")
class ClaimHallucination(ClaimMetric):
    """Share of the answer's claims that neither the reference nor a retrieved document supports.

    Claims of the answer that the reference does not entail and no document does / claims of the answer. With
    claim_precision and both forms of claim_noise_sensitivity it adds up to 1. It needs checked claims
    (`answer_in_reference`, `answer_in_documents`), or a judge: [check=judge].
    """

    needs = ("answer_in_reference", "answer_in_documents")
    target = TargetCategory.GENERATION_FAITHFULNESS
    higher_is_better = False

    def of_claims(self, *entries: Any) -> float | SampleScore:
        right, in_documents = entries
        flags = [not ok and not any(row) for ok, row in _paired(right, in_documents)]
        return _share(flags, "the answer makes no claims")


@metric("claim_noise_sensitivity[documents={documents?},check={check?},claims={claims?}]")
class ClaimNoiseSensitivity(ClaimMetric):
    """Share of the answer's claims that are wrong and come from the retrieved documents.

    Claims of the answer that the reference does not entail, and a relevant document does / claims of the
    answer; relevant is a document that entails some claim of the reference. [documents=irrelevant] counts
    those that only other documents entail. It needs checked claims (`answer_in_reference`,
    `answer_in_documents`, `reference_in_documents`), or a judge: [check=judge]. An answer without documents
    scores 0: its wrong claims are in claim_hallucination.
    """

    documents: str = "relevant"
    needs = ("answer_in_reference", "answer_in_documents", "reference_in_documents")
    higher_is_better = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.documents not in ("relevant", "irrelevant"):
            raise ValueError(f"documents must be relevant or irrelevant, not {self.documents!r}")

    def of_claims(self, *entries: Any) -> float | SampleScore:
        right, in_documents, reference_in_documents = entries
        relevant = {number for row in reference_in_documents for number, flag in enumerate(row) if flag}
        wrong = [row for ok, row in _paired(right, in_documents) if not ok]
        sources = [{number for number, flag in enumerate(row) if flag} for row in wrong]
        if self.documents == "relevant":
            counted = [found for found in sources if found & relevant]
        else:
            counted = [found for found in sources if found and not found & relevant]
        return len(counted) / len(right) if right else skip("the answer makes no claims")


def _declines(output: SystemOutputs) -> bool:
    return bool(answer_text(output).strip()) and declines(output.response)


def _paired(right: Flags, rows: Rows) -> list[tuple[bool, Flags]]:
    if len(right) != len(rows):
        raise BadOutputError(
            f"{len(right)} claims were compared with the reference, {len(rows)} with documents"
        )
    return list(zip(right, rows, strict=True))


def _flags(name: str, listed: Any) -> Flags | Rows:
    """Return what is listed under a name: a flag for each claim, or of each claim one for each document."""
    of_documents = name.endswith("_in_documents")
    if isinstance(listed, list | tuple):
        rows = [row for row in listed if isinstance(row, list | tuple)] if of_documents else [listed]
        complete = not of_documents or len(rows) == len(listed)
        if complete and all(isinstance(flag, bool) for row in rows for flag in row):
            return [list(row) for row in rows] if of_documents else list(listed)
    kind = "lists of true or false" if of_documents else "true or false"
    raise BadOutputError(f"{name} must be a list of {kind}, not {listed!r:.80}")


def _share(flags: Flags, reason: str) -> float | SampleScore:
    return sum(flags) / len(flags) if flags else skip(reason)
