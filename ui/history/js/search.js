// The filters. Typing refines the view that is shown; a choice or a date is a view of its own.

import { add, el, find } from '../../components/js/dom.js';
import { FIELDS, change, state } from './state.js';

const TYPING_MS = 80;
export const inputs = {};

function field(key, label, control) {
  const box = add(find('.td-search'), 'label', 'td-field td-field-' + key);
  box.append(el('span', '', label), control);
  control.name = key;
  inputs[key] = control;
}

function textInput(type, hint) {
  const control = el('input');
  control.type = type;
  control.maxLength = 200;
  if (hint) control.placeholder = hint;
  return control;
}

function choiceInput() {
  const control = el('select');
  control.append(new Option('any', ''));
  for (const axis of settings.axes) {
    const group = el('optgroup');
    group.label = axis.title;
    const choices = axis.choices.map(([name, title]) => new Option(axis.title + ': ' + title, axis.name + '=' + name));
    group.append(new Option(axis.title + ' was set', axis.name), ...choices);
    control.append(group);
  }
  return control;
}

field('q', 'Search', textInput('search', 'words of model, choices, prompt, verdict, name, note'));
field('of', 'Model', textInput('search', 'part of its name'));
field('axis', 'Axis', choiceInput());
field('machine', 'Machine', textInput('search', 'such as H200'));
field('since', 'From', textInput('date'));
field('until', 'To', textInput('date'));
const clear = el('button', 'td-clear', 'Clear');
clear.type = 'button';
find('.td-search').append(clear);

let typing = 0;
for (const [key, control] of Object.entries(inputs)) {
  const kind = control.type === 'search' ? 'input' : 'change';
  control.addEventListener(kind, () => {
    clearTimeout(typing);
    const typed = control.type === 'search';
    typing = setTimeout(() => change({ [key]: control.value, at: '1', beside: false }, !typed), typed ? TYPING_MS : 0);
  });
}
find('.td-search').addEventListener('submit', event => event.preventDefault());
clear.addEventListener('click', () => {
  change({ ...Object.fromEntries(FIELDS.map(key => [key, ''])), at: '1' }, true);
  inputs.q.focus();
});

export function showSearch() {
  for (const key of FIELDS) {
    if (inputs[key].value === state[key]) continue;
    inputs[key].value = state[key];
    if (key === 'axis' && inputs[key].value !== state[key]) {  // of the address, and no axis: the server says so
      inputs[key].append(new Option(state[key]));
      inputs[key].value = state[key];
    }
  }
  clear.disabled = FIELDS.every(key => !state[key]);
}
