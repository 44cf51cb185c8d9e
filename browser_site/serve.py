"""Serves a folder of web pages on this computer: ``python serve.py`` in the folder of the site.

Each site has a copy of this file, for example on a USB stick, to be run where this package is not installed.
So it uses only Python's standard library. A server is needed because browsers do not run such pages from
files, nor JavaScript that is served as plain text, as Windows may configure it.
"""

import argparse
import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class SiteHandler(SimpleHTTPRequestHandler):
    """Serves files with their right types; browsers may cache them but check for changes."""

    extensions_map = {  # noqa: RUF012 - that of the parent is one
        **SimpleHTTPRequestHandler.extensions_map,
        ".css": "text/css",
        ".html": "text/html",
        ".js": "text/javascript",
        ".json": "application/json",
        ".mjs": "text/javascript",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
    }

    def end_headers(self) -> None:
        """Have browsers check whether a cached page has changed."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing: a page loads hundreds of files."""


def serve(folder: Path, port: int, browser: bool = True) -> int:
    """Serve a folder on localhost until Ctrl-C, with port 0 on any free port; return the exit code."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(SiteHandler, directory=str(folder)))
    except OSError as error:
        print(f"Cannot serve on port {port}: {error.strerror}. Choose another:  --port 8001", file=sys.stderr)
        return 1
    address = f"http://localhost:{server.server_port}/"
    print(f"{address}  (stop with Ctrl-C)", flush=True)
    if browser:
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        server.server_close()
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve this folder on this computer.")
    parser.add_argument("--port", type=int, default=8000, help="port on localhost (default: %(default)s)")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    options = parser.parse_args()
    sys.exit(serve(Path(__file__).resolve().parent, options.port, browser=not options.no_browser))
