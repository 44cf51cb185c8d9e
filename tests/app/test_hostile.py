"""Attacks on a running web page: each ends at most its own visit.

The server has a limit of address space, so that a fault of this kind ends the server, not the machine. All
requests go to the loopback interface, and their number and time are bounded.
"""

import asyncio
import contextlib
import json
import random
import re
import struct
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from app.far_visitor import PROTOCOL, FarVisitor, connect, cookies_of, far_visit, open_page
from browser.app_server import running_app
from jupyter_server.services.kernels.connection.base import serialize_msg_to_ws_v1
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.websocket import WebSocketClosedError

from ewens_widgets.app.guard import LARGEST_MESSAGE, Allowance, MessageError, check, unpack

# Tornado's client warns of connections that were refused, which is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")


def packed(kind: str = "comm_msg", channel: str = "shell", **content: object) -> bytes:
    """A message as pages send them."""
    header = {"msg_id": uuid4().hex, "msg_type": kind, "session": "s", "username": "", "version": "5.3"}
    parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
    return serialize_msg_to_ws_v1(parts, channel)


def framed(parts: list[bytes], channel: str = "shell") -> bytes:
    return serialize_msg_to_ws_v1(parts, channel)


WIDGET = {"comm_id": "widget", "data": {"method": "update", "state": {}}}


def test_messages_of_a_page_are_passed_on() -> None:
    assert check(packed(**WIDGET))
    assert check(packed("comm_open", comm_id="c", target_name="jupyter.widget.control", data={}))
    assert check(packed("kernel_info_request"))
    channel, parts = unpack(packed(**WIDGET))
    assert channel == "shell"
    assert json.loads(parts[3]) == WIDGET


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"1234567",
        "text",
        b"\xff" * 40,
        (30_000_000).to_bytes(8, "little") + b"\0" * 64,
        struct.pack("<8Q", 7, 64, 5, 69, 71, 73, 75, 77) + b"shell",  # parts that end before they begin
        struct.pack("<8Q", 7, 64, 69, 71, 73, 75, 77, 2**60) + b"shell{}{}{}{}",  # and beyond the message
        packed(**WIDGET)[:-1],
        packed(**WIDGET) + b"more",
        framed([b"{}"] * 3),
        framed([b"{}"] * 200),
        framed([b"[]", b"{}", b"{}", b"{}"]),
        framed([b"\xff", b"{}", b"{}", b"{}"]),
        framed([b"[" * 100_000, b"{}", b"{}", b"{}"]),
        packed(comm_id=["no", "name"], data={}),
        packed(comm_id="c", data=[1]),
    ],
)
def test_what_no_page_sends_is_refused(message: bytes | str) -> None:
    with pytest.raises(MessageError):
        check(message)


@pytest.mark.parametrize(
    "message",
    [
        packed("execute_request", code="1"),
        packed("shutdown_request", "control", restart=False),
        packed("kernel_info_request", "control"),
        packed("comm_open", comm_id="c", target_name="jupyter.widget", data={}),
        framed([b'{"msg_type": ["comm_msg"]}', b"{}", b"{}", b"{}"]),
        framed([b"{}", b"{}", b"{}", b"{}"]),
    ],
)
def test_kinds_that_no_page_needs_are_dropped(message: bytes) -> None:
    assert not check(message)


def test_an_allowance_fills_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("ewens_widgets.app.guard.time.monotonic", lambda: now[0])
    allowance = Allowance(rate=2.0, reserve=10.0)
    assert [allowance.take(4) for _ in range(3)] == [True, True, False]
    now[0] = 3.0
    assert allowance.take(4)
    assert not allowance.take(1)


@contextmanager
def limited_app(folder: Path, *options: str) -> Iterator[tuple[str, psutil.Process]]:
    """The web page, whose server may not have more than 3 GB of addresses."""
    import resource

    with running_app(folder, *options) as (address, server):
        resource.prlimit(server.pid, resource.RLIMIT_AS, (3 * 10**9, resource.RLIM_INFINITY))
        yield address, psutil.Process(server.pid)


async def fetched(address: str, **headers: str) -> HTTPResponse:
    request = HTTPRequest(address, headers=headers, connect_timeout=150, request_timeout=150)
    return await AsyncHTTPClient().fetch(request, raise_error=False)


