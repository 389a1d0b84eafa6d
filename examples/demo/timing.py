"""Timing of contestants that take turns."""

import statistics
import time


def side_by_side(runs: dict, rounds: int = 9, each: int = 3) -> dict[str, list[float]]:
    """Median milliseconds per round, the contestants taking turns: a change of the machine's speed hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            one = []
            for _ in range(each):
                t = time.perf_counter()
                run()
                one.append(1e3 * (time.perf_counter() - t))
            times[name].append(statistics.median(one))
    return times
