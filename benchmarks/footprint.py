"""Compare the cost of installing auepora-eval with that of its peers: packages, megabytes, CPU time.

    python benchmarks/footprint.py                      # all peers, a few minutes the first time
    python benchmarks/footprint.py --peers ir_measures  # the one that the bars refer to

Each contestant gets its own virtual environment, and all are timed in turn within one run. The exit code is
0 if all bars hold, 1 if one is missed, 2 if one could not be checked. Linux and macOS.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 7
EXIT_OK, EXIT_MISSED, EXIT_UNCHECKED = 0, 1, 2

# The installers come with the virtual environment, whoever is measured.
INSTALLERS = ("pip", "setuptools", "wheel", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")

# One relevant document at rank 2: nDCG@10 is 1 / log2(3), whoever computes it.
OUR_FIRST_RESULT = """
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.metrics.retrieval_basic import NDCGAtK
miss, hit = Document("d1", ""), Document("d2", "")
sample = EvaluationSample("q1", "", relevant_docs=[hit])
found = [RetrievedDocument(miss, 2.0, 1), RetrievedDocument(hit, 1.0, 2)]
value = NDCGAtK(10).compute([sample], [SystemOutputs(found, Response(""))]).value
"""
IR_MEASURES_FIRST_RESULT = """
import ir_measures
measure = ir_measures.nDCG @ 10
value = ir_measures.calc_aggregate([measure], {"q1": {"d2": 1}}, {"q1": {"d1": 2.0, "d2": 1.0}})[measure]
"""
CHECK_FIRST_RESULT = """
if round(value, 6) != 0.63093:
    raise SystemExit(f"nDCG@10 should be 0.63093, not {value}")
"""


@dataclass(frozen=True)
class Contestant:
    """A package to install and measure; `first_result` is a program that computes one nDCG@10."""

    name: str
    requirement: str
    import_it: str
    first_result: str = ""


BARE = Contestant("bare-python", "", "pass")
OURS = Contestant("auepora-eval", str(ROOT), "import auepora_eval", OUR_FIRST_RESULT)
PEERS = (
    Contestant("ir_measures", "ir_measures", "import ir_measures", IR_MEASURES_FIRST_RESULT),
    Contestant("deepeval", "deepeval", "import deepeval"),
    Contestant("inspect-ai", "inspect-ai", "import inspect_ai"),
)


@dataclass
class Row:
    """One line of the table. None is "not measured"; `errors` says why, by the cell's name."""

    name: str
    version: str = ""
    packages: int | None = None
    megabytes: float | None = None
    import_ms: float | None = None
    first_result_ms: float | None = None
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """A program whose CPU time goes into one cell of the table."""

    row: Row
    cell: str
    python: Path
    code: str


@dataclass(frozen=True)
class Bar:
    """A limit of our installation. `value` is None if it could not be checked."""

    what: str
    value: float | None
    limit: float

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "NOT CHECKED"
        return "holds" if self.value <= self.limit else "MISSED"

    def __str__(self) -> str:
        value = "?" if self.value is None else f"{self.value:.4g}"
        return f"{self.verdict}: {self.what} {value} (at most {self.limit:g})"


def main(arguments: Sequence[str] | None = None) -> int:
    args = parse_arguments(arguments)
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    contestants = [BARE, OURS, *(peer for peer in PEERS if peer.name in args.peers)]
    rows = measure(contestants, work)
    bars = check_bars(rows)
    print(as_json(rows, bars) if args.json else as_markdown(rows, bars))
    return exit_code(bars)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = [peer.name for peer in PEERS]
    parser = argparse.ArgumentParser(description="Compare the size and the start of auepora-eval with peers.")
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / "build" / "bench" / "footprint",
        metavar="DIR",
        help="where the virtual environments are kept (default: build/bench/footprint)",
    )
    parser.add_argument("--peers", nargs="*", choices=names, default=names, help="default: all of them")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(arguments)


