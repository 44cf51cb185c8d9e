"""The folder of downloaded data, and writing a file completely or not at all."""

import contextlib
import os
import secrets
import sys
from pathlib import Path

__all__ = ["cache_directory", "write_atomically"]

_APPLICATION = "ewens_widgets"


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
