// The filters. Typing refines the view that is shown; a choice or a date is a view of its own.

import { add, find } from '../../components/js/dom.js';
import { FIELDS, change, state } from './state.js';

const TYPING_MS = 80;
/** @type {{ [field: string]: any }} */
export const inputs = Object.fromEntries(FIELDS.map(key => [key, find('.td-search [name=' + key + ']')]));
/** @type {HTMLButtonElement} */
const clear = find('.td-search .td-clear');

for (const axis of settings.axes) {
  const group = add(inputs.axis, 'optgroup');
  group.label = axis.title;
  const choices = axis.choices.map(([name, title]) => new Option(axis.title + ': ' + title, axis.name + '=' + name));
  group.append(new Option(axis.title + ' was set', axis.name), ...choices);
}

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
