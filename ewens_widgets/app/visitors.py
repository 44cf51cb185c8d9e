"""A kernel for each visitor, for no more visitors than there is room for, and for no longer than needed.

A visitor has a place from the moment the page is asked for until its kernel is told to stop: by the page,
when it is closed or loaded again, or by the server, when the page has lost its connection or nobody has
touched it for long.
"""

import asyncio
import shutil
import time
from datetime import UTC, datetime
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.web import HTTPError
from traitlets import Float, Int, List, Unicode

__all__ = ["OwnKernelSpecs", "VisitorKernels"]

_GLANCE = 0.1


class OwnKernelSpecs(KernelSpecManager):
    """Kernels of the environment that the server runs in, whatever else is installed for the user."""

    kernel_dirs = List(Unicode(), [])

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return the kernel without its history file, which visitors would share, and at lower priority.

        A chain at full speed takes what processors there are. What is passed on to the pages, and what
        these send, goes first, so that everybody's pictures keep moving.
        """
        spec = super().get_kernel_spec(kernel_name)
        politely = ["nice", "-n", "5"] if shutil.which("nice") else []
        options = ["--HistoryManager.enabled=False", "--IPKernelApp.log_level=ERROR"]
        spec.argv = [*politely, *spec.argv, *options]
        return spec


class VisitorKernels(AsyncMappingKernelManager):
    """Starts no more kernels than visitors are wanted."""

    visitors = Int(10, config=True, help="Most visitors at a time.")

    patience = Float(3.0, config=True, help="Seconds to wait for a place before a visitor is turned away.")

    absence = Float(60.0, config=True, help="Seconds after which a kernel without a page is stopped.")

    def __init__(self, **keywords: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(**keywords)
        self._arriving: set[str] = set()
        self._leaving: set[str] = set()
        self._visited: set[str] = set()

    @property
    def taken(self) -> int:
        """Number of places that are taken."""
        return len((set(self.list_kernel_ids()) | self._arriving) - self._leaving)

    async def start_kernel(self, **keywords: Any) -> str:  # noqa: ANN401 - passed on
        """Start a kernel if there is a place; otherwise the visitor gets the page for error 503."""
        # A page that is loaded again gives up its old place at about the same time as it asks for a new one.
        deadline = time.monotonic() + self.patience
        while self.taken >= self.visitors:
            if time.monotonic() > deadline:
                raise HTTPError(503, f"it has room for {self.visitors}", reason="All places are taken")
            await asyncio.sleep(_GLANCE)
        kernel_id = self.new_kernel_id()
        self._arriving.add(kernel_id)
        try:
            return str(await super().start_kernel(kernel_id=kernel_id, **keywords))
        finally:
            self._arriving.discard(kernel_id)

    async def shutdown_kernel(self, kernel_id: str, now: bool = False, restart: bool = False) -> None:
        """Stop a kernel; its place is free at once."""
        self._leaving.add(kernel_id)
        try:
            await super().shutdown_kernel(kernel_id, now=now, restart=restart)
        finally:
            self._leaving.discard(kernel_id)
            self._visited.discard(kernel_id)

    def notify_connect(self, kernel_id: str) -> None:
        """Note that a page has connected to its kernel."""
        super().notify_connect(kernel_id)
        self._visited.add(kernel_id)

    async def cull_kernel_if_idle(self, kernel_id: str) -> None:
        """Stop a kernel whose page is gone, besides those that nobody has touched for long.

        A page that has not connected yet is not gone: when many come at once, loading it takes its time.
        """
        kernel = self.get_kernel(kernel_id)
        silent = (datetime.now(UTC) - kernel.last_activity).total_seconds()
        is_left = kernel_id in self._visited and not self._kernel_connections.get(kernel_id, 0)
        if is_left and silent > self.absence:
            self.log.info("Nobody is connected to kernel %s any more", kernel_id)
            await self.shutdown_kernel(kernel_id)
        else:
            await super().cull_kernel_if_idle(kernel_id)
