"""The frame that all HTML pages share: one self-contained file with a light and a dark theme."""

import base64
import hashlib
import json
import re
from html import escape
from string import Template

from tfm.pipeline.errors import escape_control_characters, escape_unprintable

# The policy makes a browser hold what a page promises: nothing is loaded, and at most the one script given runs.
_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="$policy">
<title>$title</title>
<style>
:root { --ink: #1c1e21; --faint: #667078; --line: #d8dde1; --paper: #ffffff; --card: #f5f7f8; --bar: #3182bd; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e6e8; --faint: #98a2a9; --line: #3a4147; --paper: #16191c; --card: #1f2327; --bar: #6baed6; }
  figure svg { filter: invert(0.9) hue-rotate(180deg); }
}
body { margin: 0 auto; padding: 1.5rem; max-width: 62rem; color: var(--ink); background: var(--paper);
       font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--faint); font-size: 0.85rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
td.bar { width: 45%; }
td.bar div { height: 0.9rem; margin-top: 0.3rem; background: var(--bar); border-radius: 2px; }
code { font: 0.8rem/1.4 ui-monospace, monospace; color: var(--faint); overflow-wrap: anywhere; }
figure { margin: 0; } figure svg { width: 100%; height: auto; border-radius: 6px; }
.scroll { overflow: auto; }
.note { color: var(--faint); font-size: 0.85rem; margin: 0 0 0.2rem; }
.sample { background: var(--card); border-radius: 6px; padding: 0.6rem 0.9rem; margin: 0.6rem 0; }
.sample dl { display: grid; grid-template-columns: 6.5rem 1fr; gap: 0.15rem 0.8rem; margin: 0; }
.sample dt, .sample p { color: var(--faint); font-size: 0.85rem; } .sample p { margin: 0 0 0.2rem; }
.sample dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
$style</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")


def frame_page(title: str, body: str, *, style: str = "", script: str | None = None) -> str:
    """Return a whole page. Colors are var(--ink), --faint, --line, --paper, --card and --bar.

    Args:
        title: text of a user.
        body: HTML whose texts are escaped.
        style: further rules, which come after those of the frame.
        script: the one script that runs, put at the end of the body.
    """
    policy = _CONTENT_SECURITY_POLICY
    if script is not None:
        body += f"\n<script>{script}</script>"
        policy += "; script-src 'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
    return _PAGE.substitute(title=escape_html(title), policy=policy, style=style, body=body)


def escape_html(text: str) -> str:
    """Text of a user as HTML, in which nothing is invisible."""
    return escape(escape_unprintable(text))


def escape_corpus_text(text: str) -> str:
    """Text of a corpus as HTML. Joiners, marks and spaces of its language stay what they are; what controls a terminal,
    breaks a line or turns the direction of what comes after it is spelled out."""
    return escape(escape_control_characters(text, keep="\t"))


def inline_svg(svg: str) -> str:
    """The <svg> element alone: HTML knows no XML declaration, document type or RDF metadata."""
    return re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)


def script_json(value: object) -> str:
    """JSON that is the same to a script and nothing to HTML, whatever text is in it."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