@asynccontextmanager
async def undisturbed(address: str) -> AsyncIterator[FarVisitor]:
    """A visitor who plays meanwhile, and gets frames before and after."""
    async with far_visit(address) as visitor:
        visitor.press("Play")
        await visitor.until(3)
        yield visitor
        before = len(visitor.frames)
        async with asyncio.timeout(60):
            await visitor.until(before + 3)


@on_linux
@pytest.mark.slow
def test_messages_that_lie_about_their_size_end_one_connection(tmp_path: Path) -> None:
    async def attack(address: str, server: psutil.Process) -> None:
        async with undisturbed(address):
            for message in (b"\xff" * 40, (30_000_000).to_bytes(8, "little") + b"\0" * 64, b"x" * 17 * 2**20):
                kernel, cookies = await open_page(address)
                link = await connect(address, kernel, cookies)
                started = time.monotonic()
                with contextlib.suppress(WebSocketClosedError):  # closed while it is being sent
                    await link.write_message(message, binary=True)
                while await asyncio.wait_for(link.read_message(), 30) is not None:
                    pass
                assert time.monotonic() - started < 15
            with pytest.raises(HTTPClientError, match="400"):
                await connect(address, kernel, cookies, protocols=())
        assert server.memory_info().rss < 400e6

    with limited_app(tmp_path, "--visitors=5") as (address, server):
        asyncio.run(attack(address, server))


