"""`python -m bench ceilings`: the peak rates of this machine for products and copies."""

from typing import Annotated

import typer

from bench.options import Device, Json

# rows, in, out: training has a batch's rows at once, its output layer chunks of them, decoding a row a hypothesis
SHAPES = {
    "D 128: query, key, value": (4096, 128, 384),
    "D 128: attention's output": (4096, 128, 128),
    "D 128, F 256: inner": (4096, 128, 256),
    "D 128, F 256: outer": (4096, 256, 128),
    "D 128, V 10,000: output layer": (4096, 128, 10_000),
    "... a chunk of it": (256, 128, 10_000),
    "D 512: query, key, value": (4096, 512, 1536),
    "D 512: attention's output": (4096, 512, 512),
    "D 512, F 2048: inner": (4096, 512, 2048),
    "D 512, F 2048: outer": (4096, 2048, 512),
    "D 512, V 32,000: a chunk of it": (256, 512, 32_000),
    "decoding 64 x beam 5, D 128, F 256: inner": (320, 128, 256),
    "decoding 64 x beam 5, D 128, V 10,000": (320, 128, 10_000),
    "decoding 64 x beam 5, D 512, F 2048: inner": (320, 512, 2048),
    "decoding greedily, D 512, F 2048: inner": (1, 512, 2048),
    "square": (2048, 2048, 2048),
}
SQUARE_SIZE = {"cpu": 2048, "cuda": 8192}
"""The size of the square matrices whose product measures a device's peak."""
PRODUCT_KINDS = ("fp32", "fp32 packed", "bf16", "bf16 packed", "int8", "int8 packed")


def ceilings(
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="X", min=0.001, help="Time for each figure, at least.")
    ] = 0.2,
    device: Device = "cpu",
    json: Json = None,
) -> None:
    """GFLOP/s of matrix products, GB/s of a copy.

    x W^T at the shapes that matter, in fp32, bf16 and, where torch has it, int8; with the weight as it lies in memory,
    and packed, which is laid out once as the kernel reads it. The fastest calls count: this is what the machine can
    do, not what it does.
    """
    from bench.processes import run_module
    from bench.report import table_reporter, write_json

    shapes = list(SHAPES.values())
    options = {"shapes": shapes, "kinds": PRODUCT_KINDS, "seconds": seconds, "copy": True, "device": device}
    answer = run_module("bench.kernels.gemm", options).answer()
    rows: list[list[object]] = []
    for (name, (num_rows, inner, outer)), rates in zip(SHAPES.items(), answer["rates"], strict=True):
        cells = [None if rate is None else f"{rate:,.0f}" for rate in rates]
        rows.append([name, f"{num_rows} x {inner} x {outer}", *cells])
    rows.append(["memory: copy, read + written", f"{answer['copy']:.1f} GB/s", *(None for _ in PRODUCT_KINDS)])
    machine = f"{answer['threads']} threads" if device == "cpu" else device
    table_reporter().table(f"GFLOP/s forward, {machine}", ["", "rows x in x out", *PRODUCT_KINDS], rows)
    for kind, reason in answer["missing"].items():
        table_reporter().line(f"{kind}: not of this build of torch ({reason})")
    write_json(
        json, "ceilings", {"seconds": seconds, "device": device, "shapes": SHAPES, "kinds": PRODUCT_KINDS}, answer
    )


def square_gigaflops(device: str, seconds: float = 1.0) -> dict[str, float]:
    """GFLOP/s of a large square product in fp32 and bf16, plain or packed: beside what a training comes to."""
    from bench.processes import run_module

    kinds = [kind for kind in PRODUCT_KINDS if "int8" not in kind]
    size = SQUARE_SIZE[device]
    request = {"shapes": [(size, size, size)], "kinds": kinds, "seconds": seconds, "device": device}
    answer = run_module("bench.kernels.gemm", request).answer()
    best: dict[str, float] = {}
    for kind, rate in zip(kinds, answer["rates"][0], strict=True):
        precision = kind.split()[0]
        best[precision] = max(best.get(precision, 0.0), rate or 0.0)
    return best
