// The list: a row for each run, with its verdict, its arms to pin, its files, and what its owner may do with it.

import { add, button, count, el, find, focusWithin, plural, setText, tableBody, tableHead } from '../../components/js/dom.js';
import { toggle } from './beside.js';
import { show } from './page.js';
import { FIELDS, change, complain, question, state, when } from './state.js';

const ENDED = { failed: 'Failed', cancelled: 'Stopped', interrupted: 'Interrupted', running: 'Under way' };
const KINDS = { batch: 'many requests', quality: 'quality' };
const COLUMNS = ['When', 'Run', 'Arms: press to pin', 'Verdict', 'Save as', 'Change'];
export const seen = new Map();  // by pin, what it is called

/** @param {History.Row} row */
function modelAndWork(row) {
  return [row.label || row.model, row.work].filter(Boolean).join(', ');
}

/** @param {History.Row} row */
function runName(row) {
  return row.name || modelAndWork(row);
}

/** @param {History.Row} row */
function nameCell(row) {
  const cell = el('th', 'td-name'), link = el('a', '', runName(row));
  cell.scope = 'row';
  link.href = '?' + new URLSearchParams(row.trials ? { worth: row.trial } : { run: row.id });
  const facts = [row.name ? modelAndWork(row) : '', row.machine, KINDS[row.kind] || '', row.origin, row.shared && row.mine ? 'shared with the team' : '', row.owner ? 'of ' + row.owner : ''];
  cell.append(link, el('small', '', facts.filter(Boolean).join('\u00a0\u00b7 ')));
  return cell;
}

/** @param {History.Row} row */
function armsCell(row) {
  const cell = el('td', 'td-arms-of');
  for (const arm of row.arms) {
    const pin = row.id + '.' + arm.name, on = state.pins.includes(pin);
    seen.set(pin, runName(row) + ' ' + arm.name + ': ' + arm.text);
    const chip = button('td-pin', '', arm.name + ' ' + arm.text + ': pin, of ' + runName(row) + ', ' + when(row.created), () => toggle(pin));
    chip.setAttribute('aria-pressed', String(on));
    chip.dataset.pin = pin;
    chip.append(el('b', '', arm.name), ' ' + arm.text);
    cell.append(chip);
  }
  return cell;
}

/** @param {History.Row} row */
function verdictCell(row) {
  const cell = el('td', 'td-line-of');
  if (ENDED[row.status]) cell.append(el('b', 'td-ended ' + row.status, ENDED[row.status]), ' ');
  cell.append(row.line || '');
  if (row.note) cell.append(el('small', 'td-note-of', row.note));
  return cell;
}

/** @param {History.Row} row @param {boolean} team */
function changeCell(row, team) {
  const cell = el('td', 'td-change');
  if (!row.mine) return cell;
  const of = ' ' + runName(row) + ', ' + when(row.created);
  cell.append(button('td-edit-run', 'Name, note', 'Name, note: of' + of, () => edit(row)));
  if (team) cell.append(button('td-share', row.shared ? 'Unshare' : 'Share', (row.shared ? 'Unshare:' : 'Share with the team:') + of, async () => {
    if (await changed(row, row.shared ? 'unshare' : 'share')) show();
  }));
  const gone = button('td-delete', 'Delete', 'Delete' + of, () => remove(row));
  gone.disabled = row.status === 'running';
  cell.append(gone);
  return cell;
}

/** The line of a run in the list; undefined where it is not among the runs that are shown. @param {string} id */
function lineOfRun(id) {
  return [...find('.td-runs').querySelectorAll('tr')].find(line => line.dataset.run === id);
}

/** A form that is open stays at its run, with what was typed. @param {History.RunList} runs @param {boolean} team */
export function showRows(runs, team) {
  const box = find('.td-runs'), focused = focusWithin(box), table = el('table'), form = box.querySelector('.td-edit');
  const focus = focused?.closest('tr') ? [focused.closest('tr').dataset.run, focused.dataset.pin || focused.className] : null;
  const rows = runs.rows.map(row => {
    const line = el('tr');
    line.dataset.run = row.id;
    line.append(el('td', 'td-when', when(row.created)), nameCell(row), armsCell(row), verdictCell(row), saveCell(row), changeCell(row, team));
    return line;
  });
  table.append(tableHead(COLUMNS), tableBody(rows));
  box.replaceChildren(table);
  box.hidden = !runs.rows.length;
  if (form) {
    lineOfRun(form.dataset.of)?.after(form);
    if (focused && form.contains(focused)) focused.focus();
  } else if (focus) {
    const line = lineOfRun(focus[0]);
    if (line) [...line.querySelectorAll('button, a')].find(control => (control.dataset.pin || control.className) === focus[1])?.focus();
  }
}

/** @param {History.RunList} runs */
export function showCount(runs) {
  const first = runs.page * runs.per_page, last = first + runs.rows.length, filtered = FIELDS.some(key => state[key]);
  let text = runs.rows.length === runs.total ? plural(runs.total, 'run') : 'Runs ' + count(first + 1) + ' to ' + count(last) + ' of ' + count(runs.total);
  if (filtered && runs.rows.length) text += ', of ' + count(runs.kept) + ' altogether';
  setText(find('.td-count'), runs.rows.length ? text : '');
}

