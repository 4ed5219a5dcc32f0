"""Draw docs/images/demo-comparison.svg, the picture in the README, from the two runs of `auepora demo`.

python scripts/draw_readme_picture.py [FOLDER OF THE STORED RUNS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

from auepora_eval import EvaluationResultsStorage, compare_runs

COLOURS = {"better": "#1a7f37", "worse": "#cf222e", "inconclusive": "#6e7781"}
OUT = Path(__file__).parents[1] / "docs" / "images" / "demo-comparison.svg"


def main(folder: str) -> None:
    """Draw each metric's change with its 95% interval and the verdict."""
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "auepora", "font.family": "DejaVu Sans", "font.size": 11})
    runs = EvaluationResultsStorage(folder)
    comparison = compare_runs(runs.load_run("demo-bm25"), runs.load_run("demo-hybrid"))
    # Metrics without an interval (times of a single run, no sample that differs) have nothing to draw.
    metrics = [metric for metric in comparison.metrics if metric.effect.interval is not None][::-1]
    figure, axes = plt.subplots(figsize=(9.6, 4.4))
    for height, metric in enumerate(metrics):
        low, high = metric.effect.interval or (metric.effect.change, metric.effect.change)
        verdict = str(metric.verdict)
        colour = COLOURS.get(verdict, COLOURS["inconclusive"])
        axes.plot([low, high], [height, height], color=colour, linewidth=3, solid_capstyle="round")
        axes.plot([metric.effect.change], [height], "o", color=colour, markersize=8)
        axes.text(1.02, height, verdict, color=colour, va="center", transform=axes.get_yaxis_transform())
    axes.axvline(0, color="#24292f", linewidth=1)
    axes.set_yticks(range(len(metrics)), [metric.name for metric in metrics])
    axes.set_title("hybrid compared with bm25: change and 95% interval", loc="left", fontsize=12)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#d0d7de", linewidth=0.6)
    figure.tight_layout()
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "data/evaluation/results")
