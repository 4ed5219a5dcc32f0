"""A rubric of your own: one Markdown file that says what each grade means.

# Tone

Is the answer polite and calm?

Sees: reference

- 2: polite and calm throughout
- 1: curt, but not rude
- 0: rude

The judge reads the file as it is; each grade is a list item with a number of one digit. It is shown the
question and the answer. A line "Sees: reference, passages", which may be left out, names what else. The score
is the grade, scaled to 0 for the lowest and 1 for the highest.

The metric is rubric[tone.md]. The hash of the file is in the name of the judge, so that values by different
texts of a rubric are not compared. The file is read when the judge is asked, not for stored results.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ...calls.chat import Prompt, read_prompt, read_text
from ...core.metrics_base import metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import DataError
from ..metric import JudgedMetric, no_answer
from ..question import PROMPTS, Kind
from ..texts import question_about

_GRADE = re.compile(r"^[-*] +(\d) *[:=] *(\S.*)$", re.MULTILINE)
_SEES = re.compile(r"^Sees:[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)
_TEXTS = ("question", "answer", "reference", "passages")


class Rubric(NamedTuple):
    """A rubric: the kind of question that it makes, and what else is shown."""

    kind: Kind
    sees: tuple[str, ...]


def read_rubric(path: str | Path) -> Rubric:
    """Read a rubric; DataError says what is wrong with the file."""
    content = read_text(Path(path), "rubric")
    text = content.replace("\r\n", "\n").strip()
    if "{{" in text:
        raise DataError(str(path), "a rubric has no {{.", fix="Leave it out.")
    grades = [grade for grade, _ in _GRADE.findall(text)]
    if len(grades) < 2 or len(set(grades)) < len(grades):
        raise DataError(
            str(path),
            "a rubric describes at least two grades, each once.",
            fix='Write a list with a line such as "- 2: polite and calm throughout" for each grade.',
        )
    return Rubric(_kind(text, sorted(grades), sha256(content.encode()).hexdigest()), _seen(str(path), text))


def _kind(text: str, grades: list[str], digest: str) -> Kind:
    template = read_prompt(PROMPTS / "judge_rubric.md")
    prompt = Prompt(
        template.name,
        template.system.replace("{{rubric}}", text),
        template.user,
        sha256(f"{template.sha256} {digest}".encode()).hexdigest(),
    )
    low, high = int(grades[0]), int(grades[-1])
    # The name is a part of the key of a verdict: two rubrics must not share one.
    return Kind(
        f"rubric@{digest[:8]}", prompt, {grade: (int(grade) - low) / (high - low) for grade in grades}
    )


def _seen(path: str, text: str) -> tuple[str, ...]:
    match = _SEES.search(text)
    names = [name.strip().lower() for name in match[1].split(",")] if match else []
    unknown = [name for name in names if name not in _TEXTS]
    if unknown:
        known = ", ".join(_TEXTS)
        raise DataError(path, f"a judge can see {known}; not {unknown[0]!r:.40}.", fix="Correct that line.")
    return tuple(names)


@metric("rubric[{file}]")
class RubricGrade(JudgedMetric):
    """The grade that a judge gives an answer by a rubric of your own: rubric[tone.md].

    (grade - lowest grade) / (highest grade - lowest grade), the expectation over the grades where the judge
    reports their probabilities. The file says what each grade means and what the judge is shown; its hash is
    part of the judge. An answer that declines is skipped.
    """

    file: str
    target = TargetCategory.GENERATION_RELEVANCE
    requires = ("query",)

    def ready(self) -> None:
        read_rubric(self.file)
        super().ready()

    def question_kinds(self) -> list[Kind]:
        return [read_rubric(self.file).kind]

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if (left_out := no_answer(output)) is not None:
            return left_out
        rubric = read_rubric(self.file)
        texts = {"answer": output.response.text}
        if "reference" in rubric.sees:
            if sample.reference_answer is None:
                return skip("the sample has no reference_answer")
            texts["reference"] = sample.reference_answer.text
        if "passages" in rubric.sees:
            ranked = sorted(output.retrieved, key=lambda hit: hit.rank)
            texts["passages"] = "\n\n".join(hit.doc.text for hit in ranked if hit.doc.text.strip())
        query = sample.query
        shown = {name: (text, query) for name, text in texts.items()}
        return self.ask_all([question_about(rubric.kind, query, shown)])[0].score or 0.0
