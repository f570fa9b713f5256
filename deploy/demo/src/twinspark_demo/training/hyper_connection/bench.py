"""Program for a GPU: are the kernels right (against float64), and how long does a site take.

`python -m twinspark_demo.training.hyper_connection.bench [--rows 73728] [--sweep]`
"""

from collections.abc import Callable
from functools import partial
from statistics import median

import torch
import typer

from twinspark_demo.training import hyper_connection
from twinspark_demo.training.hyper_connection import reference
from twinspark_demo.training.hyper_connection.comparison import (
    Site,
    draw_site,
    outputs_and_gradients,
    relative_errors,
)
from twinspark_demo.training.hyper_connection.launch import LAUNCHES, Launch

WIDTH = 256
CALLS, REPEATS = 10, 9
# Per token, bf16, D = 256: streams 2,048, u or y 512, mix 96, post and comb 80, d_dots 48, in and out of memory once.
BYTES = {
    "pre forward": 2048 + 512 + 2 * 96 + 80,
    "pre backward": 3 * 2048 + 512 + 2 * 96 + 80 + 2 * 48,
    "post forward": 2 * 2048 + 512 + 80,
    "post backward": 3 * 2048 + 2 * 512 + 2 * 80,
}
LIMITS = {torch.float32: 2e-5, torch.bfloat16: 8e-3}
CANDIDATES = {
    "streams_forward": [
        Launch(64, 4, 64, 1),
        Launch(64, 4, 64, 2),
        Launch(64, 4, 64, 4),
        Launch(32, 4, 64, 3),
        Launch(64, 8, 128, 2),
        Launch(128, 8, 64, 3),
    ],
    "streams_backward": [
        Launch(32, 4, 64),
        Launch(16, 4, 128),
        Launch(32, 8, 128, 2),
        Launch(32, 8, 256),
        Launch(64, 8, 64),
    ],
    "coefficients_forward": [Launch(64, 4), Launch(128, 4), Launch(16, 2)],
    "coefficients_backward": [Launch(64, 4), Launch(64, 8), Launch(16, 2)],
    "post_forward": [Launch(8, 4), Launch(2, 2), Launch(8, 8), Launch(4, 2)],
    "post_backward": [Launch(8, 4), Launch(2, 2), Launch(8, 8), Launch(4, 2)],
}


def check(dtype: torch.dtype) -> bool:
    """Prints the relative errors of a site whose rows fill no block; true if all are within the limit."""
    site = draw_site(1013, WIDTH, dtype, "cuda")
    definition = partial(reference.hc_pre, rms_eps=1e-5, hc_eps=1e-6, sinkhorn_iters=20)
    expected = outputs_and_gradients(site.to_float64(), definition, reference.hc_post)
    actual = outputs_and_gradients(site, hyper_connection.hc_pre, hyper_connection.hc_post)
    errors = relative_errors(actual, expected)
    print(f"{dtype}:", " ".join(f"{name} {error:.1e}" for name, error in errors.items()))
    return max(errors.values()) < LIMITS[dtype]


def microseconds(work: Callable[[], object]) -> float:
    """Median time of one call, out of a captured graph of several: without the time that the host takes to launch."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            work()
    graph.replay()
    times: list[float] = []
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000 / CALLS)
    return median(times)


def times_of_site(site: Site) -> dict[str, float]:
    """Microseconds of the four passes; a backward is forward and backward less forward."""
    leaves, directions = site.leaves, site.directions
    pre_leaves = [leaves[name] for name in ("streams", "fn", "base", "scale")]
    coefficients = [directions[name].clone().requires_grad_() for name in ("post", "comb")]
    post_leaves = [leaves["streams"], leaves["y"], *coefficients]
    pre_directions = [directions[name] for name in ("u", "post", "comb")]

    def pre_both() -> object:
        return torch.autograd.grad(hyper_connection.hc_pre(*pre_leaves), pre_leaves, pre_directions)

    def post_both() -> object:
        return torch.autograd.grad(hyper_connection.hc_post(*post_leaves), post_leaves, directions["out"])

    pre = microseconds(lambda: hyper_connection.hc_pre(*pre_leaves))
    post = microseconds(lambda: hyper_connection.hc_post(*post_leaves))
    return {
        "pre forward": pre,
        "pre backward": microseconds(pre_both) - pre,
        "post forward": post,
        "post backward": microseconds(post_both) - post,
    }


def sweep(site: Site) -> None:
    """Prints the times with each candidate launch of one kernel, the others as they are."""
    for kernel, candidates in CANDIDATES.items():
        chosen = LAUNCHES[kernel]
        for launch in (chosen, *candidates):
            LAUNCHES[kernel] = launch
            times = " ".join(f"{name} {time:.1f}" for name, time in times_of_site(site).items())
            print(f"{kernel} {launch}: {times}", flush=True)
        LAUNCHES[kernel] = chosen


def main(rows: int = 73_728, with_sweep: bool = typer.Option(False, "--sweep")) -> None:
    """Exit status 1 if a result is wrong."""
    right = [check(dtype) for dtype in LIMITS]
    site = draw_site(rows, WIDTH, torch.bfloat16, "cuda")
    times = times_of_site(site)
    print(f"{rows} rows, {WIDTH} channels, bf16; floor at 4 TB/s")
    for name, time in times.items():
        print(f"{name:14} {time:8.1f} us   floor {BYTES[name] * rows / 4e6:7.1f} us")
    print(f"{'a site':14} {sum(times.values()):8.1f} us   floor {sum(BYTES.values()) * rows / 4e6:7.1f} us")
    if with_sweep:
        sweep(site)
    if not all(right):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
