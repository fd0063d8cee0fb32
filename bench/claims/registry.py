"""The claims by name, in the order of the lectures."""

from bench.claims.attention import align, heads, parallel, scores
from bench.claims.block import block, depth, landscape, warmup
from bench.claims.claim import Claim
from bench.claims.decoding import beams, ensembles
from bench.claims.judging import grid, intervals
from bench.claims.positions import extrapolation, order, sinusoids
from bench.claims.recurrence import bottleneck, cue, gradients, lengths, trained_gradients, windows
from bench.claims.training import curricula, data, dropout, features, pretraining, smoothing, sparsity, thinning, widths
from bench.claims.words import meaning, subwords, synsets

CLAIMS: dict[str, Claim] = {
    "order": order.CLAIM,
    "scores": scores.CLAIM,
    "sinusoids": sinusoids.CLAIM,
    "gradients": gradients.CLAIM,
    "trained-gradients": trained_gradients.CLAIM,
    "windows": windows.CLAIM,
    "cue": cue.CLAIM,
    "parallel": parallel.CLAIM,
    "meaning": meaning.CLAIM,
    "synsets": synsets.CLAIM,
    "subwords": subwords.CLAIM,
    "block": block.CLAIM,
    "depth": depth.CLAIM,
    "warmup": warmup.CLAIM,
    "landscape": landscape.CLAIM,
    "extrapolation": extrapolation.CLAIM,
    "heads": heads.CLAIM,
    "align": align.CLAIM,
    "bottleneck": bottleneck.CLAIM,
    "lengths": lengths.CLAIM,
    "ensembles": ensembles.CLAIM,
    "smoothing": smoothing.CLAIM,
    "beams": beams.CLAIM,
    "dropout": dropout.CLAIM,
    "thinning": thinning.CLAIM,
    "features": features.CLAIM,
    "sparsity": sparsity.CLAIM,
    "data": data.CLAIM,
    "widths": widths.CLAIM,
    "pretraining": pretraining.CLAIM,
    "curricula": curricula.CLAIM,
    "intervals": intervals.CLAIM,
    "grid": grid.CLAIM,
}
