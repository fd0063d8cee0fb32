"""The page of `tfm attend`: the attention of a model in a sentence or an image, on one self-contained page."""

import base64

import numpy as np

from tfm.pipeline.attention_page.attended import ATTENTION_KIND_TITLES, AttendedImage, AttentionTrace
from tfm.pipeline.attention_page.forward_passes import SPACE_SYMBOL
from tfm.pipeline.attention_page.head_report import HeadReport, ReportTable
from tfm.pipeline.attention_page.picture import AttentionView
from tfm.pipeline.attention_page.script import ATTENTION_PAGE_SCRIPT
from tfm.pipeline.page_frame import escape_html, frame_page, script_json

ATTENTION_PAGE_STYLE = """\
:root { --ink-of-weights: 23, 92, 150; --cell: 1.7rem; --key: var(--cell); }
@media (prefers-color-scheme: dark) { :root { --ink-of-weights: 120, 187, 235; } }
body { max-width: 70rem; }
.sentence { background: var(--card); border-radius: 6px; padding: 0.6rem 0.9rem; overflow-wrap: anywhere; }
.sentence span { display: block; white-space: pre-wrap; }
.note, #said { color: var(--faint); font-size: 0.9rem; margin: 1em 0; } #said { min-height: 3em; }
button { font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: 4px;
         cursor: pointer; }
button:focus-visible, select:focus-visible { outline: 2px solid rgb(var(--ink-of-weights)); outline-offset: 1px; }
#kinds { display: flex; flex-wrap: wrap; gap: 0.4rem; border-bottom: 1px solid var(--line); margin: 1.5rem 0 1rem; }
#kinds button { padding: 0.3rem 0.8rem; border-radius: 4px 4px 0 0; color: var(--faint); }
#kinds [aria-selected=true] { color: var(--ink); border-bottom: 3px solid rgb(var(--ink-of-weights)); }
select { font: inherit; } label { margin-right: 1rem; }
.scroll { padding: 3px; }
#views { display: flex; flex-wrap: wrap; gap: 1.5rem 3rem; align-items: flex-start; }
#matrix { display: inline-grid; grid-template-columns: auto auto; align-items: end; }
#keys { display: flex; grid-column: 2; }
#keys span { width: var(--key); display: flex; flex-direction: column; align-items: center; justify-content: end;
             background: rgba(var(--ink-of-weights), calc(0.5 * var(--share, 0))); border-radius: 4px 4px 0 0; }
#keys bdi { writing-mode: vertical-rl; transform: rotate(180deg); white-space: pre; line-height: var(--cell); }
#keys b { font: 0.7rem/1.3rem system-ui, sans-serif; height: 1.3rem; font-variant-numeric: tabular-nums; }
#queries { display: flex; flex-direction: column; }
#queries button { height: var(--cell); padding: 0 0.4rem; text-align: right; white-space: pre; line-height: 1; }
#queries [aria-pressed=true] { background: var(--card); border-color: var(--line); font-weight: 600; }
#cells { position: relative; }
canvas { image-rendering: pixelated; display: block; border: 1px solid var(--line); box-sizing: border-box; }
#weights { width: calc(var(--columns) * var(--key)); height: calc(var(--rows) * var(--cell)); }
#row { position: absolute; left: 0; right: 0; top: calc(var(--row, 0) * var(--cell)); height: var(--cell);
       box-sizing: border-box; border: 1px solid var(--ink); pointer-events: none; }
.on-image { --key: 0.4rem; }
.on-image #keys bdi, .on-image #keys b { display: none; }
.on-image #keys span { height: 4px; }
#seen { position: relative; overflow: hidden; width: min(22rem, 100%); margin: 0 0 1rem; }
#seen canvas { width: 100%; border: 0; }
#seen #light { position: absolute; left: 0; top: 0; width: calc(100% * var(--covers-x));
               height: calc(100% * var(--covers-y)); }
#asks { position: absolute; box-sizing: border-box; border: 2px solid rgb(var(--ink-of-weights));
        pointer-events: none; }
#heads div { display: flex; gap: 0.4rem; align-items: center; margin-bottom: 0.2rem; }
#heads span { width: 4.5rem; flex: none; color: var(--faint); font-size: 0.9rem; }
#heads button { padding: 2px; } #heads [aria-pressed=true] { border-color: var(--ink); }
#heads canvas { width: 5.5rem; height: clamp(1.5rem, calc(5.5rem * var(--rows) / var(--columns)), 9rem); }
table { width: auto; }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; white-space: nowrap; }
"""

