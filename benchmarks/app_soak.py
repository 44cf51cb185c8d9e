"""Whether visitors of the web app, one after another, leave anything behind.

    .venv/bin/python benchmarks/app_soak.py
    .venv/bin/python benchmarks/app_soak.py --visitors 25 --minutes 20

Each opens the page, uploads a table, plays, and closes the page; they are played, without a browser
(`tests/app/far_visitor.py`). After each the processes, files, open handles and memory of the server are
counted. The first visit loads what later ones use again, so what is left is what the last has more than the
first. Linux only. Ends with an error if that is more than a little memory.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from app_visitors import LARGE_TABLE, far_visit, running_app, say, share_of_memory

ALLOWED = 10.0  # MB of the server's memory, which Python does not always give back


def counts(process: int, folder: Path) -> dict[str, int]:
    server = psutil.Process(process)
    return {
        "processes": len(server.children(recursive=True)),
        "files": sum(path.is_file() for path in folder.rglob("*")),
        "handles": server.num_fds(),
        "threads": server.num_threads(),
    }


async def visit(address: str, seconds: float) -> int:
    """One visit; returns how many frames were seen."""
    end = time.monotonic() + seconds
    async with far_visit(address) as visitor:
        await visitor.upload("large.csv", LARGE_TABLE[:500_000])
        visitor.press("Play")
        await visitor.until(2)
        while time.monotonic() < end:
            await visitor.until(len(visitor.frames) + 1)
        return len(visitor.frames)


async def visits(
    address: str, server: subprocess.Popen[bytes], folder: Path, options: argparse.Namespace
) -> list[tuple[dict[str, int], float]]:
    """What is there after each visit, and the memory of the server."""
    found = []
    for number in range(1, options.visitors + 1):
        frames = await visit(address, 60.0 * options.minutes / options.visitors)
        there = counts(server.pid, folder)
        memory = share_of_memory(psutil.Process(server.pid))
        found.append((there, memory))
        told = ", ".join(f"{kind} {number}" for kind, number in there.items())
        say(f"visitor {number:2}: {frames:4} frames; {told}; server {memory:.0f} MB")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for what visitors leave behind.")
    parser.add_argument("--visitors", type=int, default=25)
    parser.add_argument("--minutes", type=float, default=20.0, help="for all of them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running_app(Path(name), "--visitors=1") as (address, server):
        found = asyncio.run(visits(address, server, Path(name), options))
    (first, memory_before), (last, memory_after) = found[0], found[-1]
    say(f"more than after the first visitor: {memory_after - memory_before:+.1f} MB")
    return 0 if first == last and memory_after - memory_before < ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main())
