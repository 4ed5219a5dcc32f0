"""The registry of everything that can be added (metrics, formats, executors), and the names of metrics."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

from ..errors import UnknownNameError, did_you_mean, warn_user

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to things. Other packages add theirs by an entry point in `auepora_eval.<kind>s`.

    `modules` says which module registers a name when it is imported, so that only that one is. `base` is the
    class that things are subclasses of, if they are classes. A plug-in that cannot be loaded is a warning.
    """

    def __init__(self, kind: str, modules: Mapping[str, str] | None = None, base: type | None = None) -> None:
        self.kind, self._base = kind, base
        self.modules = dict(modules or {})
        self._things: dict[str, T] = {}
        self._plugins_loaded = False

    def add(self, name: str) -> Callable[[T], T]:
        """Register what is decorated under this name."""

        def register(thing: T) -> T:
            # A name of the library can be registered by its own module only.
            home = self.modules.get(name, "")
            is_new = name not in self._things or _source(self._things[name]) == _source(thing)
            if not is_new or (home and thing.__module__ != home):
                raise ValueError(f"there is a {self.kind} {name!r} already")
            self._things[name] = thing
            return thing

        return register

    def get(self, name: str) -> T:
        """Return the thing of that name, or raise an error with the nearest names."""
        if name not in self._things:
            self._load(name)
        if name not in self._things:
            hint = did_you_mean(name, list(self), f"Known: {', '.join(self)}.", count=3, cutoff=0.5)
            raise UnknownNameError(f"there is no {self.kind} {name!r}. {hint}")
        return self._things[name]

    def __contains__(self, name: str) -> bool:
        # Plug-ins last: to look for them takes 20 ms.
        return name in self._things or name in self.modules or name in set(self)

    def __iter__(self) -> Iterator[str]:
        self._load_plugins()
        return iter(sorted({*self._things, *self.modules}))

    def _load(self, name: str) -> None:
        if name in self.modules:
            import_module(self.modules[name])
        else:
            self._load_plugins()

    def _load_plugins(self) -> None:
        if self._plugins_loaded:
            return
        # Set first: a plug-in that asks for the registry while it loads must not recurse.
        self._plugins_loaded = True
        from importlib.metadata import entry_points

        for point in entry_points(group=f"auepora_eval.{self.kind}s"):
            try:
                thing = point.load()
                if self._base is not None and not (isinstance(thing, type) and issubclass(thing, self._base)):
                    raise TypeError(f"it is not a {self.kind} class")
                self.add(point.name)(thing)
            except Exception as error:  # noqa: BLE001 - the code of another package must not end every command
                package = point.dist.name if point.dist else "another package"
                why = f"{type(error).__name__}: {error}"
                warn_user(f"The {self.kind} {point.name!r} of {package} cannot be used: {why}.")


def _source(thing: Any) -> tuple[str, str]:
    """Return where a thing is defined. A cell or a file that is run again replaces its own definitions."""
    module = getattr(thing, "__module__", "")
    file = getattr(sys.modules.get(module), "__file__", None)
    return file or module, getattr(thing, "__qualname__", str(id(thing)))


# The names of metrics: written from a metric's fields by a template, and read back into arguments.

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


# The module of auepora_eval.metrics that has a metric: reading a name imports this one only.
_MODULES = {
    "additional": (
        "mean_latency latency throughput tokens_per_second time_to_first_token time_per_output_token "
        "failure_rate timeout_rate slo_share"
    ),
    "answers.diversity": "distinct_n distinct_n_corpus self_bleu",
    "answers.grounding": (
        "grounding_overlap grounding_bigrams number_support name_support best_sentence_overlap support_model"
    ),
    "answers.contradiction": "lexical_consistency",
    "answers.numbers": "numeric_match numeric_f1",
    "answers.relevance": "query_coverage query_answer_similarity non_answer_rate semantic_similarity",
    "answers.translation": "bleu chrf chrfpp",
    "citations.claims": (
        "citation_completeness citation_correctness citation_density citation_factual_consistency "
        "citation_hallucination_rate citation_accuracy alce_citation_recall alce_citation_precision "
        "trec_support_precision trec_support_recall"
    ),
    "citations.places": (
        "citation_span_accuracy citation_span_exact citation_span_perfect citation_span_good "
        "citation_precision citation_recall citation_f1 citation_relevance citation_fabricated_rate "
        "citation_out_of_range_rate"
    ),
    "generation_text": (
        "exact_match token_precision token_recall token_f1 contains_answer answer_share "
        "rouge1 rouge2 rougeL_answer rougeLsum"
    ),
    "labels": (
        "label_accuracy label_precision label_recall label_f1 label_macro_f1 label_balanced_accuracy "
        "label_kappa label_mcc"
    ),
    "retrieval.diversity": (
        "lexical_diversity embedding_diversity near_duplicate_rate distinct_source_share subtopic_recall "
        "alpha_ndcg"
    ),
    "retrieval.ranking": "r_precision bpref rbp ndcg_exp judged pairwise_accuracy kendall_tau",
    "retrieval.spans": "span_recall span_precision span_iou",
    "retrieval.text": "query_term_coverage query_doc_similarity",
    "retrieval_basic": "recall precision f1 hit mrr map ndcg",
    "robustness.counterfactual": (
        "counterfactual_accuracy fake_adoption_rate error_detection_rate error_correction_rate "
        "misleading_rate mistake_reappearance_rate"
    ),
    "robustness.noise": (
        "noise_accuracy noise_slope noise_drop noise_retention noise_area flip_rate variant_drop"
    ),
    "robustness.rejection": (
        "rejection_rate over_refusal_rate answer_rate abstention_precision abstention_f1 "
        "abstention_balanced_accuracy answered_accuracy conditioned_score"
    ),
}
# The same of auepora_eval.judges.metrics: metrics that ask a judge, or can.
_JUDGED_MODULES = {
    "answers": "judged_answer_relevance judged_correctness",
    "claims": (
        "claim_precision claim_recall claim_f1 claim_faithfulness claim_hallucination claim_noise_sensitivity"
    ),
    "faithfulness": "judged_faithfulness judged_contradiction unsupported_span_share",
    "nuggets": "nugget_recall",
    "relevance": "judged_relevance umbrela_ndcg",
    "rubric": "rubric",
}
HOMES = {
    name: f"auepora_eval.{package}.{module}"
    for package, modules in (("metrics", _MODULES), ("judges.metrics", _JUDGED_MODULES))
    for module, names in modules.items()
    for name in names.split()
}

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
