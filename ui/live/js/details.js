// More figures: a row for each, a column for each arm, in a part of the page that is closed at first.

import { armsRow, el } from './dom.js';

/** @param {HTMLElement} box */
export function makeDetails(box) {
  let shown = '';

  /** @param {Pick<Live.ArmHead, 'name' | 'details'>[]} arms */
  function take(arms) {
    const ready = arms.filter(arm => arm.details.length);
    const now = JSON.stringify(ready.map(arm => [arm.name, arm.details]));
    if (now === shown) return;
    shown = now;
    box.replaceChildren();
    if (!ready.length) {
      box.append(el('p', 'td-empty', 'Percentiles, intervals and readings of the machine appear here once an arm has finished.'));
      return;
    }
    const table = el('table', ''), head = el('thead', ''), body = el('tbody', '');
    head.append(armsRow('Figure', ready));
    const keys = new Map(ready.flatMap(arm => arm.details.map(tile => [tile.key, tile.label])));
    for (const [key, label] of keys) {
      const tr = el('tr', ''), name = el('th', '', label);
      name.scope = 'row';
      tr.dataset.key = key;
      tr.append(name, ...ready.map(arm => cellOf(arm.details.find(tile => tile.key === key))));
      body.append(tr);
    }
    table.append(head, body);
    box.append(table);
  }

  /** @param {Live.Tile | undefined} tile */
  function cellOf(tile) {
    const cell = el('td', '');
    if (!tile) return cell;
    cell.append(el('b', '', tile.value), document.createTextNode(tile.unit ? ' ' + tile.unit : ''));
    if (tile.note) cell.append(el('small', '', tile.note));
    return cell;
  }

  function clear() { shown = ''; box.replaceChildren(); }
  return { take, clear };
}
