"""Serve pages to a browser on this machine: the flags, the address, and the loop until Ctrl-C."""

from __future__ import annotations

import os
import sys
import threading
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import MissingDependencyError, StorageError, install_command
from . import echo

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from uvicorn import Server

    from ..pages.security import Access


def check_can_serve(command: str) -> None:
    """Raise MissingDependencyError if the packages of the extra `view` are not installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        what = f"auepora {command} needs starlette and uvicorn: {install_command('view')}"
        raise MissingDependencyError(what) from error


def serve_pages(args: Namespace, application: Callable[[Access], ASGIApp], *, home: str, about: str) -> None:
    """Print the address of an application, open it in a browser, and serve it until Ctrl-C.

    In a notebook or an interpreter, return and serve it in the background, until Python ends.
    """
    from ..pages.security import Access, listening_socket
    from ..pages.server import server_of

    try:
        listening = listening_socket(args.port or 0)
    except OSError as error:
        what = f"Port {args.port} cannot be used: {error.strerror or error}. Choose another --port."
        raise StorageError(what) from error
    access = Access(listening.getsockname()[1], home=home)
    server = server_of(application(access))
    is_session = hasattr(sys, "ps1")  # Python, IPython or a notebook, in which somebody types more
    stop = "It is served until Python ends." if is_session else "Stop with Ctrl-C."
    echo.say(f"{about}, at\n\n  {access.address}\n\nThe address works once. {stop}")
    sys.stdout.flush()  # in a pipe, somebody waits for the address
    if not args.no_open:
        _open(access.address)  # the browser waits until the server answers
    if is_session:
        _serve_in_background(server, lambda: server.run(sockets=[listening]))
        return
    with listening, suppress(KeyboardInterrupt):  # how a server is stopped
        server.run(sockets=[listening])


def _serve_in_background(server: Server, serve: Callable[[], None]) -> None:
    """Serve until the main thread ends."""

    def stop() -> None:
        threading.main_thread().join()
        server.should_exit = True

    threading.Thread(target=stop, daemon=True).start()
    threading.Thread(target=serve).start()


def _open(url: str) -> None:
    """Open a browser if there is a screen: over ssh or in a container there is none."""
    if sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        import webbrowser

        webbrowser.open(url)
