// A run as a file: saved from its row, and taken in from a recording.

import { el, find } from '../../live/js/dom.js';
import { FIELDS, change, complain, when } from './state.js';
import { runName } from './rows.js';

const SAVED = { File: 'dyno', Report: 'html', CSV: 'csv', JSON: 'json' };
const TITLES = { File: 'The whole run as one file, which tokendyno reads again', Report: 'One HTML file that opens offline', CSV: 'Every token and memory sample', JSON: 'Figures, ledger and series' };

/** @param {History.Row} row */
export function saveCell(row) {
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
