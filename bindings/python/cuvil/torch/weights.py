"""Weights: tensors that compiled code has packed, and what happens when they change.

Dynamo passes parameters and buffers as arguments that no guard watches. Code that has packed or folded them is right
only as long as they are the same tensors with the same memory and version, so every call compares them (StaticInputs).
When they differ, the call runs eagerly while a background thread packs anew; then the new code is swapped in. A few
packings are kept, because one function may be called with several models in turn. An input that changes again and
again becomes an ordinary run-time input: it is then never stale and never packed.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

MAX_VARIANTS = 4
_CHANGES_UNTIL_ORDINARY = 3
_SOON = 10.0  # seconds: a change so soon after packing was not worth the packing

_pool: tuple[int, ThreadPoolExecutor] | None = None
_pool_lock = threading.Lock()
_in_flight: set["Future[None]"] = set()


def can_be_static(t: Any) -> bool:
    """Whether a change of the tensor would be seen. Tensors made in inference mode count no versions."""
    return (
        type(t) in (torch.Tensor, torch.nn.Parameter)
        and t.device.type == "cpu"
        and t.layout == torch.strided
        and not t.is_inference()
        and not t.is_conj()
        and not t.is_neg()
        and not t._is_zerotensor()
    )


def in_background(work: Callable[[], None]) -> None:
    """Runs `work` on the one background thread, which a forked child makes anew."""
    global _pool
    with _pool_lock:
        if _pool is None or _pool[0] != os.getpid():
            _pool = (os.getpid(), ThreadPoolExecutor(1, "cuvil-repack"))
            _in_flight.clear()
        future = _pool[1].submit(work)
        _in_flight.add(future)
    future.add_done_callback(_in_flight.discard)


def wait() -> None:
    """Waits until nothing is being packed."""
    while pending := list(_in_flight):
        for f in pending:
            f.exception()


@atexit.register
def _stop() -> None:
    if _pool is not None and _pool[0] == os.getpid():
        _pool[1].shutdown(wait=True, cancel_futures=True)


class Changes:
    """Decides which static inputs have proved not to be static."""

    def __init__(self) -> None:
        self.ordinary: set[int] = set()
        self._counts: dict[int, int] = {}

    def record(self, old: dict[int, tuple[torch.Tensor, int]], args: Sequence[Any], packed_at: float) -> None:
        """`old`: tensor and version that were packed at `packed_at` (time.monotonic)."""
        soon = time.monotonic() - packed_at < _SOON
        for i, (tensor, version) in old.items():
            if args[i] is tensor and tensor._version == version:
                continue
            self._counts[i] = self._counts.get(i, 0) + 1 if soon else 0
            if self._counts[i] >= _CHANGES_UNTIL_ORDINARY:
                self.ordinary.add(i)
