"""The same questions through objects of LangChain, LlamaIndex and Haystack, where these are installed."""

from __future__ import annotations

import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full

EXAMPLE = Path(__file__).parents[2] / "examples" / "frameworks" / "same_questions.py"
PACKAGES = ("langchain_core", "llama_index.core", "haystack")

# Seven of eight: the last question shares no word with the document that is said to be its gold.
RECALL = 7 / 8

# Frameworks send usage statistics in the background and ignore failures: only a hook sees the attempt.
OFFLINE = """
import runpy, sys

def refuse(event, args):
    reaching = event == "socket.connect" and isinstance(args[1], tuple)
    if reaching or event == "socket.getaddrinfo":
        print("NETWORK", event, args[1:], file=sys.stderr)
        raise PermissionError("there is no network here")

sys.addaudithook(refuse)
del sys.argv[0]  # the script sees its own arguments
sys.path.insert(0, ".")
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def ran() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", OFFLINE, str(EXAMPLE)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)


@pytest.mark.parametrize("package", PACKAGES)
def test_recall_is_the_same_with_every_framework(ran: subprocess.CompletedProcess[str], package: str) -> None:
    if find_spec(package.partition(".")[0]) is None:
        assert f"{package} is not installed" in ran.stderr
        pytest.skip(f"{package} is not installed")
    assert f"{package}: recall@2 {RECALL:.4f}" in ran.stdout.splitlines()


def test_nothing_is_sent(ran: subprocess.CompletedProcess[str]) -> None:
    assert "NETWORK" not in ran.stderr


def test_plain_function_has_the_same_recall() -> None:
    example: dict[str, Any] = runpy.run_path(str(EXAMPLE))
    documents = example["DOCUMENTS"]

    def system(query: str) -> tuple[list[Any], str]:
        return [(name, documents[name]) for name in example["ranked"](query)], "x"

    assert example["recall_of"](system) == RECALL
