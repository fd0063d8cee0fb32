"""Script of the page: from item to item, every answer kept as it is given, and the file at the end."""

SESSION_SCRIPT = r"""
const {campaign, judge, items} = DATA, kind = KINDS[DATA.kind];
const by = id => document.getElementById(id);
const KEY = `tfm judge ${campaign} ${judge}`;
let kept = {given: {}, seconds: {}}, at = items.length, since = performance.now(), running = !document.hidden;

function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    const warning = by('warning');
    warning.hidden = false;
    warning.textContent = 'This browser keeps nothing for this page: answers are lost when it is closed or loaded ' +
      'again. Stay on it to the end, or save what is answered so far.';
    onbeforeunload = event => event.preventDefault();
  }
}

function recall() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY));
    if (found?.given && found.seconds) kept = found;
  } catch { /* nothing was kept, or nothing can be; keep() says so */ }
}

function clock() {  // adds the time that the item was in sight
  const now = performance.now(), item = items[at];
  if (running && item) kept.seconds[item.id] = (kept.seconds[item.id] || 0) + (now - since) / 1000;
  since = now;
}

const missing = item => kind.missing(item, kept.given[item.id] || {});
const answered = () => items.filter(item => missing(item) === null);
const first_open = () => {
  const place = items.findIndex(item => missing(item) !== null);
  return place < 0 ? items.length : place;
};

function show(place, focused = true) {
  clock();
  at = place;
  draw();
  keep();
  const heading = items[at] ? by('heading') : by('ended');
  if (focused) heading.focus();
}

function draw() {
  const item = items[at], ended = !item;
  by('item').hidden = by('next').hidden = ended;
  by('back').disabled = at === 0;
  by('stop').hidden = ended;
  by('end').hidden = !ended;
  say('');
  if (item) {
    const heading = make('h2', {id: 'heading', tabIndex: -1, textContent: 'Source',
                                'aria-label': `Item ${at + 1} of ${items.length}: source`});
    const reference = item.reference === null ? []
      : [make('h2', {textContent: 'Reference'}), shown_text(item.reference, 'Reference')];
    const given = kept.given[item.id] ??= {};
    by('item').replaceChildren(heading, shown_text(item.source, 'Source'), ...reference,
      ...kind.show(item, given, changed));
  } else {
    finish();
  }
  progress();
}

function changed() {
  clock();
  keep();
  progress();
  if (!by('end').hidden) finish();  // the file was made before this answer
}

function progress() {
  const done = answered().length;
  by('progress').value = done;
  by('progress').max = items.length;
  by('where').textContent = `${at < items.length ? `Item ${at + 1} of ${items.length}, ` : ''}${done} answered`;
}

function next() {
  const reason = missing(items[at]);
  if (reason !== null) { say(reason, true); return; }
  const open = first_open();
  if (at + 1 === items.length && open < items.length) {
    show(open);
    say('this one is not answered yet', true);
  } else show(at + 1);
}

function back() {
  if (at > 0) show(at - 1);
}

function finish() {
  const done = answered();
  const answers = done.map(item => ({item: item.id, seconds: Math.round(10 * (kept.seconds[item.id] || 0)) / 10,
                                     answer: kept.given[item.id]}));
  const text = JSON.stringify({format: 1, campaign, judge, answers}, null, 1) + '\n';
  const are = `${items.length === 1 ? 'item' : 'items'} ${done.length === 1 ? 'is' : 'are'} answered.`;
  by('ended').textContent = done.length === items.length
    ? `All ${items.length} ${are} Thank you!` : `${done.length} of ${items.length} ${are}`;
  by('answers').value = text;
  const file = by('file');
  if (file.href) URL.revokeObjectURL(file.href);
  file.href = URL.createObjectURL(new Blob([text], {type: 'application/json'}));
  file.download = `${judge}-answers.json`;
  by('end').hidden = false;
}

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || at >= items.length) return;
  const typed = event.target.matches('textarea, [type=number]');
  const acts = event.target.matches('button, a, summary, textarea, [role=button]');  // has a use for Enter itself
  if (event.key === 'Enter' && event.shiftKey) back();
  else if (event.key === 'Enter' && !acts) next();
  else if (typed || !/^[1-9]$/.test(event.key) || !kind.key(event, by('item'))) return;
  event.preventDefault();
}

function begin() {
  recall();
  document.addEventListener('keydown', pressed);
  by('back').onclick = back;
  by('next').onclick = next;
  by('stop').onclick = () => { clock(); keep(); finish(); by('ended').focus(); };
  addEventListener('visibilitychange', () => {
    if (document.hidden) { clock(); keep(); running = false; } else { since = performance.now(); running = true; }
  });
  addEventListener('pagehide', () => { clock(); keep(); });
  addEventListener('storage', event => {  // the same page in another window
    if (event.key === KEY && event.newValue) { recall(); draw(); }
  });
  const fresh = answered().length === 0;  // whoever begins reads what to do, from the top
  by('how').open = fresh;
  show(first_open(), !fresh);
}

// While it loads a file on a busy machine, Chromium may give it an empty localStorage, which it forgets afterwards with
// all that is written to it (30 of 160 loads); two frames later it never did. Until then nothing is read or written.
requestAnimationFrame(() => requestAnimationFrame(begin));
"""
