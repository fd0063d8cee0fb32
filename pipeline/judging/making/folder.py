"""The folder of a campaign: the key, and for each judge a page and a table; one file for Pearmut."""

from collections.abc import Iterator
from pathlib import Path

from tfm.pipeline.artifacts.files import convert_os_errors, write_text_atomically
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks
from tfm.pipeline.errors import DataError, WriteError
from tfm.pipeline.judging.campaign import CAMPAIGN_FILE, Campaign, read_campaign, write_campaign
from tfm.pipeline.judging.forms.instructions import table_instructions
from tfm.pipeline.judging.forms.page import judge_page
from tfm.pipeline.judging.forms.pearmut import format_pearmut
from tfm.pipeline.judging.forms.spreadsheet import make_spreadsheet


def write_campaign_folder(campaign: Campaign, folder: Path) -> None:
    """Write all files of a campaign, the key first; files of others, such as answers, are left alone.

    Raises WriteError if the folder holds the key of another campaign, whose answers could not be read without it,
    where one of the files was changed since it was made, as a table is that a judge has filled in, and if one is a link
    or special file: then none is written.
    """
    with convert_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    files = [(folder / name, text) for name, text in judge_files_by_name(campaign)]
    check_no_symlinks(folder, folder / CAMPAIGN_FILE, *(file for file, _ in files))
    _refuse_other_campaign(campaign, folder)
    for file, text in files:
        content = text.encode()
        if file.exists() and (file.stat().st_size != len(content) or file.read_bytes() != content):
            raise WriteError(f"{file}: was changed since it was made; move it elsewhere, or choose another folder")
    with convert_os_errors(folder):
        write_campaign(campaign, folder / CAMPAIGN_FILE)
        for file, text in files:
            write_text_atomically(file, text)


def judge_files_by_name(campaign: Campaign) -> Iterator[tuple[str, str]]:
    """The files that judges may get, by name: none of it says which system wrote a text."""
    for judge in campaign.judges:
        yield f"{judge.name}.html", judge_page(campaign, judge)
        yield f"{judge.name}.csv", make_spreadsheet(campaign, judge)
    yield "instructions.txt", table_instructions(campaign)
    yield "pearmut.json", format_pearmut(campaign)


def _refuse_other_campaign(campaign: Campaign, folder: Path) -> None:
    if not (folder / CAMPAIGN_FILE).exists():
        return
    try:
        fingerprint = read_campaign(folder / CAMPAIGN_FILE).fingerprint
    except DataError as error:
        raise WriteError(f"{error}; choose another folder") from None
    if fingerprint != campaign.fingerprint:
        raise WriteError(f"{folder}: has another campaign, and its answers need {CAMPAIGN_FILE}; choose another folder")
