"""Devices that a run may be planned for: peak, bandwidth, memory and power, as their makers publish them."""

import re
from dataclasses import dataclass

from tfm.pipeline.errors import RecipeError

ASSUMED_PEAK_SHARES = {"fp32": 0.3, "bf16": 0.1}
"""Share of the peak that training is assumed to reach, by precision: that of the paper's base model in its 12 hours on
eight P100s, and that of tfm with this model on an H200 (docs/results/gpus.md)."""
MAX_DEVICES = 100_000


@dataclass(frozen=True)
class DeviceSpec:
    """A kind of device.

    Args:
        name: of the device.
        peak: FLOP a second in the precision that training takes on it.
        precision: that precision.
        bandwidth: of its memory, in bytes a second.
        memory: in bytes.
        watts: the most power that it takes.
        source: who publishes these figures.
    """

    name: str
    peak: float
    precision: str
    bandwidth: float
    memory: float
    watts: float
    source: str


def _make_device(
    name: str, teraflops: float, precision: str, gb_a_second: float, gb: float, watts: float
) -> DeviceSpec:
    source = f"NVIDIA, data sheet of {name}"
    return DeviceSpec(name, teraflops * 1e12, precision, gb_a_second * 1e9, gb * 1e9, watts, source)


DEVICES = {
    spec.name: spec
    for spec in (
        _make_device("P100", 10.6, "fp32", 732, 16, 300),
        _make_device("V100", 15.7, "fp32", 900, 32, 300),
        _make_device("T4", 8.1, "fp32", 320, 16, 70),
        _make_device("A100", 312, "bf16", 2039, 80, 400),
        _make_device("L4", 121, "bf16", 300, 24, 72),
        _make_device("L40S", 362, "bf16", 864, 48, 350),
        _make_device("H100", 989, "bf16", 3350, 80, 700),
        _make_device("H200", 989, "bf16", 4800, 141, 700),
    )
}
"""By name: dense matrix products, without sparsity; the variants with NVLink (SXM) where there are several."""


def parse_devices(text: str) -> tuple[int, DeviceSpec]:
    """Return the number and the kind of devices of a text such as "8 x H100".

    Raises RecipeError if it is no such text, or the device is not in the table.
    """
    match = re.fullmatch(r"\s*(?:([0-9]{1,6})\s*[x×*]?\s+)?([A-Za-z0-9]+)\s*", text)
    number, name = (1, "") if match is None else (int(match[1] or 1), match[2].upper())
    if name not in DEVICES or not 1 <= number <= MAX_DEVICES:
        raise RecipeError(f'--on {text!r}: give this, or a number of devices as in "8 x H100": {", ".join(DEVICES)}')
    return number, DEVICES[name]
