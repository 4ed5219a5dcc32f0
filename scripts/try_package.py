"""Build the package, check it, and try the wheel with every Python at hand: `make package`.

In a new environment of each version, outside of this folder, the wheel alone must print what README says, and
its command must start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LINK = re.compile(r"\]\(([^)]+)\)")
OURS = re.compile(
    r"https://(?:github|raw\.githubusercontent)\.com/auepora/auepora-eval/(?:blob/)?v[\d.]+/([^#]+)"
)


def run(*words: object, folder: Path = ROOT) -> str:
    """Run a command and return what it prints; end with its messages if it fails."""
    wide = {**os.environ, "COLUMNS": "100"}  # as the output in README
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=wide, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_links(wheel: Path) -> None:
    """Check that the description on an index has absolute links only, and that each of ours has its file."""
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith("METADATA")]
        links = LINK.findall(archive.read(metadata).decode())
    relative = [link for link in links if not link.startswith("https://")]
    files = [match[1] for link in links if (match := OURS.match(link))]
    missing = [name for name in files if not (ROOT / name).is_file()]
    if relative or missing or not files:
        sys.exit(f"links of README on an index: relative {relative}, without a file {missing}")


def interpreters() -> dict[str, str]:
    """Return the path of each Python that the package supports and this machine has."""
    found = {}
    for line in PROJECT["classifiers"]:
        if match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line):
            name = f"python{match[1]}"
            installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{match[1]}.*/bin/{name}"))
            for path in [*map(str, installed), shutil.which(name)]:
                if (
                    path
                    and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
                ):
                    found[match[1]] = path
    return found


def readme_example() -> tuple[str, list[str]]:
    """Return the first Python block of README, and the words that it prints."""
    text = (ROOT / "README.md").read_text("utf-8")
    code, printed = re.findall(
        r"^```(?:python|text title=\"Output\")\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )[:2]
    return code, printed.split()


def try_wheel(python: str, wheel: Path, folder: Path) -> None:
    """Install the wheel in a new environment and run the first block of README."""
    run(python, "-m", "venv", folder / "venv")
    environment = folder / "venv" / "bin"
    run(environment / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", wheel)
    code, words = readme_example()
    printed = run(environment / "python", "-W", "ignore", "-c", code, folder=folder).split()
    if any(word not in printed for word in words):
        sys.exit(f"{python}: README prints {words}, the wheel {printed}")
    assert run(environment / "auepora", "--version", folder=folder).split()[-1] == PROJECT["version"]
    run(environment / "auepora", "metrics", "recall@5", folder=folder)


def main() -> None:
    """Build, check and try the package."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir())
    [wheel] = DIST.glob("*.whl")
    check_links(wheel)
    for version, python in interpreters().items():
        with tempfile.TemporaryDirectory() as folder:
            try_wheel(python, wheel, Path(folder))
        print(f"{wheel.name}: works with Python {version}")


if __name__ == "__main__":
    main()
