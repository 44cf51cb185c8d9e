"""One process at a time in a folder.

The lock belongs to the process and ends with it, however it ends; a file that merely exists would stay after
a `kill -9`, and stand in the way of whoever resumes.
"""

import contextlib
import errno
import sys
from pathlib import Path

from ewens_widgets.sampling.chains.faults import ChainsError

__all__ = ["LOCK", "FolderLock"]

LOCK = ".lock"


class FolderLock:
    """A lock on a folder, held from the beginning until `release`; Windows has no such locks.

    Parameters
    ----------
    folder
        An existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / LOCK).open("a", encoding="utf-8")
        if sys.platform != "win32":
            self._lock(folder)

    def _lock(self, folder: Path) -> None:
        import fcntl

        try:
            # A record lock: forked children do not inherit it, so none can outlive its owner with it.
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            if fault.errno not in {errno.EACCES, errno.EAGAIN}:
                return  # A file system without locks.
            self.release()
            raise ChainsError(
                f"another process is working on the checkpoint {str(folder)!r}; wait for it or end it, or "
                "give another path."
            ) from fault

    def release(self) -> None:
        """Let others in."""
        with contextlib.suppress(OSError):
            self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.release()
