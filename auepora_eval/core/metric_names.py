"""The names of metrics: written from a metric's fields by a template, and read back into arguments.

What other tools call them is at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, NamedTuple

from ..errors import UnknownNameError

Fields = Sequence[Field[Any]]

# base, number after the @, options in brackets: of a template, and of a name that somebody wrote.
_TEMPLATE = re.compile(r"(?P<base>\w+)(?:@(?P<number>\{[^{}]+\}))?(?:\[(?P<options>[^\[\]]+)\])?")
_SLOT = re.compile(r"(?:(?P<key>\w+)=)?\{(?P<field>\w+)(?P<optional>\?)?(?::(?P<spec>[^{}]+))?\}")
_NAME = re.compile(r"(?P<base>\w+)(?:@(?P<number>[^\[\]@]+))?(?:\[(?P<options>.*)\])?")
_RANGE = re.compile(r"([\[(])\s*(\S+)\s*,\s*(\S+)\s*([\])])")


_MOST_BRACKETS = 10


class WrittenName(NamedTuple):
    """A name as somebody wrote it, cut into its three parts."""

    base: str
    number: str | None
    options: str | None


def split_name(name: str) -> WrittenName:
    """Cut a name into base, number and options; UnknownNameError where it has another form."""
    # Each pair of brackets is a metric within a metric: the parser calls itself for it.
    if name.count("[") > _MOST_BRACKETS:
        raise UnknownNameError(f"{name:.40}... has more than {_MOST_BRACKETS} brackets: nest fewer metrics.")
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise UnknownNameError(
            f"{name!r:.99} is not a metric name: write base@number[option], as in recall@5"
        )
    return WrittenName(match["base"], match["number"] or None, match["options"])


def split_outside_brackets(text: str) -> list[str]:
    """Cut at the commas that are not inside brackets: a name may contain another name."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


class Slot(NamedTuple):
    """One field of a template: how it is written, and whether it is left out at its default."""

    field: str
    key: str
    optional: bool
    spec: str

    def write(self, value: object) -> str:
        if isinstance(value, bool):
            text = str(value).lower()
        elif self.spec:
            text = format(value, self.spec)
        else:
            # All digits: different numbers must give different names, which are read back exactly.
            text = value if isinstance(value, str) else repr(value)
        if self.key:
            return f"{self.key}={text}"
        # A bare option ends at an equals sign: a text that has one of its own is written with its key.
        return f"{self.field}={text}" if "=" in text else text


@dataclass(frozen=True)
class NameTemplate:
    """How a metric's name is made of its fields."""

    base: str
    number: Slot | None = None
    options: tuple[Slot, ...] = ()

    @classmethod
    def parse(cls, text: str) -> NameTemplate:
        """Read a template; ValueError where it has another form."""
        match = _TEMPLATE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a template of a metric name, such as 'brevity@{{words}}'")
        number = None if match["number"] is None else _slot(match["number"], text)
        options = match["options"].split(",") if match["options"] else ()
        return cls(match["base"], number, tuple(_slot(option, text) for option in options))

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.options if self.number is None else (self.number, *self.options)

    def name_of(self, metric: Any) -> str:
        """Write the name of a metric."""
        defaults = {field.name: field.default for field in fields(metric)}

        def written(slot: Slot) -> str:
            value = getattr(metric, slot.field)
            return "" if slot.optional and value == defaults[slot.field] else slot.write(value)

        number = "" if self.number is None else written(self.number)
        options = ",".join(filter(None, map(written, self.options)))
        return f"{self.base}{number and f'@{number}'}{options and f'[{options}]'}"

    def usage(self, made: Any) -> str:
        """Write how a metric class is called: recall@k, mrr[@k], mean_latency[timing_key]."""
        number = self.number
        if number is None:
            at = ""
        else:
            required = any(one.name == number.field and one.default is MISSING for one in fields(made))
            at = f"@{number.field}" if required else f"[@{number.field}]"
        return f"{self.base}{at}{''.join(f'[{slot.field}]' for slot in self.options)}"

    def check(self, parameters: Fields) -> None:
        """Raise ValueError unless the names that this template writes can be read back."""
        missing = [slot.field for slot in self.slots if slot.field not in {one.name for one in parameters}]
        if missing:
            raise ValueError(f"the template of {self.base} names {missing[0]!r}, which is not a field")
        bare = next((slot.field for slot in self.options if not slot.key), None)
        expected = first_number(parameters), first_text(parameters)
        named = self.number and self.number.field, bare
        for field, first in zip(named, expected, strict=True):
            if field is not None and (first is None or first.name != field):
                raise ValueError(f"the template of {self.base} must name {field!r} as key={{{field}}}")


