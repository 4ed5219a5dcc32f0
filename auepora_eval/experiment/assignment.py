"""Which variant a sample goes to: decided by its id alone, so that it is the same today and tomorrow.

Each variant gets a number from the hash of experiment, variant and sample, larger the smaller its share; the
smallest wins (weighted rendezvous hashing). New samples move no others, and a new variant takes samples away
from the old ones without moving any between them. Samples of one cluster go to one variant together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from ..core.dataset import EvaluationDataset, PartOfDataset, canonical_json
from ..core.types import EvaluationSample
from ..stats.significance import sample_ratio_p

MISMATCH_BELOW = 0.001  # the usual level: one experiment in a thousand is suspected for nothing


def assigned_variant(experiment_id: str, unit: str, shares: Mapping[str, float]) -> str:
    """The variant that a sample, or a cluster of samples, goes to."""
    # Exponentials with the shares as rates: each is the smallest with a probability equal to its share.
    return min(shares, key=lambda variant: (_draw(experiment_id, variant, unit) / shares[variant], variant))


def _draw(experiment_id: str, variant: str, unit: str) -> float:
    """An exponential number that depends on the three texts and on nothing else."""
    digest = sha256(canonical_json([experiment_id, variant, unit])).digest()
    # The half keeps the number above 0, so that the logarithm exists.
    return -math.log((int.from_bytes(digest[:8], "big") + 0.5) / 2**64)


def unit_of(sample: EvaluationSample) -> str:
    """What is assigned: the cluster of a sample, or else the sample."""
    cluster = sample.metadata.get("cluster")
    # The prefix keeps a cluster and a sample of the same name apart.
    return f"sample {sample.sample_id}" if cluster is None else f"cluster {cluster}"


def assigned_samples(
    dataset: EvaluationDataset, experiment_id: str, variant: str, shares: Mapping[str, float]
) -> EvaluationDataset:
    """Return the samples of a dataset that go to one variant."""

    def choose(samples: Iterable[EvaluationSample]) -> Iterator[EvaluationSample]:
        for sample in samples:
            if assigned_variant(experiment_id, unit_of(sample), shares) == variant:
                yield sample

    return PartOfDataset(dataset, choose)


@dataclass(frozen=True)
class RatioCheck:
    """Whether the variants have as many units as their shares say; units are samples, or clusters of them."""

    counts: Mapping[str, int]
    shares: Mapping[str, float]
    p_value: float

    @property
    def is_mismatch(self) -> bool:
        return self.p_value < MISMATCH_BELOW


def ratio_check(units: Mapping[str, int], shares: Mapping[str, float]) -> RatioCheck:
    """The check on how many units each variant has."""
    counts = {variant: units.get(variant, 0) for variant in shares}
    return RatioCheck(counts, dict(shares), sample_ratio_p(list(counts.values()), list(shares.values())))
