"""Files of the repository that pages link to, as pages of the site, so that it stands alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath

from docs.site.prose import parts

LINK = re.compile(r"(\]\()(?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?(?=[)\s])")
FOLDER = "repository"
LANGUAGES = {".toml": "toml", ".py": "python", ".sh": "bash", ".yml": "yaml", ".json": "json"}


@dataclass
class RepositoryPages:
    """The pages of a repository that are not in docs/. root: its top folder."""

    root: Path
    _texts: dict[str, str] = field(default_factory=dict)

    def pages(self) -> dict[str, str]:
        """The generated pages: path in the site, text. Pages that they link to are among them."""
        waiting = [file for page in (self.root / "docs").rglob("*.md") for file in self._linked(page)]
        while waiting:
            file = waiting.pop()
            path = self._path_of(file)
            if path not in self._texts:
                self._texts[path] = _page_text(file, self.root)
                waiting += self._linked(file)
        return self._texts

    def with_links_inside(self, text: str, path: str) -> str:
        """The text of a page whose links lead to pages of the site. path: of the page, in the site."""
        own = self._file_of(path)

        def inside(link: re.Match[str]) -> str:
            file = self._target(own, link[2])
            if file is None:
                return link[0]
            return f"{link[1]}{relpath(self._path_of(file), PurePosixPath(path).parent)}{link[3] or ''}"

        return "".join(LINK.sub(inside, part) if is_prose else part for part, is_prose in parts(text))

    def _linked(self, page: Path) -> Iterator[Path]:
        """The files and folders outside docs/ that a page links to; those in a folder."""
        if page.is_dir():
            yield from (file for file in _shown(page) if self._path_of(file).startswith(FOLDER))
        elif page.suffix == ".md":
            for part, is_prose in parts(page.read_text("utf-8")):
                for link in LINK.finditer(part) if is_prose else ():
                    file = self._target(page, link[2])
                    if file is not None and self._path_of(file).startswith(FOLDER):
                        yield file

    def _target(self, page: Path, link: str) -> Path | None:
        """The file or folder that a link leads to; the README.md of a folder that has one."""
        file = Path(normpath(page.parent / link))
        if not file.exists() or not _is_in(file, self.root):
            return None
        return file / "README.md" if (file / "README.md").is_file() else file

    def _path_of(self, file: Path) -> str:
        """The path in the site of a file."""
        if file.is_file() and _is_in(file, self.root / "docs"):
            return file.relative_to(self.root / "docs").as_posix()
        path = f"{FOLDER}/{file.relative_to(self.root).as_posix()}"
        return f"{path}/index.md" if file.is_dir() else path if file.suffix == ".md" else f"{path}.md"

    def _file_of(self, path: str) -> Path:
        """The file from whose place the links of a page of the site lead; of a folder's page, one in the folder."""
        inside = path.removeprefix(f"{FOLDER}/")
        return self.root / "docs" / path if inside == path else self.root / inside


def _shown(folder: Path) -> list[Path]:
    """The files and folders of a folder that a reader is shown."""
    return sorted(each for each in folder.iterdir() if each.name[0] not in "._")


def _is_in(file: Path, folder: Path) -> bool:
    return file.is_relative_to(folder)


def _page_text(file: Path, root: Path) -> str:
    """The text of a page of a file or folder that is not in docs/."""
    head, name = "---\nsearch:\n  exclude: true\n---\n", file.relative_to(root).as_posix()
    if file.is_dir():
        return f"{head}# {name}/\n\n" + "".join(f"- [{each.name}]({each.name})\n" for each in _shown(file))
    text = file.read_text("utf-8")
    if file.suffix == ".md":
        return head + text
    return f"{head}# {name}\n\n````{LANGUAGES.get(file.suffix, 'text')}\n{text}````\n"