def _slot(text: str, template: str) -> Slot:
    match = _SLOT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} in the template {template!r} is not a {{field}}")
    return Slot(match["field"], match["key"] or "", bool(match["optional"]), match["spec"] or "")


def first_number(parameters: Fields) -> Field[Any] | None:
    """Return the field that the number after @ goes to."""
    numbers = (one for one in parameters if kind_of(one) in ("int", "float") and not one.kw_only)
    return next(numbers, None)


def first_text(parameters: Fields) -> Field[Any] | None:
    """Return the field that an option without a key goes to."""
    return next((one for one in parameters if kind_of(one) == "str"), None)


def kind_of(parameter: Field[Any]) -> str:
    """Return the type of a metric's parameter: "int", "float", "bool" or "str"."""
    annotation = parameter.type
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    # "int | None" is an int here, and so is "typing.Optional[int]".
    return text.removeprefix("typing.").removeprefix("Optional[").removesuffix("]").split(" |")[0]


def arguments_of(name: str, written: WrittenName, parameters: Fields) -> dict[str, object]:
    """Return the arguments that a written name stands for; UnknownNameError where one does not exist."""
    arguments: dict[str, object] = {}
    for key, value in _arguments(name, written, parameters):
        if key in arguments:
            what = f"the metric {name!r} has two values for {key}: {arguments[key]!r} and {value!r}"
            raise UnknownNameError(f"{what}. Write a metric for each, separated by a comma")
        arguments[key] = value
    missing = [one.name for one in parameters if one.default is MISSING and one.name not in arguments]
    if missing:
        example = f"{written.base}@5"
        raise UnknownNameError(f"the metric {name!r} needs its {missing[0]}: write, for example, {example}")
    return arguments


def _arguments(name: str, written: WrittenName, parameters: Fields) -> Iterator[tuple[str, Any]]:
    if written.number is not None:
        parameter = first_number(parameters)
        if parameter is None:
            raise UnknownNameError(f"the metric {name!r} takes no number after @")
        yield parameter.name, _value(name, parameter, written.number)
    for option in filter(None, split_outside_brackets(written.options or "")):
        key, _, value = option.partition("=")
        # An = inside brackets belongs to a name within this name: noise_drop[rouge1[stem=false]].
        if "=" in option and "[" not in key:
            parameter = next((one for one in parameters if one.name == key.strip()), None)
        else:
            parameter, value = first_text(parameters), option
        if parameter is None:
            options = ", ".join(one.name for one in parameters) or "none"
            raise UnknownNameError(f"the metric {name!r} has no option {key!r}; its options are: {options}")
        yield parameter.name, _value(name, parameter, value.strip())


def _value(name: str, parameter: Field[Any], text: str) -> Any:
    readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": _flag, "str": str}
    try:
        return readers.get(kind_of(parameter), str)(text)
    except ValueError:
        raise UnknownNameError(
            f"the metric {name!r}: {parameter.name} must be of type {kind_of(parameter)}, not {text!r}"
        ) from None


def _flag(text: str) -> bool:
    if text.lower() in ("true", "yes", "1"):
        return True
    if text.lower() in ("false", "no", "0"):
        return False
    raise ValueError(text)


