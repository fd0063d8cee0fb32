"""Page of the reference: `import tfm`, from the docstrings of its names."""

import tfm

PATH = "reference/python.md"
OPTIONS = """
    options:
      heading_level: 2
      show_root_heading: true
      show_root_full_path: false
      show_source: false
      members_order: source
      filters: ["!^_"]
      show_signature_annotations: true
      separate_signature: true
      line_length: 100
"""


def python_page() -> dict[str, str]:
    """The page by its path in the site; mkdocstrings fills it."""
    names = "".join(f"::: {_place(name)}{OPTIONS}\n" for name in tfm.__all__)
    head = "# `import tfm`\n\nEverything below is a name of the module `tfm`: `tfm.load`, `tfm.Model`.\n\n"
    return {PATH: head + names}


def _place(name: str) -> str:
    """The full name of a public name where it is defined."""
    found = getattr(tfm, name)
    return f"{found.__module__}.{found.__qualname__}"