PANEL_HTML = """<p class="sentence">{texts}</p>
<noscript><p>The pictures are drawn by a script within this page: allow it to run.</p></noscript>
<div id="kinds" role="tablist" aria-label="kind of attention"></div>
<div id="panel" role="tabpanel" aria-labelledby="which">
<p><label>layer <select id="layer"></select></label><label>head <select id="head"></select></label>
<span class="note" id="which"></span></p>
<p class="note">Rows are queries, columns are keys; colour shows the attention weight.
Point at a row, or go to a token with Tab and the arrow keys. {space} is a space.</p>
<p id="said" aria-live="polite"></p>
{image}<div id="views">
<div class="scroll"><div id="matrix">
<div id="keys"></div>
<div id="queries" role="group" aria-label="tokens that ask"></div>
<div id="cells"><canvas id="weights" role="img" aria-labelledby="which"></canvas><div id="row"></div></div>
</div></div>
<div class="scroll" id="heads" role="group" aria-label="all heads"></div>
</div>
</div>
"""


IMAGE_HTML = """\
<figure id="seen"><canvas id="image" role="img" aria-label="the image, bright where attention is"></canvas>
<canvas id="light" aria-hidden="true"></canvas><div id="asks" hidden></div></figure>
<p class="note">The image as the model reads it. The brighter a place, the more of the chosen row's attention it has;
the place with the most is shown as it is.</p>
"""


def render_attention_page(
    title: str, trace: AttentionTrace | None, view: AttentionView | None, report: HeadReport | None
) -> str:
    """Write the page: the attention in a sentence or an image, and the statistics of heads in a corpus.

    All text is escaped; weights are rounded to thousandths.

    Args:
        title: of the page.
        trace: the attention, if it is shown.
        view: the attention that is shown first.
        report: the statistics of heads, if they are shown.

    Returns:
        HTML.
    """
    parts = [] if trace is None else [_panel_html(trace)]
    parts += [] if report is None else [_table_html(table) for table in report.tables()]
    if trace is not None:
        parts.append(f'<script type="application/json" id="data">{script_json(_page_data(trace, view))}</script>')
    return frame_page(
        title, "\n".join(parts), style=ATTENTION_PAGE_STYLE, script=None if trace is None else ATTENTION_PAGE_SCRIPT
    )


def _panel_html(trace: AttentionTrace) -> str:
    texts = f"<span>{escape_html(trace.source)}</span>"
    if trace.target is not None:
        texts += f"<span>→ {escape_html(trace.target)}</span>"
    return PANEL_HTML.format(texts=texts, space=SPACE_SYMBOL, image="" if trace.image is None else IMAGE_HTML)


def _page_data(trace: AttentionTrace, view: AttentionView | None) -> dict[str, object]:
    """The data that the script draws: for each kind of attention its tokens and, by layer, the weights of each head."""
    kinds = [
        {
            "name": ATTENTION_KIND_TITLES[kind],
            "queries": [token.text for token in axes.queries],
            "keys": [token.text for token in axes.keys],
            "notes": axes.notes,
            "onImage": axes.on_image,
            "layers": [
                [np.rint(1000 * head.ravel()).astype(int).tolist() for head in attention.weights]
                for attention in trace.layers(kind)
            ],
        }
        for kind, axes in trace.axes.items()
    ]
    start = {"kind": 0, "layer": 0, "head": -1}
    if view is not None:
        start = {
            "kind": list(trace.axes).index(view.kind),
            "layer": (view.layer or 1) - 1,
            "head": (view.head or 0) - 1,
        }
    return {"kinds": kinds, "start": start, "image": None if trace.image is None else _image_data(trace.image)}


def _image_data(image: AttendedImage) -> dict[str, object]:
    """The image as the script draws it: red, green and blue of each pixel, in base64."""
    height, width, channels = image.pixels.shape
    colours = np.repeat(image.pixels, 3 // channels, axis=2)
    return {
        "height": height,
        "width": width,
        "rows": image.rows,
        "columns": image.columns,
        "side": image.side,
        "pixels": base64.b64encode(colours.tobytes()).decode(),
    }


def _table_html(table: ReportTable) -> str:
    """Numbers to the right, the rest to the left."""
    head = "".join(
        f"<th{_number_class_attribute(i)}>{escape_html(column)}</th>" for i, column in enumerate(table.columns)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{_number_class_attribute(i)}>{escape_html(str(cell))}</td>" for i, cell in enumerate(row))
        + "</tr>\n"
        for row in table.rows
    )
    return f'<h2>{escape_html(table.title)}</h2>\n<div class="scroll"><table><tr>{head}</tr>\n{rows}</table></div>'


def _number_class_attribute(column: int) -> str:
    return ' class="number"' if column else ""
