"""Options of the model card that `tfm export` and `tfm push` write, in the forms that the Hugging Face Hub takes."""

import re
from typing import Annotated

import typer

LANGUAGE_CODE_PATTERN = r"[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*|multilingual|code"
LICENSE_ID_PATTERN = r"[a-z0-9]+(?:[.-][a-z0-9]+)*"


def _check_language_codes(codes: list[str] | None) -> list[str] | None:
    for code in codes or ():
        if not re.fullmatch(LANGUAGE_CODE_PATTERN, code):
            raise typer.BadParameter(f"{code!r} is no code of a language: write it as ISO 639 has it (en, deu)")
    return codes


def _check_license_id(license: str | None) -> str | None:
    if license is not None and not re.fullmatch(LICENSE_ID_PATTERN, license):
        raise typer.BadParameter(f"{license!r} is no identifier of a license: write it as the Hub has it (apache-2.0)")
    return license


CardLanguages = Annotated[
    list[str] | None,
    typer.Option(
        "--language",
        metavar="CODE",
        help="Model card: a language of the model (en); repeatable.",
        callback=_check_language_codes,
    ),
]
CardLicense = Annotated[
    str | None,
    typer.Option(
        "--license", "--licence", metavar="ID", help="Model card: the license (apache-2.0).", callback=_check_license_id
    ),
]
