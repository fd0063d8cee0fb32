"""Script of the page: how an answer of each kind is given; `given` is the answer as the file has it, maybe half."""

CONTROLS_SCRIPT = r"""
function shown_text(text, name) {
  const box = make('p', {className: 'text', dir: 'auto', lang: '', 'aria-label': name}, text);
  if (!text.trim()) box.replaceChildren(make('span', {className: 'empty', textContent: '(empty)'}));
  return box;
}

const title = shown => `Translation${DATA.items.some(item => item.shown.length > 1) ? ' ' + shown.label : ''}`;

function choice(type, name, value, text, checked, picked) {
  const input = make('input', {type, name, value, checked, onchange: () => picked(input)});
  return make('label', {className: 'choice'}, input, text);
}

function numbered(fieldset, number) {  // the choice of a fieldset that a number key means
  return [...fieldset.querySelectorAll('input')][number - 1];
}

const likert = {
  show(item, given, changed) {
    return item.shown.flatMap(shown => {
      const ratings = given[shown.label] ??= {};
      const fieldsets = Object.entries(DATA.scales).map(([scale, [low, high, ...steps]]) => make('fieldset', {},
        make('legend', {textContent: `${title(shown)}: ${scale}`}),
        ...steps.map((step, place) => choice('radio', `${shown.label} ${scale}`, String(low + place), step,
          ratings[scale] === low + place, () => { ratings[scale] = low + place; changed(); }))));
      return [make('h2', {textContent: title(shown)}), shown_text(shown.text, title(shown)), ...fieldsets];
    });
  },
  missing(item, given) {
    for (const shown of item.shown) for (const scale of Object.keys(DATA.scales))
      if (given[shown.label]?.[scale] === undefined) return `${title(shown)}: ${scale} is not given yet`;
    return null;
  },
  key(event, place) {
    const all = [...place.querySelectorAll('fieldset')];
    const open = all.find(each => !each.querySelector(':checked')) || all.at(-1);
    const fieldset = event.target.closest('fieldset') || open;
    const input = numbered(fieldset, Number(event.key));
    if (!input) return false;
    input.click();
    const next = all[all.indexOf(fieldset) + 1];
    (next ? next.querySelector(':checked') || numbered(next, 1) : document.getElementById('next')).focus();
    return true;
  },
};

const preference = (name, several, ties) => ({
  show(item, given, changed) {
    const chosen = label => several ? (given[name] || []).includes(label) : given[name] === label;
    const picked = input => {
      const others = (given[name] || []);
      given[name] = !several ? input.value
        : input.checked ? [...others, input.value].sort() : others.filter(label => label !== input.value);
      changed();
    };
    const choices = item.shown.map((shown, place) => choice(several ? 'checkbox' : 'radio', name, shown.label,
      `${place + 1}: ${shown.label} is ${several ? 'best' : 'better'}`, chosen(shown.label), picked));
    if (ties) choices.push(choice('radio', name, 'tie', '3: neither, a tie', chosen('tie'), picked));
    return [
      ...item.shown.flatMap(shown => [make('h2', {textContent: title(shown)}), shown_text(shown.text, title(shown))]),
      make('fieldset', {}, make('legend', {textContent: several ? 'Which is best?' : 'Which is better?'}), ...choices),
    ];
  },
  missing: (item, given) => given[name]?.length ? null : 'nothing is chosen yet',
  key(event, place) {
    const input = numbered(place.querySelector('fieldset'), Number(event.key));
    if (!input) return false;
    input.click();
    input.focus();
    return true;
  },
});

const esa = {
  show(item, given, changed) {
    return item.shown.flatMap(shown => {
      const rating = given[shown.label] ??= {spans: []};
      const [low, high, ...steps] = DATA.scales.score;
      const number = make('input', {type: 'number', min: low, max: high, step: 1, inputMode: 'numeric',
                                    value: rating.score ?? '', 'aria-label': `${title(shown)}: score`});
      const slider = make('input', {type: 'range', min: low, max: high, step: 1, value: rating.score ?? 50,
                                    'aria-label': `${title(shown)}: score on a slider`});
      const score = (text, other) => {
        const value = Number(text);
        const fits = text !== '' && Number.isInteger(value) && low <= value && value <= high;
        if (fits) rating.score = value; else delete rating.score;
        if (fits) other.value = value;
        changed();
      };
      number.oninput = () => score(number.value, slider);
      slider.oninput = slider.onclick = () => score(slider.value, number);
      return [make('h2', {textContent: title(shown)}), ...marking(shown.text, title(shown), rating.spans, changed),
        make('fieldset', {}, make('legend', {textContent: `${title(shown)}: score from ${low} to ${high}`}),
          make('ul', {className: 'note'}, ...steps.map(step => make('li', {textContent: step}))), number, slider)];
    });
  },
  missing(item, given) {
    const shown = item.shown.find(each => given[each.label]?.score === undefined);
    const {0: low, 1: high} = DATA.scales.score;
    return shown ? `${title(shown)}: give a score, a whole number from ${low} to ${high}` : null;
  },
  key: () => false,
};

const KINDS = {likert, esa, pairwise: preference('preferred', false, true), best: preference('best', true, false)};
"""
