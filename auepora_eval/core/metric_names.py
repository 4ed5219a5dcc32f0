"""The names of metrics: written from a metric's fields by a template, and read back into arguments.

What other tools call them is at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, NamedTuple

from ..errors import UnknownNameError

Fields = Sequence[Field[Any]]

# base, number after the @, options in brackets: of a template, and of a name that somebody wrote.
_TEMPLATE = re.compile(r"(?P<base>\w+)(?:@(?P<number>\{[^{}]+\}))?(?:\[(?P<options>[^\[\]]+)\])?")
_SLOT = re.compile(r"(?:(?P<key>\w+)=)?\{(?P<field>\w+)(?P<optional>\?)?(?::(?P<spec>[^{}]+))?\}")
_NAME = re.compile(r"(?P<base>\w+)(?:@(?P<number>[^\[\]@]+))?(?:\[(?P<options>.*)\])?")


class WrittenName(NamedTuple):
    """A name as somebody wrote it, cut into its three parts."""

    base: str
    number: str | None
    options: str | None


def split_name(name: str) -> WrittenName:
    """Cut a name into base, number and options; UnknownNameError where it has another form."""
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
    number: Slot | None
    options: tuple[Slot, ...]

    @classmethod
    def parse(cls, text: str) -> NameTemplate:
        """Read a template; ValueError where it has another form."""
        match = _TEMPLATE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a template of a metric name, such as 'brevity@{{words}}'")
        number = None if match["number"] is None else _slot(match["number"], text)
        options = match["options"].split(",") if match["options"] else ()
        return cls(match["base"], number, tuple(_slot(option, text) for option in options))

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
        at = ""
        if self.number is not None:
            name = self.number.field
            required = any(one.name == name and one.default is MISSING for one in fields(made))
            at = f"@{name}" if required else f"[@{name}]"
        return f"{self.base}{at}{''.join(f'[{slot.field}]' for slot in self.options)}"


def _slot(text: str, template: str) -> Slot:
    match = _SLOT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} in the template {template!r} is not a {{field}}")
    return Slot(match["field"], match["key"] or "", bool(match["optional"]), match["spec"] or "")


def kind_of(parameter: Field[Any]) -> str:
    """Return the type of a metric's parameter: "int", "float", "bool" or "str"."""
    annotation = parameter.type
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    # "int | None" is an int here, and so is "typing.Optional[int]".
    return text.removeprefix("typing.").removeprefix("Optional[").removesuffix("]").split(" |")[0]


def arguments_of(name: str, written: WrittenName, parameters: Fields) -> dict[str, object]:
    """Return the arguments that a written name stands for; UnknownNameError where one does not exist."""
    texts: list[tuple[Field[Any], str]] = []
    if written.number is not None:
        numbers = (one for one in parameters if kind_of(one) in ("int", "float") and not one.kw_only)
        number = next(numbers, None)
        if number is None:
            raise UnknownNameError(f"the metric {name!r} takes no number after @")
        texts.append((number, written.number))
    for option in filter(None, split_outside_brackets(written.options or "")):
        key, _, value = option.partition("=")
        # An = inside brackets belongs to a name within this name: noise_drop[rouge1[stem=false]].
        if "=" in option and "[" not in key:
            parameter = next((one for one in parameters if one.name == key.strip()), None)
        else:
            parameter, value = next((one for one in parameters if kind_of(one) == "str"), None), option
        if parameter is None:
            options = ", ".join(one.name for one in parameters) or "none"
            raise UnknownNameError(f"the metric {name!r} has no option {key!r}; its options are: {options}")
        texts.append((parameter, value.strip()))
    arguments: dict[str, object] = {}
    for parameter, text in texts:
        value = _value(name, parameter, text)
        if parameter.name in arguments:
            what = f"two values for {parameter.name}: {arguments[parameter.name]!r} and {value!r}"
            raise UnknownNameError(f"the metric {name!r} has {what}. Write a metric for each, with a comma")
        arguments[parameter.name] = value
    missing = [one.name for one in parameters if one.default is MISSING and one.name not in arguments]
    if missing:
        example = f"{written.base}@5"
        raise UnknownNameError(f"the metric {name!r} needs its {missing[0]}: write, for example, {example}")
    return arguments


def _value(name: str, parameter: Field[Any], text: str) -> Any:
    readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": _flag, "str": str}
    try:
        return readers.get(kind_of(parameter), str)(text)
    except (ValueError, KeyError):
        hint = ". Put a comma between two metrics" if " " in text else ""
        raise UnknownNameError(
            f"the metric {name!r}: {parameter.name} must be of type {kind_of(parameter)}, not {text!r}{hint}"
        ) from None


def _flag(text: str) -> bool:
    return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]


