"""`python -m bench noisy`: what noise costs a model, and what cleaning wins back (Khayrallah and Koehn 2018)."""

import json as json_format
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.cleaning.noisy_text import NOISES, Noise, Pair, add_noise, write_sides
from bench.options import Json

RULES = """
[clean.language]
source = "{source}"
target = "{target}"

[clean.length]
min = {min_length}

[clean.mutual_information]
forward = "{forward}"
backward = "{backward}"
min = {information}

[clean.cross_entropy]
forward = "{forward}"
backward = "{backward}"
percentile = {percentile}
"""
RECIPE = """
name = "{name}"
seed = {seed}
extends = "{base}"

[data]
path = "none"
valid = {{ source = "{valid[0]}", target = "{valid[1]}" }}
tests.test = {{ source = "{test[0]}", target = "{test[1]}" }}

[[data.train]]
source = "{train[0]}"
target = "{train[1]}"
"""


def noisy(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Multi30k: train.en.gz, train.de.gz, train.fr.gz.")],
    recipe: Annotated[Path, typer.Option("--recipe", metavar="FILE", help="Of model and training.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Texts and runs; what is there is not made again.")],
    share: Annotated[float, typer.Option("--share", metavar="X", help="Noisy pairs over clean ones.")] = 0.5,
    percentile: Annotated[
        float, typer.Option("--percentile", metavar="P", help="Of the dual cross-entropy, after all other rules.")
    ] = 8.0,
    information: Annotated[
        float, typer.Option("--information", metavar="X", help="Least mutual information, nats a piece.")
    ] = 1.0,
    min_length: Annotated[int, typer.Option("--min-length", metavar="N", help="Words of the shorter side.")] = 4,
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", min=10, help="Clean pairs.")] = 29_000,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Of noise and training, 1 to N.")] = 3,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the recipe.")
    ] = None,
    json: Json = None,
) -> None:
    """Cost of noise, and the part that cleaning wins back.

    For each seed: a model of the clean pairs, one of the noisy corpus, one of the opposite direction of the same
    corpus; these two score it for the mutual information and the dual cross-entropy, and have seen no clean pair by
    itself; and a model of what `tfm clean` leaves.
    """
    from bench.processes import run_tfm
    from bench.report import table_reporter, write_json

    texts, held_out = _read_texts(folder, pairs), _held_out_files(folder)
    out, results = out.resolve(), []
    for seed in range(1, seeds + 1):
        seed_folder = out / f"seed-{seed}"
        seed_folder.mkdir(parents=True, exist_ok=True)
        noisy_pairs, kinds = add_noise([each[:2] for each in texts], [each[2] for each in texts], share, seed)
        write_sides(seed_folder, "clean", [each[:2] for each in texts])
        write_sides(seed_folder, "noisy", noisy_pairs)
        runs = {}
        for name, text, backward in (
            ("clean", "clean", False),
            ("noisy", "noisy", False),
            ("backward", "noisy", True),
            ("cleaned", "noisy", False),
        ):
            files = [str(seed_folder / f"{text}.{side}") for side in ("source", "target")]
            sides = [[*files], *([list(each) for each in held_out])]
            train, valid, test = (each[::-1] if backward else each for each in sides)
            recipe_text = RECIPE.format(
                name=name, seed=seed, base=recipe.resolve(), train=train, valid=valid, test=test
            )
            if name == "cleaned":
                models = {"forward": seed_folder / "runs" / "noisy", "backward": seed_folder / "runs" / "backward"}
                limits = {"information": information, "percentile": percentile, "min_length": min_length}
                recipe_text += RULES.format(**models, **limits, source="en", target="de")
            (seed_folder / f"{name}.toml").write_text(recipe_text, "utf-8")
            words = [word for each in sets or () for word in ("--set", each)]
            run_tfm("run", f"{name}.toml", *words, folder=seed_folder)
            runs[name] = seed_folder / "runs" / name
        bleu = {name: _bleu_of(run) for name, run in runs.items() if name != "backward"}
        results.append({"seed": seed, "bleu": bleu, **_count_kept(runs["cleaned"] / "clean", kinds)})
        table_reporter().line(f"seed {seed}: {results[-1]}")
    rows = [
        [
            each["seed"],
            *(round(each["bleu"][name], 2) for name in ("clean", "noisy", "cleaned")),
            _recovered_percent(each),
        ]
        for each in results
    ]
    table_reporter().table("BLEU", ["seed", "clean", "noisy", "cleaned", "won back, %"], rows)
    kept_rows = [
        [kind, f"{100 * statistics.fmean(each['kept'][kind] for each in results):.1f}"] for kind in ("clean", *NOISES)
    ]
    table_reporter().table("pairs kept", ["kind", "%"], kept_rows)
    settings: dict[str, Any] = {"share": share, "information": information, "percentile": percentile}
    settings |= {"min_length": min_length, "pairs": pairs, "sets": sets}
    write_json(json, "noisy", settings, results)


def _read_texts(folder: Path, count: int) -> list[tuple[str, str, str]]:
    """Source, target, and the text in a third language, of each pair."""
    from tfm.data.lines import open_lines

    sides = (list(open_lines(folder / f"train.{language}.gz"))[:count] for language in ("en", "de", "fr"))
    return list(zip(*sides, strict=True))


def _held_out_files(folder: Path) -> Sequence[Pair]:
    """The files of validation and test data."""
    root = folder.resolve()
    names = ("val", "test_2016_flickr")
    return [(str(root / f"{name}.en.gz"), str(root / f"{name}.de.gz")) for name in names]


def _bleu_of(run: Path) -> float:
    scores = json_format.loads((run / "scores" / "scores.json").read_bytes())
    return float(scores["metrics"]["bleu"]["score"])


def _count_kept(folder: Path, kinds: Sequence[Noise]) -> dict[str, Any]:
    """The share of each kind that is kept, and the rules that dropped its pairs."""
    dropped = [json_format.loads(line) for line in (folder / "dropped.jsonl").read_text("utf-8").split("\n")[:-1]]
    rules = Counter((kinds[each["pair"] - 1], each["rule"]) for each in dropped)
    counts = Counter(kinds)
    drop_counts = Counter(kinds[each["pair"] - 1] for each in dropped)
    kept_shares = {kind: 1 - drop_counts[kind] / count for kind, count in counts.items()}
    return {"kept": kept_shares, "dropped": {f"{kind}, {rule}": count for (kind, rule), count in rules.most_common()}}


def _recovered_percent(result: dict[str, Any]) -> float:
    """The BLEU that cleaning recovers, in percent of the BLEU that noise costs."""
    bleu = result["bleu"]
    cost = bleu["clean"] - bleu["noisy"]
    return round(100 * (bleu["cleaned"] - bleu["noisy"]) / cost, 1) if cost else float("nan")