def measure(contestants: Iterable[Contestant], work: Path) -> list[Row]:
    """Install every contestant, then time them in turn. A contestant that fails keeps its row."""
    rows: list[Row] = []
    programs: list[Program] = []
    for contestant in contestants:
        log(f"installing {contestant.name} ...")
        row = Row(contestant.name)
        rows.append(row)
        environment = work / f"{contestant.name}-py{platform.python_version()}"
        error = install(contestant, environment)
        if error:
            row.errors["import_ms"] = f"not installed: {error}"
            continue
        weigh(row, environment)
        programs += programs_of(contestant, row, environment)
    time_in_turn(programs, work)
    return rows


def install(contestant: Contestant, environment: Path) -> str:
    """Create the contestant's environment, or keep the one that pip would not change.

    Ours is created every time, so that a dropped dependency does not remain. Return "" or
    the last line of the error.
    """
    if contestant in PEERS and is_current(contestant, environment):
        return ""
    steps = [[sys.executable, "-m", "venv", "--clear", str(environment)]]
    if contestant.requirement:
        steps.append(pip(environment, "install", "--quiet", contestant.requirement))
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(environment, ignore_errors=True)
            return last_line(done.stderr or done.stdout)
    return ""


def is_current(contestant: Contestant, environment: Path) -> bool:
    """Whether the contestant is installed and pip knows nothing newer (or has no index to ask)."""
    if normal_name(contestant.name) not in installed(environment):
        return False
    dry_run = ("install", "--dry-run", "--upgrade", "--quiet", "--report", "-")
    done = subprocess.run(
        pip(environment, *dry_run, contestant.requirement), capture_output=True, text=True, check=False
    )
    return done.returncode != 0 or not json.loads(done.stdout)["install"]


def pip(environment: Path, *arguments: str) -> list[str]:
    return [str(python_of(environment)), "-m", "pip", "--disable-pip-version-check", *arguments]


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def site_packages(environment: Path) -> set[Path]:
    """Return where pip puts packages: one folder, or two if pure and compiled ones are separate."""
    base = {"base": str(environment), "platbase": str(environment)}
    paths = sysconfig.get_paths("venv", vars=base)
    return {Path(paths[scheme]).resolve() for scheme in ("purelib", "platlib")}


def installed(environment: Path) -> dict[str, str]:
    """The version of each installed package by its normal name, without the installers."""
    found = distributions(path=[str(path) for path in site_packages(environment)])
    versions = {normal_name(package.metadata["Name"]): package.version for package in found}
    return {name: version for name, version in versions.items() if name not in INSTALLERS}


def normal_name(package: str) -> str:
    """Return the spelling of a package's name by which indexes compare.

    >>> normal_name("Inspect_AI")
    'inspect-ai'
    """
    return re.sub(r"[-_.]+", "-", package).lower()


def weigh(row: Row, environment: Path) -> None:
    """Enter the version, the number of packages and the megabytes (1 MB is 1,000,000 bytes)."""
    versions = installed(environment)
    row.version = versions.get(normal_name(row.name), platform.python_version())
    row.packages = len(versions)
    row.megabytes = sum(size_of(path) for path in site_packages(environment)) / 1e6


def size_of(folder: Path) -> int:
    """Bytes in the files of a site-packages folder, without installers and compiled bytecode."""
    total = 0
    for entry in folder.iterdir():
        if is_installer(entry.name) or entry.name == "__pycache__":
            continue
        files = entry.rglob("*") if entry.is_dir() else [entry]
        total += sum(f.lstat().st_size for f in files if not f.is_dir() and "__pycache__" not in f.parts)
    return total


def is_installer(name: str) -> bool:
    """Whether an entry of site-packages is an installer or its metadata (`pip-23.2.1.dist-info`)."""
    return name in INSTALLERS or re.sub(r"-[^-]*\.dist-info$", "", name) in INSTALLERS


def programs_of(contestant: Contestant, row: Row, environment: Path) -> list[Program]:
    python = python_of(environment)
    programs = [Program(row, "import_ms", python, contestant.import_it)]
    if contestant.first_result:
        code = contestant.first_result + CHECK_FIRST_RESULT
        programs.append(Program(row, "first_result_ms", python, code))
    return programs


