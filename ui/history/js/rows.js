// The list: a row for each run, with its verdict, its arms to pin, and what its owner may do with it.

import { focusWithin } from '../../components/js/focus.js';
import { count, el, find, setText } from '../../live/js/dom.js';
import { FIELDS, armPin, change, state, when } from './state.js';
import { saveCell } from './files.js';
import { edit, remove, share } from './edit.js';
import { toggle } from './tray.js';

const ENDED = { failed: 'Failed', cancelled: 'Stopped', interrupted: 'Interrupted', running: 'Under way' };
const KINDS = { batch: 'many requests', quality: 'quality' };
export const COLUMNS = ['When', 'Run', 'Arms: press to pin', 'Verdict', 'Save as', 'Change'];
export const seen = new Map();  // by pin, what it is called

/** @param {string} className @param {string} text @param {string} label @param {() => void} act */
export function button(className, text, label, act) {
  const node = el('button', className, text);
  node.type = 'button';
  if (label) node.setAttribute('aria-label', label);
  node.addEventListener('click', act);
  return node;
}

/** @param {History.Row} row */
function modelAndWork(row) {
  return [row.label || row.model, row.work].filter(Boolean).join(', ');
}

/** @param {History.Row} row */
export function runName(row) {
  return row.name || modelAndWork(row);
}

/** @param {History.Row} row */
function nameCell(row) {
  const cell = el('th', 'td-name'), link = el('a', '', runName(row));
  cell.scope = 'row';
  const trials = row.trial.startsWith('command-') ? { view: 'history', q: row.trial } : { worth: row.trial };  // where the page has no more
  link.href = '?' + new URLSearchParams(row.trials ? trials : { run: row.id });
  const facts = [row.name ? modelAndWork(row) : '', row.machine, KINDS[row.kind] || '', row.origin, row.shared && row.mine ? 'shared with the team' : '', row.owner ? 'of ' + row.owner : ''];
  cell.append(link, el('small', '', facts.filter(Boolean).join('\u00a0\u00b7 ')));
  return cell;
}

/** @param {History.Row} row */
function armsCell(row) {
  const cell = el('td', 'td-arms-of');
  for (const arm of row.arms) {
    const pin = armPin(row, arm), on = state.pins.includes(pin);
    seen.set(pin, runName(row) + ' ' + arm.name + ': ' + arm.text);
    const chip = button('td-pin', '', arm.name + ' ' + arm.text + ': pin, of ' + runName(row) + ', ' + when(row.created), () => toggle(pin));
    chip.setAttribute('aria-pressed', String(on));
    chip.dataset.pin = pin;
    chip.append(el('b', '', arm.name), document.createTextNode(' ' + arm.text));
    cell.append(chip);
  }
  return cell;
}

/** @param {History.Row} row */
function verdictCell(row) {
  const cell = el('td', 'td-line-of');
  if (ENDED[row.status]) cell.append(el('b', 'td-ended ' + row.status, ENDED[row.status]), document.createTextNode(' '));
  cell.append(document.createTextNode(row.line === null && row.status !== 'running' ? '\u2026' : row.line || ''));
  if (row.note) cell.append(el('small', 'td-note-of', row.note));
  return cell;
}

/** @param {History.Row} row @param {boolean} team */
function changeCell(row, team) {
  const cell = el('td', 'td-change');
  if (!row.mine) return cell;
  const of = ' ' + runName(row) + ', ' + when(row.created);
  cell.append(button('td-edit-run', 'Name, note', 'Name, note: of' + of, () => edit(row)));
  if (team) cell.append(button('td-share', row.shared ? 'Unshare' : 'Share', (row.shared ? 'Unshare:' : 'Share with the team:') + of, () => share(row)));
  const gone = button('td-delete', 'Delete', 'Delete' + of, () => remove(row));
  gone.disabled = row.status === 'running';
  cell.append(gone);
  return cell;
}

// The line of a run in the list; undefined where it is not among the runs that are shown.
/** @param {string} id */
export function lineOfRun(id) {
  return [...find('.td-runs').querySelectorAll('tr')].find(one => one.dataset.run === id);
}

// A form that is open stays at its run, with what was typed.
/** @param {History.Found} found @param {boolean} team */
export function showRows(found, team) {
  const box = find('.td-runs'), held = focusWithin(box), table = el('table'), form = box.querySelector('.td-edit');
  const focus = held?.closest('tr') ? [held.closest('tr').dataset.run, held.dataset.pin || held.className] : null;
  const head = el('tr');
  head.append(...COLUMNS.map(name => { const cell = el('th', '', name); cell.scope = 'col'; return cell; }));
  const body = el('tbody');
  for (const row of found.rows) {
    const line = el('tr'), date = el('td', 'td-when', when(row.created));
    line.dataset.run = row.id;
    line.append(date, nameCell(row), armsCell(row), verdictCell(row), saveCell(row), changeCell(row, team));
    body.append(line);
  }
  table.append(el('thead'), body);
  table.tHead.append(head);
  box.replaceChildren(table);
  box.hidden = !found.rows.length;
  if (form) {
    lineOfRun(form.dataset.of)?.after(form);
    if (held && form.contains(held)) held.focus();
  } else if (focus) {
    const line = lineOfRun(focus[0]);
    if (line) [...line.querySelectorAll('button, a')].find(one => (one.dataset.pin || one.className) === focus[1])?.focus();
  }
}

/** @param {History.Found} found */
export function showCount(found) {
  const first = found.page * found.per_page, last = first + found.rows.length, filtered = FIELDS.some(key => state[key]);
  const all = found.total === 1 ? '1 run' : count(found.total) + ' runs';
  let text = found.rows.length === found.total ? all : 'Runs ' + count(first + 1) + ' to ' + count(last) + ' of ' + count(found.total);
  if (filtered && found.rows.length) text += ', of ' + count(found.kept) + ' altogether';
  setText(find('.td-count'), found.rows.length ? text : '');
}

/** @param {History.Runs} reply */
export function showEmpty(reply) {
  const { found, kept } = reply, box = find('.td-empty-run');
  let text = '';
  if (!kept) text = 'Runs are kept in memory only here, so there is no history: start the app with --history FILE.';
  else if (!found.kept && reply.trouble) text = 'No kept run can be shown now.';
  else if (!found.kept) text = (reply.notes && reply.notes + ' ') + 'No run is kept yet. Go to Compare and press Run: each run is kept, and found again here. Runs of the command line are kept here too.';
  else if (!found.total) text = 'None of ' + count(found.kept) + ' runs matches. Leave a filter out, or press Clear.';
  else if (!found.rows.length) text = 'There is no page ' + count(found.page + 1) + ': ' + count(found.total) + ' runs are on ' + count(Math.ceil(found.total / found.per_page)) + ' pages.';
  setText(box, text);
}

/** @param {History.Found} found */
export function showPages(found) {
  const nav = find('.td-pages'), pages = Math.ceil(found.total / found.per_page), at = found.page + 1;
  nav.hidden = pages < 2 && at === 1;
  const step = (text, to) => {
    const node = button('', text, '', () => { change({ at: String(to) }, true); find('.td-runs').scrollIntoView({ block: 'nearest' }); });
    node.disabled = to < 1 || to > pages || to === at;
    return node;
  };
  const held = focusWithin(nav)?.textContent;
  nav.replaceChildren(step('First', 1), step('Newer', Math.min(at - 1, pages)), el('span', '', 'Page ' + count(at) + ' of ' + count(pages)), step('Older', at + 1), step('Last', pages));
  if (held) [...nav.querySelectorAll('button')].find(one => one.textContent === held && !one.disabled)?.focus();
}
