"""Visits to a running web app, from the opening of a page to its closing, without a browser."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from app.far_visitor import far_visit
from browser.servers import left_behind, running_app

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def test_visits_leave_nothing_behind(tmp_path: Path) -> None:
    async def visit(address: str) -> int:
        async with far_visit(address) as visitor:
            visitor.press("Play")
            await visitor.until(5)
            return len(visitor.models)

    async def visits(address: str, server: psutil.Process) -> list[dict[str, Any]]:
        found = []
        for together in (1, 1, 1, 3):
            shown = await asyncio.gather(*(visit(address) for _ in range(together)))
            assert set(shown) == {shown[0]}, "each has an Explorer of its own, and all of it"
            found.append(await settled(server, found))
        return found

    async def settled(server: psutil.Process, before: list[dict[str, Any]]) -> dict[str, Any]:
        """What is left once the server has closed its end of a visit, which it does in its own time.

        Visits one after another need no more handles than the ones before; a leak is waited for in vain.
        """
        async with asyncio.timeout(60):
            while True:
                left = left_behind(server, tmp_path)
                if len(before) in (0, 3) or left["handles"] <= min(one["handles"] for one in before):
                    return left
                await asyncio.sleep(0.05)

    with running_app(tmp_path, "--visitors=3") as (address, process):
        found = asyncio.run(visits(address, psutil.Process(process.pid)))
    # The first opens what is used again by those who follow; how much that is depends on how many they are.
    for kind in ("processes", "files"):
        assert found[0][kind] == found[1][kind] == found[2][kind] == found[3][kind]
    assert found[0]["threads"] == found[1]["threads"] == found[2]["threads"]


def test_a_visitor_who_leaves_before_all_of_the_page_was_sent_gives_up_the_place(tmp_path: Path) -> None:
    async def give_up(address: str) -> None:
        _, host, port = address.rstrip("/").replace("//", "").split(":")
        answer, request = await asyncio.open_connection(host, int(port))
        request.write(f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        await answer.readuntil(b"<head>")  # there is a kernel by now
        request.close()
        await request.wait_closed()

    async def visits(address: str, server: psutil.Process) -> None:
        await give_up(address)
        async with asyncio.timeout(250):  # a place to which no page has come is free after 300 s
            while server.children():
                await asyncio.sleep(0.05)
        async with far_visit(address) as visitor:  # the only place is free
            assert visitor.models

    with running_app(tmp_path, "--visitors=1") as (address, process):
        asyncio.run(visits(address, psutil.Process(process.pid)))


def test_a_visitor_at_full_speed_is_asked_to_wait_like_everybody(tmp_path: Path) -> None:
    """All visitors' processes give way to the server, and each is a session of its own to the scheduler."""

    async def visits(address: str, server: psutil.Process) -> None:
        async with far_visit(address) as greedy, far_visit(address) as modest:
            greedy.choose("as fast as possible")
            for visitor in (greedy, modest):
                visitor.press("Play")
                await visitor.until(5)
            kernels = server.children()
            assert len(kernels) == 2
            for kernel in kernels:
                assert kernel.nice() == server.nice() + 5
                assert session_of(kernel.pid) == kernel.pid
                # Threads count as well: none may have taken back what its process gave.
                niceness = {thread_niceness(kernel.pid, thread.id) for thread in kernel.threads()}
                assert niceness == {kernel.nice()}

    with running_app(tmp_path, "--visitors=2") as (address, process):
        asyncio.run(visits(address, psutil.Process(process.pid)))


def _fields(path: Path) -> list[str]:
    return path.read_text().rpartition(")")[2].split()


def session_of(process: int) -> int:
    return int(_fields(Path(f"/proc/{process}/stat"))[3])


def thread_niceness(process: int, thread: int) -> int:
    return int(_fields(Path(f"/proc/{process}/task/{thread}/stat"))[16])
