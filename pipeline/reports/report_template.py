"""The page that evaluation_report.py fills in: self-contained, with a light and a dark theme."""

from string import Template

# The policy makes a browser hold what the report promises: nothing is loaded and nothing runs.
PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
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
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
td.bar { width: 45%; }
td.bar div { height: 0.9rem; margin-top: 0.3rem; background: var(--bar); border-radius: 2px; }
code { font: 0.8rem/1.4 ui-monospace, monospace; color: var(--faint); overflow-wrap: anywhere; }
figure { margin: 0; } figure svg { width: 100%; height: auto; border-radius: 6px; }
.sample { background: var(--card); border-radius: 6px; padding: 0.6rem 0.9rem; margin: 0.6rem 0; }
.sample dl { display: grid; grid-template-columns: 6.5rem 1fr; gap: 0.15rem 0.8rem; margin: 0; }
.sample dt { color: var(--faint); font-size: 0.85rem; }
.sample dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
.sample p, .note { color: var(--faint); font-size: 0.85rem; margin: 0 0 0.2rem; }
ul.lineage, ul.lineage ul { list-style: none; padding-left: 1.2rem; border-left: 1px solid var(--line); }
ul.lineage { padding-left: 0.8rem; }
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")
