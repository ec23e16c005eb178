// The table: the rows as text, each with "Run this" or the reason why it cannot run on this machine.

import { focusWithin } from '../../components/js/focus.js';
import { add } from '../../components/js/add.js';

/** @param {Fit.FitView} found @param {Fit.RowView[]} rows */
export function drawTable(found, rows) {
  const box = element.querySelector('.td-fit-rows');
  const left = box.scrollLeft;
  const focused = focusWithin(box)?.dataset.row ?? '';
  box.replaceChildren();
  const table = add(box, 'table');
  add(table, 'caption', 'td-hidden', found.heading);
  const head = add(add(table, 'thead'), 'tr');
  for (const name of [...found.columns, 'On this machine']) add(head, 'th', '', name).scope = 'col';
  const body = add(table, 'tbody');
  for (const row of rows) {
    const line = add(body, 'tr', row.margin.replaceAll(' ', '-'));
    row.cells.forEach((text, at) => {
      const cell = add(line, at === 1 ? 'th' : 'td', at === 0 ? 'td-margin' : '', text);
      if (at === 1) cell.scope = 'row';
      cell.dataset.label = found.columns[at];
    });
    const last = add(line, 'td', 'td-run');
    if (row.not_here) {
      add(last, 'span', 'td-cannot', '\u2715 Cannot run here');
      if (row.not_here !== found.not_here) add(last, 'small', '', row.not_here);
    } else {
      const button = add(last, 'button', 'td-run-this', 'Run this');
      button.type = 'button';
      button.dataset.row = JSON.stringify(row.choices);
      button.setAttribute('aria-label', 'Run this: ' + row.title + ' as arm B of Compare');
      button.addEventListener('click', () => trigger('take', { choices: row.choices }));
    }
  }
  box.scrollLeft = left;
  if (focused) [...box.querySelectorAll('.td-run-this')].find((one) => one.dataset.row === focused)?.focus();
}
