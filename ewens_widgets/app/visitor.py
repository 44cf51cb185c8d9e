"""A visitor's process: an IPython kernel that gives way to the server and has a limit of memory.

    python -m ewens_widgets.app.visitor MEGABYTES -f CONNECTION_FILE

On Linux a single request for more memory fails with an error, which the page shows. Once little memory is
left, any step may fail half-way, so the process ends and its page says why. Other visits go on. Other systems
do not enforce such a limit.
"""

import mmap
import os
import sys
import time
from threading import Thread

NICENESS = 5
SHORT_OF_MEMORY = 77  # exit code
_RESERVE = 100 * 10**6  # bytes
_PAUSE = 0.2  # seconds


def _end_when_short() -> None:
    """Watch for the moment from which the reserve cannot be had; addresses are asked for and never used."""
    while True:
        try:
            mmap.mmap(-1, _RESERVE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()
        except (OSError, MemoryError):
            os._exit(SHORT_OF_MEMORY)
        time.sleep(_PAUSE)


def main() -> None:
    """Limit this process, then run the kernel."""
    megabytes = int(sys.argv.pop(1))
    if hasattr(os, "nice"):  # before any thread starts: each has a niceness of its own
        os.nice(NICENESS)  # a chain at full speed must not keep the server from passing on pictures
    if sys.platform == "linux":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = megabytes * 10**6
        limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        Thread(target=_end_when_short, daemon=True).start()
    sys.path = [folder for folder in sys.path if folder]  # not the folder of the page
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


if __name__ == "__main__":
    main()
