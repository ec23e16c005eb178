// The searchable list of what can be added to an arm. Text reaches the document through textContent only.

import { add, afterPress, button } from '../../components/js/dom.js';
import { keyOf, ranked } from './rank.js';

const dialog = element.querySelector('dialog'), search = dialog.querySelector('input'), list = dialog.querySelector('.td-entries'), jumps = dialog.querySelector('.td-jumps');
const signs = { runs: '', 'falls back': '\u25b2 falls back', 'cannot run': '\u2715 cannot run' };
let arm = 'A', opener = 'add';
/** What choices cost at the start here, by what they add: asked for when the palette opens. @type {Record<string, string>} */
let costs = {};
let costsOf = '';
/** @returns {Palette.Offers} */
const offers = () => props.value ? JSON.parse(props.value) : { model: '', entries: [] };
const askCosts = async () => {
  const { model } = offers();
  if (model !== costsOf) costs = {};
  const latest = JSON.parse(await server.ask({ model }).catch(() => '{}'));
  const news = JSON.stringify(latest) !== JSON.stringify(costs);
  costs = latest;
  costsOf = model;
  if (news && dialog.open) again();
};
const show = () => {
  const matches = ranked(offers().entries, search.value), boxes = new Map();
  list.replaceChildren();
  jumps.replaceChildren();
  for (const entry of matches) {
    if (!boxes.has(entry.group)) {
      const place = add(list, 'section');
      boxes.set(entry.group, place);
      add(place, 'h3', '', entry.group);
      jumps.append(button('', entry.group.split(':')[0], '', () => {
        list.scrollTop += place.getBoundingClientRect().top - list.getBoundingClientRect().top;
        place.querySelector('.td-entry').focus({ preventScroll: true });
      }));
    }
    const acts = entry.whole || entry.page || Object.keys(entry.choices).length;
    const row = add(boxes.get(entry.group), acts ? 'button' : 'p', 'td-entry ' + entry.state.replace(' ', '-'));
    if (row instanceof HTMLButtonElement) row.type = 'button'; else row.tabIndex = -1;
    const name = add(row, 'span', 'td-entry-name', entry.axis ? entry.axis + ': ' : '');
    add(name, 'b', '', entry.title);
    const summary = add(row, 'span', 'td-entry-summary', entry.summary + (entry.cost ? ' Costs ' + entry.cost + '.' : ''));
    const start = costs[keyOf(entry)];
    if (start) add(summary, 'span', 'td-entry-start', ' ' + start);
    if (entry.argument) add(row, 'code', 'td-entry-argument', entry.argument);
    if (signs[entry.state]) add(row, 'span', 'td-entry-state', signs[entry.state]);
    if (entry.why) add(row, 'span', 'td-entry-why', entry.why);
    if (acts) row.addEventListener('click', () => {
      dialog.close();
      if (entry.page) [...document.querySelectorAll('#pages [role="tab"]')].find((tab) => tab.textContent.trim().toLowerCase() === entry.page)?.click();
      else trigger('take', { arm, choices: entry.choices, whole: entry.whole });
    });
  }
  const nothing = offers().model ? 'Nothing matches. Try "fast", "int8", "cache" or "graph".' : 'Choose a model first.';
  if (!matches.length) add(list, 'p', 'td-empty', nothing);
};
search.addEventListener('input', show);
dialog.addEventListener('keydown', (event) => {
  const buttons = [...list.querySelectorAll('button.td-entry')], at = buttons.findIndex((entry) => entry === document.activeElement);
  if (event.key === 'ArrowDown') { event.preventDefault(); (buttons[at + 1] || buttons[0])?.focus(); }
  if (event.key === 'ArrowUp') { event.preventDefault(); (at > 0 ? buttons[at - 1] : search).focus(); }
  if (event.key === 'Escape') { event.preventDefault(); dialog.close(); }  // a field for searches would only be cleared
  if (event.key === 'Enter' && document.activeElement === search) { event.preventDefault(); buttons[0]?.click(); }
});
dialog.addEventListener('close', () => {  // the arm may have been drawn anew, with another button of that kind
  document.querySelector('#verdicts-' + arm.toLowerCase() + ' [data-press="' + opener + '"]')?.focus();
});
dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
dialog.querySelector('.td-close').addEventListener('click', () => dialog.close());
window.addEventListener('tokendyno-palette', (event) => {
  if (!element.isConnected || dialog.open) return;
  const { detail } = /** @type {CustomEvent<{ arm: string, opener: HTMLElement }>} */ (event);
  arm = detail.arm;
  opener = detail.opener.dataset.press;
  dialog.querySelector('h2').textContent = 'Add to arm ' + arm;
  search.value = '';
  show();
  dialog.showModal();
  list.scrollTop = 0;
  search.focus();
  askCosts();
});
/** Draw the list anew, with the focus where it was: on an entry, or in the field. */
const again = afterPress(list, () => {
  const at = [...list.querySelectorAll('.td-entry')].findIndex((entry) => entry === document.activeElement);
  show();
  /** @type {HTMLElement | undefined} */ (list.querySelectorAll('.td-entry')[at])?.focus({ preventScroll: true });
});
watch('value', () => { if (dialog.open) again(); });