class Range(NamedTuple):
    """The numbers that a parameter may have, such as "(0, 1]": above 0 and at most 1."""

    low: float
    high: float
    with_low: bool
    with_high: bool

    @classmethod
    def parse(cls, text: str) -> Range:
        """Read an interval as mathematicians write it; ValueError where it has another form."""
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not an interval such as '(0, 1]'")
        opening, low, high, closing = match.groups()
        return cls(float(low), float(high), opening == "[", closing == "]")

    def contains(self, number: float) -> bool:
        above = number >= self.low if self.with_low else number > self.low
        below = number <= self.high if self.with_high else number < self.high
        return above and below

    def __str__(self) -> str:
        low = f"{'at least' if self.with_low else 'above'} {self.low:g}"
        if math.isinf(self.high):
            return low
        return f"{low} and {'at most' if self.with_high else 'below'} {self.high:g}"


_AT_LEAST_ONE = Range(1, math.inf, True, False)  # of whole numbers: cutoffs and sizes


def check_numbers(metric: Any, ranges: Mapping[str, Range]) -> None:
    """Raise ValueError unless every number of a metric is one and lies in its range."""
    for parameter in fields(metric):
        value, kind = getattr(metric, parameter.name), kind_of(parameter)
        if kind not in ("int", "float") or (value is None and parameter.default is None):
            continue
        allowed = ranges.get(parameter.name, _AT_LEAST_ONE if kind == "int" else None)
        accepted = int if kind == "int" else (int, float)
        is_number = isinstance(value, accepted) and not isinstance(value, bool)
        if is_number and (allowed is None or allowed.contains(value)):
            continue
        noun = "a whole number" if kind == "int" else "a number"
        wanted = noun if allowed is None else f"{noun} {'of ' if allowed.with_low else ''}{allowed}"
        raise ValueError(f"{parameter.name} must be {wanted}, not {value!r}")


