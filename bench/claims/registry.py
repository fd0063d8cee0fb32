"""The claims by name, in the order of the lectures."""

from bench.claims import (
    beams,
    bottleneck,
    data,
    depth,
    dropout,
    extrapolation,
    gradients,
    heads,
    landscape,
    meaning,
    order,
    parallel,
    scores,
    sinusoids,
    smoothing,
    subwords,
    warmup,
    windows,
)
from bench.claims.claim import Claim

CLAIMS: dict[str, Claim] = {
    "order": order.CLAIM,
    "scores": scores.CLAIM,
    "sinusoids": sinusoids.CLAIM,
    "gradients": gradients.CLAIM,
    "windows": windows.CLAIM,
    "parallel": parallel.CLAIM,
    "meaning": meaning.CLAIM,
    "subwords": subwords.CLAIM,
    "depth": depth.CLAIM,
    "warmup": warmup.CLAIM,
    "landscape": landscape.CLAIM,
    "extrapolation": extrapolation.CLAIM,
    "heads": heads.CLAIM,
    "bottleneck": bottleneck.CLAIM,
    "smoothing": smoothing.CLAIM,
    "beams": beams.CLAIM,
    "dropout": dropout.CLAIM,
    "data": data.CLAIM,
}
