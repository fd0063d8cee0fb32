"""`python -m bench claim`: claims of the lectures, each measured and drawn."""

from pathlib import Path
from typing import Annotated

import typer


def claim(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The claim; none: list them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every claim, one after another.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of NAME.svg and NAME.json; docs/images/claims/.")
    ] = None,
) -> None:
    """A claim of the lectures (docs/lectures/): measure, draw.

    Writes the picture and the data from which it is drawn, and prints the figures. A claim that needs trained models
    trains them first, by `tfm run` into runs/ of the folder where the command runs: what is there is not trained again.
    """
    from bench.claims.claim import CLAIMS_FOLDER, measure_claim, save_claim
    from bench.claims.registry import CLAIMS
    from bench.report import table_reporter

    reporter = table_reporter()
    if name is None and not every:
        reporter.table("claims", ["name", "what it says"], [[each, found.sentence] for each, found in CLAIMS.items()])
        return
    if name is not None and (every or name not in CLAIMS):
        problem = "--all is every claim: name none" if every else f"there is no claim {name!r}"
        raise typer.BadParameter(f"{problem}; the claims: {', '.join(CLAIMS)}", param_hint="NAME")
    for claim_name in CLAIMS if name is None else (name,):
        document = measure_claim(claim_name, CLAIMS[claim_name])
        data, picture = save_claim(document, CLAIMS[claim_name], CLAIMS_FOLDER if out is None else out)
        reporter.table(CLAIMS[claim_name].sentence, ["figure", ""], [[*each] for each in document["figures"].items()])
        reporter.line(f"{picture}, {data}: {document['seconds']} s")
