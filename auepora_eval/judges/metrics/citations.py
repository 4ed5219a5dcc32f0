"""Do the passages that an answer cites support what it says? One call per answer, about all citations."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.metrics_base import metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...metrics.citations.answer import answer_of
from ..metric import JudgedMetric, check_known, no_answer
from ..texts import cut_around

Cited = Sequence[Sequence[bool]]  # of each claim, whether each of its citations supports it


class JudgedCitations(JudgedMetric):
    """A metric of whether each citation supports its claim, as a judge sees it.

    The judge is shown all claims that cite something and all cited passages, and names the passages that
    support each claim. A citation that leads nowhere supports nothing; one whose document has no text is left
    out.
    """

    target = TargetCategory.GENERATION_FAITHFULNESS
    kinds = ("grounding",)

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if (left_out := no_answer(output)) is not None:
            return left_out
        answer = answer_of(sample, output)
        if not answer.claims:
            return skip("the answer makes no claims")
        if not answer.is_attached:
            return skip("the citations are a list: it is not known which sentence makes which")
        found = answer.found
        texts = list(dict.fromkeys(one.text for one in found if not one.trouble and one.text.strip()))
        # By claim: the number of the cited passage, 0 for a citation that leads nowhere.
        cites = [
            [
                texts.index(found[number].text) + 1 if not found[number].trouble else 0
                for number in answer.citations_at(claim)
                if found[number].trouble or found[number].text.strip()
            ]
            for claim in answer.claims
        ]
        asked = [claim for claim, numbers in zip(answer.claims, cites, strict=True) if any(numbers)]
        parts = self.verdicts_on([(asked, [cut_around(text, output.response.text) for text in texts])])[0]
        check_known([part.failed for part in parts])
        supporting = {
            id(claim): part.passages if part.label == "supported" else []
            for claim, part in zip(asked, parts, strict=True)
        }
        rows = [
            [number in supporting.get(id(claim), ()) for number in numbers]
            for claim, numbers in zip(answer.claims, cites, strict=True)
        ]
        return self.of_citations(rows)

    def of_citations(self, cited: Cited) -> float | SampleScore:
        """Return the score of an answer from its claims and their citations."""
        raise NotImplementedError


@metric("judged_citation_precision")
class JudgedCitationPrecision(JudgedCitations):
    """Share of the answer's citations that support their claim, as a judge sees it.

    Citations whose passage the judge names for the claim / citations. An answer that cites nothing, or
    declines, is skipped.
    """

    def of_citations(self, cited: Cited) -> float | SampleScore:
        flags = [flag for claim in cited for flag in claim]
        return sum(flags) / len(flags) if flags else skip("the answer cites nothing")


@metric("judged_citation_recall")
class JudgedCitationRecall(JudgedCitations):
    """Share of the answer's claims that one of their citations supports, as a judge sees it.

    Claims with a citation whose passage the judge names for them / claims; a claim that cites nothing counts
    0. An answer that declines is skipped.
    """

    def of_citations(self, cited: Cited) -> float | SampleScore:
        return sum(map(any, cited)) / len(cited)
