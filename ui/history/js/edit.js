// Name, note, share, delete. Deleting can be undone while the page is open.

import { el, find } from '../../live/js/dom.js';
import { change, complain, question, state, when } from './state.js';
import { COLUMNS, button, lineOfRun, runName } from './rows.js';
import { show } from './page.js';

/** @param {History.Row} row */
export function edit(row) {
  find('.td-edit')?.remove();
  const holder = el('tr', 'td-edit'), cell = el('td'), form = el('form');
  holder.dataset.of = row.id;
  const name = el('input'), note = el('textarea');
  name.value = row.name; name.maxLength = 80;
  note.value = row.note; note.maxLength = 2000; note.rows = 2;
  for (const [label, control] of /** @type {[string, HTMLElement][]} */ ([['Name', name], ['Note', note]])) {
    const box = el('label', '');
    box.append(el('span', '', label), control);
    form.append(box);
  }
  const save = el('button', 'td-save', 'Save');
  save.type = 'submit';
  const leave = () => { holder.remove(); lineOfRun(row.id)?.querySelector('.td-edit-run')?.focus(); };
  form.append(save, button('td-cancel', 'Cancel', '', leave));
  form.addEventListener('keydown', event => { if (event.key === 'Escape') leave(); });
  form.addEventListener('submit', async event => {
    event.preventDefault();
    try {
      if (name.value !== row.name) await question({ ask: 'change', what: 'name', run: row.id, text: name.value });
      if (note.value !== row.note) await question({ ask: 'change', what: 'note', run: row.id, text: note.value });
    } catch (error) { complain(error); return; }  // what was typed stays
    leave();
    show();
  });
  cell.colSpan = COLUMNS.length;
  cell.append(form);
  holder.append(cell);
  lineOfRun(row.id).after(holder);
  name.select();
}

/** @param {History.Row} row */
export async function share(row) {
  try {
    await question({ ask: 'change', what: row.shared ? 'unshare' : 'share', run: row.id });
  } catch (error) { complain(error); return; }
  show();
}

/** @param {History.Row} row */
export async function remove(row) {
  try {
    await question({ ask: 'change', what: 'delete', run: row.id });
  } catch (error) { complain(error); return; }
  const said = el('p', '', 'Deleted: ' + runName(row) + ', ' + when(row.created) + '. ');
  const undo = button('td-undelete', 'Undo', 'Undo: restore ' + runName(row) + ', ' + when(row.created), () => restore(row, said));
  said.append(undo);
  find('.td-undo').append(said);
  change({ pins: state.pins.filter(pin => !pin.startsWith(row.id + '.')) }, false);
  undo.focus();
}

async function restore(row, said) {
  try {
    await question({ ask: 'change', what: 'undelete', run: row.id });
  } catch (error) { complain(error); return; }
  said.remove();
  await show();
  lineOfRun(row.id)?.querySelector('a')?.focus();
}
