"""Take the pictures of the terminal in docs/images from the demo: `python scripts/take_terminal_pictures.py`.

Each command runs in a terminal of 96 columns, and rich makes an SVG of what it prints, which stays small.
"""

from __future__ import annotations

import os
import pty
import re
import sys
import tempfile
from contextlib import chdir
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
COLUMNS = 96
PICTURES = {
    "terminal-compare.svg": "compare demo-bm25 demo-hybrid",
    "terminal-gate.svg": "gate demo-hybrid --baseline demo-bm25 --min recall@5=0.8 --no-regression recall@5",
}


def printed(command: str) -> str:
    """Return what a command prints on a terminal, colours included."""
    read: list[bytes] = []

    def keep(descriptor: int) -> bytes:
        read.append(os.read(descriptor, 1 << 16))
        return read[-1]

    os.environ |= {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    pty.spawn([sys.executable, "-m", "auepora_eval", *command.split()], keep)
    return b"".join(read).decode().replace("\r\n", "\n")


def draw(command: str, name: str) -> None:
    """Write the picture of a command and its output."""
    console = Console(record=True, width=COLUMNS, file=StringIO())
    console.print(Text.from_ansi(f"$ auepora {command}\n{printed(command)}".rstrip()))
    svg = console.export_svg(title="auepora", theme=DIMMED_MONOKAI, unique_id=Path(name).stem)
    # Its fonts are on another server: a picture loads nothing.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (IMAGES / name).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        printed("demo")
        for name, command in PICTURES.items():
            draw(command, name)