def check_numbers(metric: Any, ranges: Mapping[str, str]) -> None:
    """Raise ValueError unless every number of a metric is one and lies in its range, such as "(0, 1]"."""
    for parameter in fields(metric):
        value, kind = getattr(metric, parameter.name), kind_of(parameter)
        if kind not in ("int", "float") or (value is None and parameter.default is None):
            continue
        # Whole numbers are cutoffs and sizes.
        allowed = ranges.get(parameter.name, "[1, inf)" if kind == "int" else "(-inf, inf)")
        is_number = isinstance(value, int if kind == "int" else (int, float)) and not isinstance(value, bool)
        if not is_number or not _is_within(value, allowed):
            noun = "a whole number" if kind == "int" else "a number"
            wanted = f"{noun} of at least 1" if allowed == "[1, inf)" else f"{noun} in {allowed}"
            raise ValueError(f"{parameter.name} must be {wanted}, not {value!r}")


def _is_within(number: float, interval: str) -> bool:
    """Return whether a number lies in an interval as mathematicians write it: (0, 1] is above 0 up to 1."""
    low, high = map(float, interval[1:-1].split(","))
    above = low <= number if interval[0] == "[" else low < number
    return above and (number <= high if interval[-1] == "]" else number < high)


# Our metric, and what other tools call it, or what of theirs it is nearest to: ragas, DeepEval, promptfoo,
# TruLens, MLflow, RAGChecker, Inspect, LlamaIndex, trec_eval and ir_measures. Case, hyphens, underscores and
# a last "metric" do not matter. N is the number that the name was written with.
_ELSEWHERE = """
map[ragas]: context_precision contextual_precision llm_context_precision_with_reference
  llm_context_precision_without_reference non_llm_context_precision_with_reference
  id_based_context_precision
recall@N: r recall context_recall contextual_recall llm_context_recall non_llm_context_recall
  id_based_context_recall retrieval_sufficiency
judged_relevance@N: context_relevancy context_relevance contextual_relevancy retrieval_relevance
judged_faithfulness: faithfulness groundedness context_faithfulness retrieval_groundedness
  faithfulness_with_hhem
judged_contradiction: hallucination hallucination_rate
judged_answer_relevance: answer_relevancy answer_relevance response_relevancy relevance_to_query
judged_correctness: answer_correctness correctness answer_accuracy correctness_evaluator factuality
  model_graded_qa model_graded_fact model_graded_closedqa
claim_f1[check=judge]: factual_correctness overall_f1
claim_precision[check=judge]: overall_precision
claim_recall[check=judge]: overall_recall
claim_faithfulness[check=judge]: context_utilization self_knowledge
claim_noise_sensitivity[check=judge]: noise_sensitivity
semantic_similarity: answer_similarity semantic_similarity_score similar
rubric[FILE]: aspect_critic rubrics_score rubrics simple_criteria g_eval geval llm_rubric instance_rubrics
  guidelines conversational_g_eval dag tool_call_accuracy tool_call_f1 tool_correctness agent_goal_accuracy
  task_completion bias toxicity pii_leakage misuse role_violation non_advice
contains_answer: context_entity_recall context_entities_recall contains icontains contains_all icontains_all
  includes string_presence
exact_match: equals match exact pattern answer
bleu: bleu_score
rougeL: rouge_score rouge_n rouge
chrf: chrf_score non_llm_string_similarity levenshtein
map: ap map_cut average_precision mean_average_precision
mrr: rr recip_rank reciprocal_rank mean_reciprocal_rank
ndcg@N: ndcg ndcg_cut
precision@N: p prec
hit@N: hit_rate success hits
r_precision: rprec set_rprec
judged@N: judged
rejection_rate: is_refusal
p95_latency: latency
"""


def metric_hint(name: str) -> str | None:
    """Return what to say of a name that another tool has: our metric.

    >>> metric_hint("P_10")
    'The nearest here is precision@10: auepora metrics precision@10 shows its definition.'
    """
    written = re.match(r"(?P<base>[^@\[]*?)(?:[@_.](?P<number>[0-9]{1,9}))?(?:\[|$)", name.strip())
    if written is None:
        return None
    base, number = _squeezed(written["base"]), written["number"]
    for entry in _ELSEWHERE.strip().replace("\n  ", " ").splitlines():
        ours, _, names = entry.partition(": ")
        if base in map(_squeezed, names.split()):
            found = ours.replace("@N", f"@{number or 5}")
            if number is not None and ours in ("map", "mrr"):
                found = f"{ours}@{number}"
            return f"The nearest here is {found}: auepora metrics {found} shows its definition."
    return None


def _squeezed(name: str) -> str:
    return re.sub(r"[-_ ]|metric$", "", name.casefold())
