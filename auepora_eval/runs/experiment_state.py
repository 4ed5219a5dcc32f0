"""What is there of a variant's run already, and whether it can be gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from ..core.dataset import EvaluationDataset
from ..core.plan import EvaluationPlan
from ..core.runner import AueporaEvaluator, name_of
from ..errors import StorageError
from .budgets import BUDGETS
from .journal import HEADER, read_header, stored_places
from .scoring import predictions_at, score_predictions
from .storage import EvaluationResultsStorage, read_results
from .writer import RUN_FILES


class OtherVariantError(StorageError):
    """What is there cannot be gone on with: it is of another variant, other settings or other samples."""


class State(Enum):
    """How far a variant's run is, and what has changed since."""

    NOTHING = "nothing is there"
    BEGUN = "it was begun"
    FINISHED = "it is finished"
    LACKS_METRICS = "it is finished, but for metrics that came to the plan since"
    OTHER_SAMPLES = "it was on other samples"
    OTHER_SETTINGS = "it was run with other settings"


def stored_state(
    storage: EvaluationResultsStorage,
    name: str,
    identity: Mapping[str, Any],
    sha256: str,
    plan: EvaluationPlan,
) -> State:
    """What is there under a run's id; OtherVariantError if that is no run of this variant at all."""
    folder = storage.run_folder(name)
    if storage.is_finished(name):
        results = read_results(storage.find(name))
        configuration, metadata = _mapping(results.get("configuration")), _mapping(results.get("metadata"))
        on, metrics = metadata.get("dataset_sha256"), configuration.get("metrics") or ()
        state = State.FINISHED
        if any(metric.name not in metrics for metric in plan.metrics):
            state = State.LACKS_METRICS
    elif (folder / HEADER).is_file():
        header = read_header(folder)
        configuration, on, state = (
            _mapping(header.get("configuration")),
            header.get("dataset_sha256"),
            State.BEGUN,
        )
    else:
        return State.NOTHING
    before = _mapping(configuration.get("experiment"))
    if any(before.get(key) != identity[key] for key in ("experiment_id", "variant_id")):
        whose = (
            f"of variant {before['variant_id']!r:.80} of {before['experiment_id']!r:.80}"
            if before
            else "of its own"
        )
        raise OtherVariantError(f"{name} is a run {whose}. Choose another experiment_id or variant_id.")
    if _without_budgets(before) != _without_budgets(identity):
        return State.OTHER_SETTINGS
    return state if on == sha256 else State.OTHER_SAMPLES


def refuse_other_variant(state: State, name: str, *, answers_known: bool) -> None:
    """OtherVariantError if going on would mix two runs, or ask again what was paid for."""
    if state is State.OTHER_SETTINGS:
        what = f"{name} was begun with other settings."
        raise OtherVariantError(f"{what} Go on with those, or begin again with --force.")
    if state is State.OTHER_SAMPLES and not answers_known:
        raise OtherVariantError(
            f"{name} was begun on other samples. Go on with those, or ask all of them again with --force. "
            "An experiment that has 'cache: FOLDER' from the start is asked only what is new."
        )


def score_again(
    evaluator: AueporaEvaluator,
    samples: EvaluationDataset,
    plan: EvaluationPlan,
    storage: EvaluationResultsStorage,
    name: str,
) -> None:
    """Score the stored outputs of a finished run with the plan of today; the system is not called."""
    folder = storage.run_folder(name)
    outputs = stored_places(folder) or predictions_at(folder / RUN_FILES[1])
    score_predictions(
        samples,
        outputs,
        plan,
        storage,
        system_name=name_of(evaluator.system),
        evaluation_id=name,
        top_k=evaluator.top_k,
        seed=evaluator.seed,
        configuration=evaluator.settings(),
        force=True,
    )


def _without_budgets(identity: Mapping[str, Any]) -> dict[str, Any]:
    """What decides answers: a budget that is spent may be raised, and the run goes on."""
    settings = _mapping(identity.get("settings"))
    return {**identity, "settings": {key: value for key, value in settings.items() if key not in BUDGETS}}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
