"""Files of the user: where downloads are kept, whole-file writes, and CSV cells that are safe to open."""

import contextlib
import glob
import os
import re
import secrets
import sys
import time
from pathlib import Path

__all__ = ["cache_directory", "guarded", "write_atomically"]

_APPLICATION = "ewens_widgets"
_ABANDONED = 60.0  # seconds since the last write to a temporary file, after which its writer has ended
# Text that a spreadsheet would run as a formula, behind any number of guards; and the guard in front of it.
FORMULA = r"^'*[=+\-@\t\r]"
GUARD = r"^'(?='*[=+\-@\t\r])"


def guarded(cell: object) -> object:
    """Return what a CSV file gets for a cell: an apostrophe before text that a spreadsheet would run.

    `read_table` removes it again.
    """
    return f"'{cell}" if isinstance(cell, str) and re.match(FORMULA, cell) else cell


def cache_directory() -> Path:
    r"""Return the folder in which downloaded data are kept; it need not exist yet.

    The environment variable ``EWENS_WIDGETS_DATA`` overrides it. The default is the platform's
    folder for caches: ``%LOCALAPPDATA%\ewens_widgets\Cache``, ``~/Library/Caches/ewens_widgets``, or
    ``$XDG_CACHE_HOME/ewens_widgets`` (``~/.cache/ewens_widgets``).
    """
    chosen = os.environ.get("EWENS_WIDGETS_DATA")
    if chosen:
        return Path(chosen).expanduser()
    home = Path("~").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / _APPLICATION / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / _APPLICATION
    # The XDG specification says to ignore relative paths.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else home / ".cache") / _APPLICATION


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file completely or not at all: other readers see the old content or all of the new."""
    # Through a symbolic link the file it points to is replaced, not the link.
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    with contextlib.suppress(OSError):  # what processes left that were killed while they wrote this file
        for other in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
            if time.time() - other.stat().st_mtime > _ABANDONED:
                other.unlink()
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as fault:
        reason = fault.strerror or str(fault)
        raise OSError(fault.errno, f"could not save, and changed nothing: {reason}", str(target)) from fault
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
