"""`python -m bench clean`: pairs a second of `tfm clean`, by sets of rules, beside OpusFilter."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from bench.options import Json, Rounds

PEER = Path(__file__).parent.parent / "peers" / "corpora" / "clean_opusfilter.py"
OFF = ("controls", "empty", "length", "ratio", "copies", "letters", "overlap", "duplicates")
"""Rules that are used by default; each set names its own."""
CHEAP = {
    "length": {"max": 100},
    "ratio": {"max": 3.0},
    "copies": {"max": 0.9, "fold_case": False},
    "letters": {"min": 0.5},
    "script": {"source": "Latin", "target": "Latin", "min": 0.9},
    "duplicates": {},
}
"""Rules that both programs have, but for the pairs that are just at the limit of ratio and copies."""
FILTERS: dict[str, dict[str, Any]] = {
    "LengthFilter": {"min_length": 1, "max_length": 100, "unit": "word"},
    "LengthRatioFilter": {"threshold": 3, "unit": "word"},
    "SimilarityFilter": {"threshold": 0.9},
    "AlphabetRatioFilter": {"threshold": 0.5},
    "CharacterScoreFilter": {"scripts": ["Latin", "Latin"], "thresholds": [0.9, 0.9]},
}


def clean(
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", min=1, help="Lines of each side.")] = 500_000,
    rule_pairs: Annotated[
        int, typer.Option("--rule-pairs", metavar="N", min=1, help="Lines of each side for each rule alone.")
    ] = 8_192,
    source: Annotated[
        Path | None, typer.Option("--source", metavar="FILE", help="Sources, repeated as often as it takes.")
    ] = None,
    target: Annotated[Path | None, typer.Option("--target", metavar="FILE", help="Their translations.")] = None,
    forward: Annotated[
        Path | None, typer.Option("--forward", metavar="MODEL", help="For the rules that need two translation models.")
    ] = None,
    backward: Annotated[Path | None, typer.Option("--backward", metavar="MODEL", help="The opposite way.")] = None,
    opusfilter: Annotated[
        Path | None, typer.Option("--opusfilter", metavar="PYTHON", help="The Python that has OpusFilter.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Jobs of OpusFilter.")] = 2,
    rounds: Rounds = 2,
    json: Json = None,
) -> None:
    """Pairs a second of `tfm clean`, by rules; beside OpusFilter.

    The text is of the built-in grammar, or of --source and --target, repeated with the number of the round behind each
    line. The time of `tfm clean` is that of the whole command, OpusFilter's that of its steps alone. Then the rate of
    each rule alone, in one process, by its CPU time.
    """
    from bench.compare import Contestant, Figures
    from bench.processes import run, run_module
    from bench.report import contest, table_reporter, write_json

    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_text(folder, "big", pairs, (source, target))
        kept_counts: dict[str, int] = {}

        def clean_ours() -> Figures:
            seconds, kept_counts["tfm clean"] = run_clean(folder, "big", CHEAP)
            return {"rate": pairs / seconds}

        def clean_theirs() -> Figures:
            with TemporaryDirectory(dir=folder) as out:
                request = {"filters": FILTERS, "duplicates": True, "workers": workers, "out": out}
                files = {side: str(folder / f"big.{side}") for side in ("source", "target")}
                assert opusfilter is not None
                answer = run([opusfilter, PEER], text=json_format.dumps(request | files)).answer()
            kept_counts["OpusFilter"] = answer["kept"]
            return {"rate": pairs / answer["seconds"]}

        contestants = [Contestant("tfm clean", clean_ours)]
        if opusfilter is not None:
            contestants.append(Contestant("OpusFilter", clean_theirs))
        summaries = contest(f"{pairs:,} pairs", contestants, rounds=rounds, unit="pairs/s")
        models = (
            {"forward": str(forward.resolve()), "backward": str(backward.resolve())} if forward and backward else {}
        )
        request = {"pairs": rule_pairs, "rounds": rounds, "models": models} | {
            side: str(folder / f"big.{side}") for side in ("source", "target")
        }
        rates = run_module("bench.cleaning.rule_rates", request).answer()
        rows = [[name, f"{rate:,.0f}"] for name, rate in rates.items()]
        table_reporter().table("each rule alone", ["rule", "pairs a CPU second"], rows)
        table_reporter().table("pairs kept", ["program", "pairs"], [*map(list, kept_counts.items())])
        settings = {"pairs": pairs, "rule_pairs": rule_pairs, "workers": workers, "rounds": rounds}
        write_json(json, "clean", settings, {"contest": summaries, "rules": rates, "kept": kept_counts})


def write_text(folder: Path, name: str, pairs: int, files: tuple[Path | None, Path | None]) -> None:
    """Write two files of so many lines, NAME.source and NAME.target."""
    if files[0] is None or files[1] is None:
        from tfm.data.corpora.sources import read_pairs
        from tfm.data.corpus_config import CorpusConfig

        grammar = CorpusConfig(format="generated", path="grammar", split="train", size=min(pairs, 20_000))
        texts: Sequence[tuple[str, ...]] = list(read_pairs(grammar))
    else:
        from tfm.data.lines import open_lines

        texts = list(zip(*map(open_lines, (files[0], files[1])), strict=True))
    for number, side in enumerate(("source", "target")):
        with open(folder / f"{name}.{side}", "w", encoding="utf-8", newline="") as file:
            for row in range(pairs):
                time, index = divmod(row, len(texts))
                file.write(f"{texts[index][number]}{f' {time}' if time % 4 else ''}\n")


def run_clean(folder: Path, name: str, rules: dict[str, Any]) -> tuple[float, int]:
    """Seconds of `tfm clean` with some rules alone, and the pairs that stay."""
    from bench.processes import run_tfm

    with TemporaryDirectory(dir=folder) as out:
        settings = [f'clean.{rule}="none"' for rule in OFF if rule not in rules]
        settings += [f"clean.{rule}={_as_toml(values)}" for rule, values in rules.items()]
        words = [word for setting in settings for word in ("--set", setting)]
        files = (f"{name}.source", f"{name}.target")
        process = run_tfm("clean", *files, *words, "--out", f"{out}/clean", folder=folder)
        manifest = json_format.loads((Path(out) / "clean" / "manifest.json").read_bytes())
    return process.seconds, sum(manifest["figures"]["kept"])


def _as_toml(values: dict[str, Any]) -> str:
    """A table on one line; its values are written as JSON writes them."""
    return "{" + ", ".join(f"{key} = {json_format.dumps(value)}" for key, value in values.items()) + "}"
