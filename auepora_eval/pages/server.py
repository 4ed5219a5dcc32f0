"""Serve pages: from routes to functions, with files of our own, and errors as pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route as StarletteRoute

from ..errors import AueporaError, NotFoundError, UnknownNameError
from .layout import error_page, html_of, waiting_page
from .requests import Ask, Download, Page, Redirect, Reply, Route
from .security import Access, Guard
from .workspace import NotReadyError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from .workspace import Workspace

_PACKAGE = "auepora_eval"
# The only files that are served, by their addresses.
ASSETS: Mapping[str, tuple[str, str]] = {
    "/style.css": ("pages/style.css", "text/css"),
    "/view.js": ("pages/view.js", "text/javascript"),
    "/favicon.svg": ("pages/favicon.svg", "image/svg+xml"),
}
_MOST_FIELDS = 1_000  # of a form


def application(
    workspace: Workspace,
    access: Access,
    routes: Iterable[Route],
    *,
    places: bool = True,
    guard: Callable[..., ASGIApp] = Guard,
) -> ASGIApp:
    """Return the application, behind its guard."""
    table = [
        StarletteRoute(
            route.path,
            partial(_answer, workspace, route, places),
            methods=["POST" if route.changes else "GET"],
        )
        for route in routes
    ]
    table += [StarletteRoute(address, partial(_asset, address), methods=["GET"]) for address in ASSETS]
    return guard(Starlette(routes=table, exception_handlers={404: partial(_not_found, places)}), access)


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Return the server of an application. `run(sockets=[...])` answers until Ctrl-C or SIGTERM."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,  # uvicorn's own would close the log handlers of the program that opens the view
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,  # second that a page may take to end
        )
    )


async def _answer(workspace: Workspace, route: Route, places: bool, request: Request) -> Response:
    address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    ask = Ask(workspace, request.path_params, await _fields(request), address)
    # In a thread: a page may read files, and others must not wait for it.
    return await run_in_threadpool(_response, ask, route, places)


async def _fields(request: Request) -> dict[str, list[str]]:
    """Return the fields of the query, or of the form that was sent."""
    text = (
        (await request.body()).decode("utf-8", "replace") if request.method == "POST" else request.url.query
    )
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return {}


def _response(ask: Ask, route: Route, places: bool) -> Response:
    reply: Reply
    try:
        reply = route.handler(ask)
    except NotReadyError as waiting:
        reply = waiting_page(str(waiting))
    except AueporaError as error:
        status = 404 if isinstance(error, NotFoundError | UnknownNameError) else 400
        reply = error_page(status, str(error))
    return _sent(reply, ask, places)


def _sent(reply: Reply, ask: Ask, places: bool) -> Response:
    if isinstance(reply, Redirect):
        return RedirectResponse(reply.address, 303)
    if isinstance(reply, Download):
        named = {"content-disposition": f'attachment; filename="{reply.name}.csv"'}
        return StreamingResponse(_csv(reply.rows), media_type="text/csv; charset=utf-8", headers=named)
    return HTMLResponse(html_of(reply, ask, places=places), reply.status)


def _csv(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of a CSV file, some hundred at once."""
    text = io.StringIO()
    lines = csv.writer(text)
    for count, row in enumerate(rows, start=1):
        # A text that starts like a formula would be one in a spreadsheet.
        lines.writerow([f"'{cell}" if _is_formula(cell) else cell for cell in row])
        if count % 500 == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _is_formula(cell: Any) -> bool:
    return isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))


async def _asset(address: str, request: Request) -> Response:
    path, kind = ASSETS[address]
    return Response(files(_PACKAGE).joinpath(path).read_bytes(), media_type=kind)


async def _not_found(places: bool, request: Request, error: Exception) -> Response:
    page: Page = error_page(404, "There is no such page.")
    return HTMLResponse(html_of(page, places=places), 404)
