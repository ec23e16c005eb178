// The table of pinned arms: what else differs first, then conditions, choices, figures, ledgers and texts.

import { el, find } from '../../live/js/dom.js';
import { showPareto } from '../../components/js/pareto.js';
import { change, complain, question, state, when } from './state.js';
import { seen } from './rows.js';
import { showTray } from './tray.js';
import { drawOverlay } from './overlay.js';

const GROUPS = { conditions: 'Ran under', choices: 'Choices that differ', figures: 'Measured', ledger: 'Proof', text: 'Texts' };
let shownPins = '';

// The list is shown: the next table is another view, which takes the focus.
export function leaveBeside() {
  shownPins = '';
}

/** @param {History.PinnedArm} arm */
function headCell(arm) {
  const cell = el('th', 'arm-' + arm.label), link = el('a', '', arm.title);
  cell.scope = 'col';
  link.href = '?run=' + encodeURIComponent(arm.run);
  cell.append(el('b', 'td-arm', arm.label), link, el('small', '', 'arm ' + arm.arm + ', ' + when(arm.created)), el('small', '', arm.choices));
  return cell;
}

/** @param {History.SideRow} row */
function sideRow(row) {
  const line = el('tr', row.group === 'conditions' && row.differs ? 'td-differs' : ''), name = el('th', '', row.label);
  name.scope = 'row';
  if (row.group === 'conditions' && row.differs) name.append(el('small', '', '\u2260 differs'));
  line.append(name, ...row.cells.map((cell, at) => {
    const box = el('td', '', cell.text);
    box.dataset.arm = String(at + 1);
    if (cell.against) box.append(el('small', 'td-against', cell.against));
    if (cell.note) box.append(el('small', '', cell.note));
    return box;
  }));
  return line;
}

/** @param {History.SideBySide} found */
function showTable(found) {
  const table = el('table'), head = el('tr');
  head.append(el('td'), ...found.arms.map(headCell));
  table.append(el('caption', 'td-hidden', 'Pinned arms, figure by figure'), el('thead'));
  table.tHead.append(head);
  for (const [group, title] of Object.entries(GROUPS)) {
    const rows = found.rows.filter(row => row.group === group);
    if (!rows.length) continue;
    const body = el('tbody', 'td-' + group), first = el('tr'), cell = el('th', 'td-group', title);
    cell.colSpan = found.arms.length + 1;
    cell.scope = 'rowgroup';
    first.append(cell);
    body.append(first, ...rows.map(sideRow));
    table.append(body);
  }
  find('.td-side').replaceChildren(table);
}

/** @param {() => boolean} wanted */
export async function showBeside(wanted) {
  const pins = state.pins.join();
  let found;
  try {
    found = await question({ ask: 'beside', pins });
  } catch (error) {
    if (wanted()) { complain(error); find('.td-beside').hidden = true; }
    return;
  }
  if (!wanted()) return;
  complain(found.missing.length ? new Error('Not kept here (any more): ' + found.missing.join(', ') + '.') : null);
  find('.td-said').replaceChildren(...found.remarks.map(text => el('li', '', text)));
  for (const arm of found.arms) seen.set(arm.pin, arm.title + ' ' + arm.arm + ': ' + arm.choices);
  showTray();
  showTable(found);
  find('.td-beside').hidden = false;
  find('.td-front').replaceChildren();
  if (found.pareto) showPareto(find('.td-front'), found.pareto);
  if (pins !== shownPins) find('.td-back').focus();
  shownPins = pins;
  try {
    await drawOverlay(found.arms, wanted);
  } catch (error) {
    if (wanted()) complain(error);
  }
}

find('.td-back').addEventListener('click', () => change({ beside: false }, true));
