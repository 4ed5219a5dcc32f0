"""A Ray cluster of several nodes on this machine, in a process of its own: it outlives the drivers of a test.

    python -m tests.calls.ray_nodes 1 1 1      nodes with one processor each

It says the address, then does what it is told, line by line ("remove 2": that node dies), until nothing more
comes. Every port is on loopback, nothing is reported, and no file is left.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
_PATIENCE = 60.0  # seconds that Ray has to end what it started


class Nodes:
    """The cluster as a test sees it: where it is, what a driver needs in its environment."""

    def __init__(self, process: subprocess.Popen[str], environment: dict[str, str]) -> None:
        self._process, self.environment = process, environment
        self.address = self._said()

    def workers(self) -> list[int]:
        """The processes that work on tasks."""
        return [process.pid for process, words in _processes(self.environment["RAY_TMPDIR"]) if _works(words)]

    def remove(self, node: int) -> None:
        """Kill a node, with all that runs on it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"remove {node}\n")
        self._process.stdin.flush()
        assert self._said() == "removed"

    def end(self) -> None:
        """Shut the cluster down."""
        _, err = self._process.communicate(timeout=_PATIENCE)
        assert self._process.returncode == 0, err[-2000:]

    def _said(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1][-2000:]
        return line.strip()


@contextmanager
def ray_nodes(*processors: int) -> Iterator[Nodes]:
    """A cluster with so many processors on each node; afterwards none of its processes is left."""
    # A short name: a path of a socket has at most 107 characters, and Ray adds some 80.
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    environment = loopback_only(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.calls.ray_nodes", *map(str, processors)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        nodes = Nodes(process, environment)
        yield nodes
        nodes.end()
        assert left_over(folder) == []
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def loopback_only(folder: str) -> dict[str, str]:
    """The environment of a Ray that keeps its files in this folder, and talks to this machine only."""
    return {
        **os.environ,
        "RAY_TMPDIR": folder,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),  # else Ray would write one into the home folder
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # which means: on loopback only
    }


def left_over(folder: str) -> list[str]:
    """The processes of a cluster that are still there when it has had time to end."""
    end = time.monotonic() + _PATIENCE
    while (found := _processes(folder)) and time.monotonic() < end:
        time.sleep(0.2)
    return [words[:100] for _, words in found]


def _works(words: str) -> bool:
    return words.startswith("ray::_Worker")


def _processes(folder: str) -> list[tuple[psutil.Process, str]]:
    """The processes whose Ray keeps its files in this folder, and what they are."""
    found = []
    for process in psutil.process_iter(["environ", "cmdline", "status"]):
        told = process.info
        ours = (told["environ"] or {}).get("RAY_TMPDIR") == folder and told["cmdline"]
        if ours and process.pid != os.getpid() and told["status"] != psutil.STATUS_ZOMBIE:
            found.append((process, " ".join(told["cmdline"])))
    return found


def main(processors: list[int]) -> None:
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 100_000_000}  # a machine of CI may have little memory to share
    head = {"num_cpus": processors[0], "include_dashboard": False, **small}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.head_node, *(cluster.add_node(num_cpus=count, **small) for count in processors[1:])]
    print(cluster.address, flush=True)
    for line in sys.stdin:
        cluster.remove_node(nodes[int(line.split()[1])], allow_graceful=False)
        print("removed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]])
