# SPDX-License-Identifier: Apache-2.0
"""A web server on this machine that serves a folder by ranges, and counts what it sends."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Sent:
    """What a server was asked for.

    Attributes:
        url: of the folder.
        bodies: the size of each answer that had one.
        heads: how many questions for a size there were.
    """

    url: str
    bodies: list[int] = field(default_factory=list)
    heads: int = 0


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path
    sent: Sent
    delay: float

    def _send(self, body: bool) -> None:
        time.sleep(self.delay)
        path = self.folder / self.path.lstrip("/").partition("?")[0]
        if not path.is_file():
            self.send_error(404)
            return
        size = path.stat().st_size
        start, end = 0, size - 1
        wanted = self.headers.get("Range")
        if wanted and wanted != "bytes=0-":
            start, end = map(int, wanted.removeprefix("bytes=").split("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end}/{size}")
        else:
            self.send_response(200)
            self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end + 1 - start))
        self.end_headers()
        if body:
            self.sent.bodies.append(end + 1 - start)
            with path.open("rb") as file:
                file.seek(start)
                self.wfile.write(file.read(end + 1 - start))
        else:
            self.sent.heads += 1

    def do_GET(self) -> None:
        self._send(True)

    def do_HEAD(self) -> None:
        self._send(False)

    def log_message(self, *_: Any) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def serve(folder: Path, delay: float = 0.0) -> Iterator[Sent]:
    """Serve a folder until the end of the block; each answer waits `delay` seconds first."""
    handler = type("Handler", (_Handler,), {"folder": folder, "delay": delay})
    with _Server(("127.0.0.1", 0), handler) as server:
        handler.sent = sent = Sent(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield sent
        finally:
            server.shutdown()
            thread.join()