# Names that other tools have for metrics: tools | names | our metric | how the definitions differ. Case,
# hyphens, underscores and a last "metric" do not matter. N is the number that the name was written with.
_ELSEWHERE = """
ragas, DeepEval | context_precision contextual_precision llm_context_precision_with_reference\
 llm_context_precision_without_reference non_llm_context_precision_with_reference\
 id_based_context_precision | map[ragas] | relevant_docs take the place of its judge; umbrela_ndcg@N has a\
 judge
ragas, DeepEval, promptfoo, MLflow | context_recall contextual_recall llm_context_recall\
 non_llm_context_recall id_based_context_recall retrieval_sufficiency | recall@N | by relevant_docs, not\
 by a judge
ragas, DeepEval, promptfoo, TruLens, MLflow | context_relevancy context_relevance contextual_relevancy\
 retrieval_relevance | judged_relevance@N | graded by a judge; precision@N needs relevant_docs instead
ragas | context_entity_recall context_entities_recall | contains_answer | by required texts; there is no\
 metric of entities
ragas, DeepEval, promptfoo, TruLens, MLflow | faithfulness groundedness context_faithfulness\
 retrieval_groundedness faithfulness_with_hhem | judged_faithfulness | one verdict per claim and passage;\
 grounding_overlap needs no judge
DeepEval, RAGChecker | hallucination hallucination_rate | judged_contradiction | claims that a passage\
 contradicts; claim_hallucination is that of RAGChecker
ragas, DeepEval, promptfoo, TruLens, MLflow | answer_relevancy answer_relevance response_relevancy\
 relevance_to_query | judged_answer_relevance | one verdict of a judge; query_answer_similarity needs no\
 judge
ragas, MLflow, LlamaIndex | answer_correctness correctness answer_accuracy correctness_evaluator\
 factuality model_graded_qa model_graded_fact model_graded_closedqa | judged_correctness | one verdict of\
 a judge; token_f1 needs no judge
ragas | factual_correctness | claim_f1[check=judge] | the same precision, recall and F1 of claims
ragas | noise_sensitivity | claim_noise_sensitivity[check=judge] | as RAGChecker defines it
ragas | answer_similarity semantic_similarity_score similar | semantic_similarity | the same idea
ragas | non_llm_string_similarity levenshtein | chrf | another distance of characters, 0 to 100
ragas, DeepEval, promptfoo | aspect_critic rubrics_score rubrics simple_criteria g_eval geval llm_rubric\
 instance_rubrics guidelines conversational_g_eval dag | rubric[FILE] | a file describes each grade
DeepEval | arena_g_eval select_best | auepora compare --judge | both orders are asked
ragas, DeepEval | tool_call_accuracy tool_call_f1 tool_correctness agent_goal_accuracy task_completion |\
 rubric[FILE] | tool calls are kept in extra.tool_calls, and are not scored by themselves
DeepEval | bias toxicity pii_leakage misuse role_violation non_advice | rubric[FILE] | there is no metric\
 of harm
ragas, promptfoo | bleu_score | bleu | as sacreBLEU computes it, 0 to 100
ragas, promptfoo | rouge_score rouge_n rouge | rougeL | ROUGE-L; rouge1 and rouge2 are separate
ragas | chrf_score | chrf | as sacreBLEU computes it, 0 to 100
ir_measures, trec_eval | ap map_cut average_precision mean_average_precision | map | the same definition
ir_measures, trec_eval | rr recip_rank reciprocal_rank mean_reciprocal_rank | mrr | the same definition
ir_measures, trec_eval, ranx | ndcg ndcg_cut | ndcg@N | the same definition, with linear gains
ir_measures, trec_eval | p prec | precision@N | the same definition
ir_measures, trec_eval | r recall | recall@N | the same definition
ir_measures, trec_eval, LlamaIndex | hit_rate success hits | hit@N | the same definition
ir_measures, trec_eval | rprec set_rprec | r_precision | the same definition
ir_measures | judged | judged@N | the same definition
RAGChecker | overall_precision | claim_precision[check=judge] | a share, not percent
RAGChecker | overall_recall | claim_recall[check=judge] | a share, not percent
RAGChecker | overall_f1 | claim_f1[check=judge] | a share, not percent
RAGChecker | context_utilization self_knowledge | claim_faithfulness[check=judge] | the nearest of its\
 diagnoses
promptfoo, Inspect, ragas | contains icontains contains_all icontains_all includes string_presence |\
 contains_answer | the required texts are in the dataset
promptfoo, Inspect | equals match exact pattern answer | exact_match | case, punctuation and articles do\
 not matter
promptfoo | is_refusal | rejection_rate | of the questions that are labelled as unanswerable
promptfoo | latency | p95_latency | a quantile instead of a limit per test
"""


def metric_hint(name: str) -> str | None:
    """Return what to say of a name that another tool has: our metric, and the difference in definition.

    >>> metric_hint("P_10")
    'It is a name of ir_measures, trec_eval. The nearest here is precision@10: the same definition.'
    """
    written = re.match(r"(?P<base>[^@\[]*?)(?:[@_.](?P<number>[0-9]{1,9}))?(?:\[|$)", name.strip())
    if written is None:
        return None
    base, number = written["base"], written["number"]
    for line in _ELSEWHERE.strip().splitlines():
        tools, names, ours, difference = (part.strip() for part in line.split("|"))
        if _squeezed(base) in map(_squeezed, names.split()):
            found = ours.replace("@N", f"@{number or 5}")
            if number is not None and ours in ("map", "mrr"):
                found = f"{ours}@{number}"
            differs = difference.replace("@N", f"@{number or 5}")
            return f"It is a name of {tools}. The nearest here is {found}: {differs}."
    return None


def _squeezed(name: str) -> str:
    return re.sub(r"[-_ ]|metric$", "", name.casefold())