/** @param {History.Runs} reply */
export function showEmpty(reply) {
  const { found: runs, kept } = reply, box = find('.td-empty-run');
  let text = '';
  if (!kept) text = 'Runs are kept in memory only here, so there is no history: start the app with --history FILE.';
  else if (!runs.kept && reply.trouble) text = 'No kept run can be shown now.';
  else if (!runs.kept) text = (reply.notes && reply.notes + ' ') + 'No run is kept yet. Go to Compare and press Run: each run is kept, and found again here. Runs of the command line are kept here too.';
  else if (!runs.total) text = 'No run of ' + count(runs.kept) + ' matches. Leave a filter out, or press Clear.';
  else if (!runs.rows.length) text = 'There is no page ' + count(runs.page + 1) + ': ' + plural(runs.total, 'run') + ' on ' + plural(Math.ceil(runs.total / runs.per_page), 'page') + '.';
  setText(box, text);
}

/** @param {History.RunList} runs */
export function showPages(runs) {
  const nav = find('.td-pages'), pages = Math.ceil(runs.total / runs.per_page), at = runs.page + 1;
  nav.hidden = pages < 2 && at === 1;
  const step = (text, to) => {
    const node = button('', text, '', () => { change({ at: String(to) }, true); find('.td-runs').scrollIntoView({ block: 'nearest' }); });
    node.disabled = to < 1 || to > pages || to === at;
    return node;
  };
  const focused = focusWithin(nav)?.textContent;
  nav.replaceChildren(step('First', 1), step('Newer', Math.min(at - 1, pages)), el('span', '', 'Page ' + count(at) + ' of ' + count(pages)), step('Older', at + 1), step('Last', pages));
  if (focused) [...nav.querySelectorAll('button')].find(button => button.textContent === focused && !button.disabled)?.focus();
}

// --- a run as a file: saved from its row, and taken in from a recording ---

const SAVED = { File: 'dyno', Report: 'html', CSV: 'csv', JSON: 'json' };
const TITLES = { File: 'The whole run as one file, which tokendyno reads again', Report: 'One HTML file that opens offline', CSV: 'Every token and memory sample of the runs in the charts', JSON: 'Figures, ledger and series' };

/** @param {History.Row} row */
function saveCell(row) {
  const cell = el('td', 'td-save-as');
  if (row.status === 'running') return cell;
  for (const [name, ending] of Object.entries(SAVED)) {
    if (row.kind !== 'run' && (ending === 'html' || ending === 'csv')) continue;
    const link = el('a', '', name);
    link.href = 'files/' + encodeURIComponent(row.id) + '.' + ending;
    link.download = '';
    link.title = TITLES[name];
    link.setAttribute('aria-label', name + ' of ' + runName(row) + ', ' + when(row.created));
    cell.append(link, ' ');
  }
  return cell;
}

async function takeIn(file) {
  let reply, said;
  try {
    reply = await fetch('import', { method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: file });
    said = await reply.json();
  } catch (cause) {
    throw new Error('The server does not answer. Nothing was taken in: try again.', { cause });
  }
  if (!reply.ok) throw new Error(said.detail);
  return said.run;
}

/** @type {HTMLInputElement} */
const chosen = find('.td-import-file');
find('.td-import').addEventListener('click', () => chosen.click());
chosen.addEventListener('change', async () => {
  const [file] = chosen.files;
  if (!file) return;
  try {
    const run = await takeIn(file);
    change({ ...Object.fromEntries(FIELDS.map(key => [key, ''])), q: run, at: '1' }, true);
  } catch (error) { complain(error); }
  chosen.value = '';
});

// --- name, note, share, delete: deleting can be undone while the page is open ---

/** @param {History.Row} row */
function edit(row) {
  find('.td-edit')?.remove();
  const holder = el('tr', 'td-edit'), cell = add(holder, 'td'), form = add(cell, 'form');
  holder.dataset.of = row.id;
  const name = el('input'), note = el('textarea');
  name.value = row.name; name.maxLength = 80;
  note.value = row.note; note.maxLength = 2000; note.rows = 2;
  for (const [label, control] of /** @type {[string, HTMLElement][]} */ ([['Name', name], ['Note', note]])) {
    add(form, 'label').append(el('span', '', label), control);
  }
  const save = add(form, 'button', 'td-save', 'Save');
  save.type = 'submit';
  const leave = () => { holder.remove(); lineOfRun(row.id)?.querySelector('.td-edit-run')?.focus(); };
  form.append(button('td-cancel', 'Cancel', '', leave));
  form.addEventListener('keydown', event => { if (event.key === 'Escape') leave(); });
  form.addEventListener('submit', async event => {
    event.preventDefault();
    if (name.value !== row.name && !await changed(row, 'name', name.value)) return;  // what was typed stays
    if (note.value !== row.note && !await changed(row, 'note', note.value)) return;
    leave();
    show();
  });
  cell.colSpan = COLUMNS.length;
  lineOfRun(row.id).after(holder);
  name.select();
}

/** Whether a run was changed; else the page says why not. @param {History.Row} row @param {string} what @param {string} [text] */
async function changed(row, what, text = '') {
  try {
    await question({ ask: 'change', what, run: row.id, text });
  } catch (error) { complain(error); return false; }
  return true;
}

/** @param {History.Row} row */
async function remove(row) {
  if (!await changed(row, 'delete')) return;
  const said = el('p', '', 'Deleted: ' + runName(row) + ', ' + when(row.created) + '. ');
  const undo = button('td-undelete', 'Undo', 'Undo: restore ' + runName(row) + ', ' + when(row.created), () => restore(row, said));
  said.append(undo);
  find('.td-undo').append(said);
  change({ pins: state.pins.filter(pin => !pin.startsWith(row.id + '.')) }, false);
  undo.focus();
}

async function restore(row, said) {
  if (!await changed(row, 'undelete')) return;
  said.remove();
  await show();
  lineOfRun(row.id)?.querySelector('a')?.focus();
}
