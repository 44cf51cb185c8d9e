"""A visitor's process: an IPython kernel that gives way to the server and has a limit of memory.

    python -m ewens_widgets.app.visitor MEGABYTES -f CONNECTION_FILE

On Linux a process that asks for more gets a `MemoryError`, or ends; its page says so, and other visits go on.
Other systems do not enforce such a limit.
"""

import os
import sys

NICENESS = 5


def main() -> None:
    """Limit this process, then run the kernel."""
    megabytes = int(sys.argv.pop(1))
    if sys.platform == "linux":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = megabytes * 10**6
        limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if hasattr(os, "nice"):
        os.nice(NICENESS)  # a chain at full speed must not keep the server from passing on pictures
    sys.path = [folder for folder in sys.path if folder]  # not the folder of the page
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


if __name__ == "__main__":
    main()