def time_in_turn(programs: Iterable[Program], folder: Path) -> None:
    """Enter each program's best CPU time of several fresh processes, one round after the other.

    A busy moment of the machine then hits all contestants alike. The first call, which may compile
    bytecode, is not counted; a program that fails in it is not timed.
    """
    able = []
    for program in programs:
        log(f"timing {program.row.name} ...")
        done = call(program, folder)
        if done.returncode:
            program.row.errors[program.cell] = f"failed: {last_line(done.stderr)}"
        else:
            able.append(program)
    for _ in range(ROUNDS):
        for program in able:
            milliseconds = cpu_milliseconds(program, folder)
            best = getattr(program.row, program.cell)
            setattr(program.row, program.cell, milliseconds if best is None else min(best, milliseconds))


def call(program: Program, folder: Path) -> subprocess.CompletedProcess[str]:
    # -I: neither the source tree in the current folder nor a PYTHON* variable takes part.
    # A benchmark is not a user of deepeval, so its telemetry should not count it as one.
    return subprocess.run(
        [str(program.python), "-I", "-c", program.code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "DEEPEVAL_TELEMETRY_OPT_OUT": "1"},
    )


def cpu_milliseconds(program: Program, folder: Path) -> float:
    """CPU time, user and system, of one call of the program, from the start of Python to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call(program, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def check_bars(rows: Iterable[Row]) -> list[Bar]:
    by_name = {row.name: row for row in rows}
    ours = by_name[OURS.name]
    reference = by_name.get("ir_measures", Row("ir_measures"))
    return [
        Bar("import CPU, times that of ir_measures:", ratio(ours.import_ms, reference.import_ms), 1.0),
        Bar("packages:", ours.packages, 14),
        Bar("MB, times those of ir_measures:", ratio(ours.megabytes, reference.megabytes), 1.3),
    ]


def ratio(value: float | None, reference: float | None) -> float | None:
    return None if value is None or not reference else value / reference


def exit_code(bars: Iterable[Bar]) -> int:
    verdicts = {bar.verdict for bar in bars}
    if "MISSED" in verdicts:
        return EXIT_MISSED
    return EXIT_UNCHECKED if "NOT CHECKED" in verdicts else EXIT_OK


def as_markdown(rows: Sequence[Row], bars: Iterable[Bar]) -> str:
    """A table with each value's ratio to that of ir_measures in brackets, then the bars."""
    reference = next((row for row in rows if row.name == "ir_measures"), Row("ir_measures"))
    lines = [
        "| | version | packages | MB | import, CPU ms | first nDCG@10, CPU ms |",
        "|---|---|---:|---:|---:|---:|",
        *(table_line(row, reference) for row in rows),
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores; best of {ROUNDS} calls each, in turn.",
        "In brackets: times the value of ir_measures.",
        "",
        *(f"- {bar}" for bar in bars),
    ]
    return "\n".join(lines)


def table_line(row: Row, reference: Row) -> str:
    measured = (cell(row, reference, name) for name in ("megabytes", "import_ms", "first_result_ms"))
    packages = "-" if row.packages is None else str(row.packages)
    return f"| {' | '.join((row.name, row.version or '-', packages, *measured))} |"


def cell(row: Row, reference: Row, name: str) -> str:
    """Return a value and its ratio, or the reason why there is none."""
    value: float | None = getattr(row, name)
    if value is None:
        return row.errors.get(name, "-").replace("|", "/")
    times = ratio(value, getattr(reference, name))
    return f"{value:.1f}" if times is None else f"{value:.1f} ({times:.2f}×)"


def as_json(rows: Iterable[Row], bars: Iterable[Bar]) -> str:
    report = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "rounds": ROUNDS,
        "rows": [asdict(row) for row in rows],
        "bars": [{**asdict(bar), "verdict": bar.verdict} for bar in bars],
    }
    return json.dumps(report, indent=2)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