@on_linux
@pytest.mark.slow
def test_requests_are_answered_for_this_host_and_this_browser_only(tmp_path: Path) -> None:
    async def attack(address: str) -> None:
        port = address.rstrip("/").rpartition(":")[2]
        assert (await fetched(address, Host=f"evil.example:{port}")).code == 403
        reflected = await fetched(f"{address}?theme=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
        assert reflected.code == 400
        assert b"<script>" not in reflected.body
        assert (await fetched(f"{address}?data={'a' * 3000}")).code == 414
        for path in ("logout", "login", "voila/templates/lab/static/x.js", "api/kernels", "api/contents"):
            assert (await fetched(address + path)).code in {403, 404}, path

        page = await fetched(f"{address}?theme=dark")
        assert page.code == 200
        for name, value in {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}.items():
            assert page.headers[name] == value
        assert "frame-ancestors 'self'" in page.headers["Content-Security-Policy"]
        assert b"cdn.jsdelivr" not in page.body
        kernel = re.search(r'"kernelId": *"([\w-]+)"', page.body.decode())[1]
        own, other = cookies_of(page), cookies_of(await fetched(address))
        assert (await fetched(f"{address}api/kernels/{kernel}", Cookie=own)).code == 200
        for cookies in ("", other):
            for path in (f"api/kernels/{kernel}", f"visits/{kernel}"):
                assert (await fetched(address + path, Cookie=cookies)).code == 403
            with pytest.raises(HTTPClientError, match="403"):
                await connect(address, kernel, cookies)
        with pytest.raises(HTTPClientError, match="403"):
            await connect(address, kernel, own, Origin="http://evil.example")
        links = [await connect(address, kernel, own) for _ in range(4)]
        with pytest.raises(HTTPClientError, match="429"):
            await connect(address, kernel, own)
        for link in links:
            link.close()

    with limited_app(tmp_path, "--visitors=4") as (address, _):
        asyncio.run(attack(address))


@on_linux
@pytest.mark.slow
def test_a_visit_whose_process_ends_says_so_and_is_not_started_again(tmp_path: Path) -> None:
    async def end(address: str, server: psutil.Process) -> None:
        kernel, cookies = await open_page(address)
        link = await connect(address, kernel, cookies)
        (process,) = server.children()
        asked = asyncio.create_task(fetched(f"{address}visits/{kernel}", Cookie=cookies))
        await asyncio.sleep(0.5)
        assert not asked.done()  # the question is held while the visit goes on
        process.kill()
        async with asyncio.timeout(60):  # a second or two; a busy machine is no fault
            answer = await asked
        assert json.loads(answer.body) is False
        link.close()
        async with far_visit(address) as visitor:  # the only place is free
            assert visitor.models

    with limited_app(tmp_path, "--visitors=1") as (address, server):
        asyncio.run(end(address, server))


@on_linux
@pytest.mark.slow
def test_a_process_that_has_too_little_memory_ends_its_visit(tmp_path: Path) -> None:
    """With far too little memory no process comes up; the server goes on."""

    async def come(address: str) -> None:
        kernel, cookies = await open_page(address)
        async with asyncio.timeout(60):
            answer = await fetched(f"{address}visits/{kernel}", Cookie=cookies)
            while json.loads(answer.body):
                answer = await fetched(f"{address}visits/{kernel}", Cookie=cookies)

    with limited_app(tmp_path, "--visitors=2", "--memory=300") as (address, server):
        with pytest.raises((HTTPClientError, AssertionError, TimeoutError)):
            asyncio.run(come(address))
        assert server.is_running()
        assert asyncio.run(fetched(f"{address}visits/none")).code == 200


@on_linux
@pytest.mark.slow
def test_plain_requests_take_half_of_the_places_for_a_minute_at_most(tmp_path: Path) -> None:
    async def crowd(address: str) -> None:
        plain = [asyncio.create_task(fetched(address)) for _ in range(12)]
        async with asyncio.timeout(170):
            async with far_visit(address) as visitor:
                assert visitor.models
            codes = {(await one).code for one in plain}
        assert codes <= {200, 503, 599}

    with limited_app(tmp_path, "--visitors=4") as (address, _):
        asyncio.run(crowd(address))


def fuzzed(rng: random.Random, widgets: list[str]) -> bytes | str:
    """Some message: frames, JSON, and what widgets are told, from nearly right to nonsense."""
    values: list[Any] = [
        None,
        True,
        -1,
        10**400,
        1e308,
        "x" * 1000,
        [],
        {},
        [[[[]]]],
        {"a": {"b": [1]}},
        "\0",
        "NaN",
    ]
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randbytes(rng.randrange(200))
    message = bytearray(packed(**WIDGET))
    if kind == 1:
        for _ in range(rng.randrange(1, 6)):
            message[rng.randrange(len(message))] = rng.randrange(256)
        return bytes(message)
    if kind == 2:
        return bytes(message[: rng.randrange(len(message))])
    data: Any = {"method": rng.choice(["update", "custom", "request_state", "request_states", "", None, 3])}
    keys = ["value", "index", "state", "kind", "name", "viewer", "number", "children", "layout", "msg_id"]
    data["state"] = {rng.choice(keys): rng.choice(values) for _ in range(3)}
    data["content"] = {rng.choice(keys): rng.choice(values) for _ in range(3)}
    if kind == 3:
        data = rng.choice([{}, data["state"], {"method": "update"}, {"method": "custom"}])
    data["buffer_paths"] = rng.choice([[], [["value"]], [[1]], None, "x"])
    return packed(comm_id=rng.choice(widgets), data=data)


@on_linux
@pytest.mark.nightly
@pytest.mark.parametrize("count", [10_000])
def test_ten_thousand_messages_end_no_server_and_no_other_visit(tmp_path: Path, count: int) -> None:
    rng = random.Random(37)  # noqa: S311 - a test

    async def attack(address: str, server: psutil.Process) -> None:
        async with undisturbed(address):
            async with far_visit(address) as victim:
                widgets = [*victim.models, "no widget"]
            before, sent = server.memory_info().rss, 0
            async with asyncio.timeout(540):
                while sent < count:
                    kernel, cookies = await open_page(address)
                    for _ in range(20):
                        link = await connect(address, kernel, cookies)
                        for _ in range(100):
                            sent += 1
                            await link.write_message(fuzzed(rng, widgets), binary=True)
                            if link.close_code is not None:
                                break
                        link.close()
                        await asyncio.sleep(0)
                    token = re.search(r"_xsrf=([^;]+)", cookies)
                    assert token is not None
            assert server.memory_info().rss - before < 50e6

    with limited_app(tmp_path, "--visitors=8") as (address, server):
        asyncio.run(attack(address, server))


def test_the_largest_message_holds_an_upload() -> None:
    assert LARGEST_MESSAGE > 3 * 5_000_000
    assert PROTOCOL.startswith("v1.")
