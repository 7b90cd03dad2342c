"""Tasks that succeed, fail and die, for the tests of executors; other processes import them from here."""

import os
import signal
import time


def act(task):
    """Do what the task says."""
    if task == "raise":
        raise ValueError("as asked")
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "die later":
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "leave":
        os._exit(3)
    if task == "keep to yourself":
        return lambda: None
    if task == "wait":
        time.sleep(60)
    if task == "threads":
        return {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
    return task


class Unreadable:
    """What no other process can unpickle."""

    def __reduce__(self):
        return (int, ("x",))
