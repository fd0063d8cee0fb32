"""A judge's page: one self-contained file that works without a network, and keeps answers in the browser.

It holds sources, texts and labels, but neither systems nor which items are checks or come twice.
"""

from html import escape

from tfm.pipeline.judging.campaign import SCALE_RANGES, Campaign, Judge
from tfm.pipeline.judging.forms.controls_script import CONTROLS_SCRIPT
from tfm.pipeline.judging.forms.instructions import KEYBOARD_HELP, SCALE_STEPS, judge_instructions
from tfm.pipeline.judging.forms.marking_script import MARKING_SCRIPT
from tfm.pipeline.judging.forms.session_script import SESSION_SCRIPT
from tfm.pipeline.page_frame import frame_page, script_json

PAGE_STYLE = """
:root { --minor: #b26a00; --major: #c62828; }
@media (prefers-color-scheme: dark) { :root { --minor: #f5b041; --major: #ff7b72; } }
body { max-width: 46rem; padding: 1rem; }
h1 { font-size: 1.2rem; margin: 0; } h2 { font-size: 1rem; margin: 1.2rem 0 0.3rem; }
h2:focus { outline: none; }
details { margin: 0.6rem 0; } progress { width: 100%; }
.text { background: var(--card); border-radius: 6px; padding: 0.6rem 0.9rem; margin: 0; font-size: 1.1rem;
        overflow-wrap: anywhere; white-space: pre-wrap; unicode-bidi: isolate; }
.empty { color: var(--faint); font-style: italic; }
fieldset { border: 1px solid var(--line); border-radius: 6px; margin: 0.8rem 0; padding: 0.4rem 0.8rem 0.8rem; }
legend { font-weight: 600; padding: 0 0.3rem; }
label.choice { display: flex; align-items: center; gap: 0.5rem; min-height: 2.75rem; padding: 0 0.5rem;
               border-radius: 4px; cursor: pointer; }
label.choice:has(:checked) { background: var(--card); }
input, button, a.button, textarea { font: inherit; color: inherit; }
input[type=radio], input[type=checkbox] { width: 1.3rem; height: 1.3rem; flex: none; accent-color: var(--bar); }
input[type=range] { width: 100%; min-height: 2.75rem; accent-color: var(--bar); }
input[type=number] { width: 6rem; min-height: 2.75rem; background: var(--paper); border: 1px solid var(--faint);
                     border-radius: 4px; padding: 0 0.5rem; }
button, a.button { display: inline-block; min-height: 2.75rem; padding: 0 1.2rem; line-height: 2.75rem; cursor: pointer;
                   background: var(--card); border: 1px solid var(--faint); border-radius: 6px; text-decoration: none; }
button:disabled { opacity: 0.5; }
nav { display: flex; justify-content: space-between; gap: 1rem; margin: 1.2rem 0 0.4rem; }
:focus-visible { outline: 3px solid var(--bar); outline-offset: 2px; }
[role=button] { cursor: pointer; border-radius: 2px; }
.minor { text-decoration: underline dotted 3px var(--minor); text-underline-offset: 4px; }
.major { text-decoration: underline solid 3px var(--major); text-underline-offset: 4px; }
.pending { outline: 2px dashed var(--bar); }
.omission { color: var(--faint); margin-inline-start: 0.6rem; white-space: nowrap; }
.errors { padding-left: 1.2rem; } .errors li { margin: 0.3rem 0; overflow-wrap: anywhere; }
.errors button { margin-inline-start: 0.5rem; padding: 0 0.8rem; }
#said { min-height: 1.5rem; color: var(--faint); } #said.wrong { color: var(--major); font-weight: 600; }
#warning { color: var(--major); }
textarea { width: 100%; box-sizing: border-box; background: var(--card); border: 1px solid var(--line); }
"""

PAGE_BODY = """<p class="note">{judge}</p>
<p id="warning" role="alert" hidden></p>
<noscript><p>This page needs JavaScript, which this browser does not run.</p></noscript>
<details id="how"><summary>What to do</summary>
<ul>{instructions}</ul>
<p>With the keyboard: {keys}</p>
</details>
<p id="where" class="note"></p>
<progress id="progress" value="0" max="1" aria-label="answered"></progress>
<main id="item"></main>
<p id="said" role="status"></p>
<nav><button type="button" id="back">Back</button><button type="button" id="next">Next</button></nav>
<p class="note"><button type="button" id="stop">Save what is answered so far</button></p>
<section id="end" hidden>
<h2 id="ended" tabindex="-1"></h2>
<p>Save the file and send it to the person who asked you. If the button does nothing, copy the text below.</p>
<p><a class="button" id="file">Save the file</a></p>
<textarea id="answers" rows="8" readonly aria-label="the answers, to copy"></textarea>
</section>"""


def judge_page(campaign: Campaign, judge: Judge) -> str:
    """The page of one judge."""
    data = {
        "campaign": campaign.fingerprint,
        "judge": judge.name,
        "kind": campaign.kind,
        "scales": {name: [*ends, *SCALE_STEPS[name]] for name, ends in SCALE_RANGES[campaign.kind].items()},
        "items": [_blind_item(campaign, name) for name in judge.items],
    }
    instructions = "".join(f"<li>{escape(each)}</li>" for each in judge_instructions(campaign))
    body = PAGE_BODY.format(
        judge=escape(judge.name), instructions=instructions, keys=escape(KEYBOARD_HELP[campaign.kind])
    )
    script = f"'use strict';\nconst DATA = {script_json(data)};\n{MARKING_SCRIPT}{CONTROLS_SCRIPT}{SESSION_SCRIPT}"
    return frame_page("Judging translations", body, style=PAGE_STYLE, script=script)


def _blind_item(campaign: Campaign, item_id: str) -> dict[str, object]:
    """The part of an item that the page may show."""
    item = campaign.items_by_id[item_id]
    reference = item.references[0] if campaign.show_reference and item.references else None
    texts = [{"label": each.label, "text": each.text} for each in item.shown]
    return {"id": item.id, "source": item.source, "reference": reference, "shown": texts}
