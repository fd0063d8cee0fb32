"""Script of the page: errors marked in a text, by words; places are counted in code points, as Python counts."""

MARKING_SCRIPT = r"""
function make(tag, properties = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name.includes('-') || name === 'role') element.setAttribute(name, value); else element[name] = value;
  element.append(...inside);
  return element;
}

function say(text, wrong = false) {
  const said = document.getElementById('said');
  said.textContent = text;
  said.classList.toggle('wrong', wrong);
}

// The text in pieces, words and what stands between them, as [start, end, piece, is a word].
function pieces(text) {
  const cut = Intl.Segmenter
    ? [...new Intl.Segmenter(undefined, {granularity: 'word'}).segment(text)].map(each => each.segment)
    : text.match(/\s+|\S+/gu) || [];
  let start = 0;
  return cut.map(piece => {
    const end = start + [...piece].length;
    const found = [start, end, piece, piece.trim() !== ''];
    start = end;
    return found;
  });
}

const overlap = (one, other) => one.start === other.start || (one.start < other.end && other.start < one.end);

// A text in which errors are marked: `spans` is changed in place, and `changed` is told.
function marking(text, name, spans, changed) {
  const all = pieces(text), length = [...text].length;
  const words = all.filter(each => each[3]);
  const list = make('ul', {className: 'errors', 'aria-label': `errors in ${name}`});
  let begun = null, current = 0;

  const shown = all.map(piece => {
    const element = make('span', {textContent: piece[2]});
    if (piece[3]) {
      element.setAttribute('role', 'button');
      element.tabIndex = -1;
    }
    return element;
  });
  const buttons = shown.filter((_, number) => all[number][3]);
  const omission = make('span', {role: 'button', tabIndex: 0, className: 'omission', textContent: '[missing]',
                                 title: 'the translation leaves something out'});
  const box = make('p', {className: 'text', dir: 'auto', lang: '', role: 'group', 'aria-label': name}, ...shown);
  if (!buttons.length) box.append(make('span', {className: 'empty', textContent: '(empty)'}));
  box.append(omission);

  const words_of = span => span.start === length ? '[missing]' : [...text].slice(span.start, span.end).join('');
  const at = number => spans.find(span => span.start < words[number][1] && words[number][0] < span.end);

  function refresh() {
    spans.sort((one, other) => one.start - other.start);
    all.forEach(([start, end], number) => {
      const span = spans.find(each => each.start < end && start < each.end);
      shown[number].classList.toggle('minor', span?.severity === 'minor');
      shown[number].classList.toggle('major', span?.severity === 'major');
    });
    buttons.forEach((button, number) => {
      button.tabIndex = number === current ? 0 : -1;
      button.classList.toggle('pending', number === begun);
      const span = at(number);
      if (span) button.setAttribute('aria-description', `${span.severity} error`);
      else button.removeAttribute('aria-description');
    });
    omission.className = 'omission ' + (spans.find(span => span.start === length)?.severity || '');
    list.replaceChildren(...spans.map(span => make('li', {},
      `${span.severity}: “${words_of(span)}”`,
      make('button', {type: 'button', textContent: span.severity === 'minor' ? 'make it major' : 'make it minor',
        'aria-label': `${words_of(span)}: ${span.severity === 'minor' ? 'make it major' : 'make it minor'}`,
        onclick: () => { severity(span, span.severity === 'minor' ? 'major' : 'minor'); buttons[current]?.focus(); }}),
      make('button', {type: 'button', textContent: 'remove', 'aria-label': `${words_of(span)}: remove`,
        onclick: () => { remove(span); (buttons[current] || omission).focus(); }}))));
    changed();
  }

  function add(span) {
    spans.splice(0, spans.length, ...spans.filter(each => !overlap(each, span)), span);
    begun = null;
    refresh();
    say(`minor error: “${words_of(span)}”; 2 makes it major, 0 removes it`);
  }
  function severity(span, value) {
    span.severity = value;
    refresh();
    say(`${value} error: “${words_of(span)}”`);
  }
  function remove(span) {
    spans.splice(spans.indexOf(span), 1);
    refresh();
    say(`removed: “${words_of(span)}”`);
  }
  function mark(first, last) {
    const [from, to] = first <= last ? [first, last] : [last, first];
    add({start: words[from][0], end: words[to][1], severity: 'minor'});
  }
  function choose(number) {
    current = number;
    if (begun !== null) mark(begun, number);
    else {
      begun = number;
      refresh();
      say(`an error begins at “${words[number][2]}”: choose its last word`);
    }
  }
  function leave_out() {
    const span = spans.find(each => each.start === length);
    if (span) remove(span); else add({start: length, end: length, severity: 'minor'});
  }
  function move(number) {
    current = Math.max(0, Math.min(buttons.length - 1, number));
    refresh();
    buttons[current].focus();
  }

  box.addEventListener('keydown', event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const onto = getComputedStyle(box).direction === 'rtl' ? -1 : 1;
    const number = buttons.indexOf(event.target);
    const span = number < 0 ? spans.find(each => each.start === length) : at(number);
    const steps = {ArrowRight: onto, ArrowLeft: -onto, ArrowDown: 1, ArrowUp: -1};
    const severities = {1: 'minor', 2: 'major'};
    if (number >= 0 && event.key in steps) move(number + steps[event.key]);
    else if (number >= 0 && event.key === 'Home') move(0);
    else if (number >= 0 && event.key === 'End') move(buttons.length - 1);
    else if (event.key === ' ' || event.key === 'Enter') number < 0 ? leave_out() : choose(number);
    else if (event.key === 'Escape' && begun !== null) { begun = null; refresh(); say(''); }
    else if (span && event.key in severities) severity(span, severities[event.key]);
    else if (span && ['0', 'Delete', 'Backspace'].includes(event.key)) remove(span);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener('click', event => {
    const picked = getSelection();
    if (!picked.isCollapsed && box.contains(picked.anchorNode) && box.contains(picked.focusNode)) {
      const inside = buttons.flatMap((button, number) => picked.containsNode(button, true) ? [number] : []);
      picked.removeAllRanges();
      if (inside.length) { current = inside.at(-1); mark(inside[0], inside.at(-1)); }
      return;
    }
    const number = buttons.indexOf(event.target.closest('[role=button]'));
    if (number >= 0) choose(number);
    else if (event.target === omission) leave_out();
  });
  refresh();
  return [box, list];
}
"""
