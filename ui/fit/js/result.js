// The answer of the Fit page: curves, bars, and a table that says the same as text.

import { add, afterPress, button, focusWithin, onTheme, tableHead } from '../../components/js/dom.js';
import { drawChart } from './chart.js';
import { drawCurve, drawKinds, drawWindows } from './curves.js';

let all = false, width = 0;
const everything = element.querySelector('.td-all');

function draw() {
  const box = element.querySelector('.td-fit');
  box.hidden = !props.value;
  if (!props.value) return;
  /** @type {Fit.FitView} */
  const view = JSON.parse(props.value);
  const main = view.rows.filter((row) => row.main);
  const rows = all ? view.rows : main;
  everything.hidden = main.length === view.rows.length;
  everything.textContent = all ? 'Fewer rows' : 'All ' + view.rows.length + ' rows';
  everything.setAttribute('aria-pressed', String(all));
  const hint = element.querySelector('.td-fit-hint');
  hint.textContent = view.not_here
    ? 'No row can be run from here: ' + view.not_here
    : '"Run this" opens Compare with this model and batch size, and the row as arm B. Arm A and the prompt stay.';
  /** @type {HTMLAnchorElement} */
  const link = element.querySelector('.td-fit-measured a');
  link.parentElement.hidden = !view.run;
  link.textContent = view.measured;
  link.href = '?' + new URLSearchParams({ run: view.run });
  drawCurve(view);
  drawChart(view, main);
  drawTable(view, rows);
  drawKinds(view);
  drawWindows(view);
}

/** Each row with "Run this", or the reason why it cannot run on this machine. @param {Fit.FitView} view @param {Fit.RowView[]} rows */
function drawTable(view, rows) {
  const box = element.querySelector('.td-fit-rows');
  const left = box.scrollLeft;
  const focused = focusWithin(box)?.dataset.row ?? '';
  box.replaceChildren();
  const table = add(box, 'table');
  add(table, 'caption', 'td-hidden', view.heading);
  table.append(tableHead([...view.columns, 'On this machine']));
  const body = add(table, 'tbody');
  for (const row of rows) {
    const line = add(body, 'tr', row.margin.replaceAll(' ', '-'));
    row.cells.forEach((text, at) => {
      const cell = add(line, at === 1 ? 'th' : 'td', at === 0 ? 'td-margin' : '', text);
      if (at === 1) cell.scope = 'row';
      cell.dataset.label = view.columns[at];
    });
    const last = add(line, 'td', 'td-run');
    if (row.not_here) {
      add(last, 'span', 'td-cannot', '\u2715 Cannot run here');
      if (row.not_here !== view.not_here) add(last, 'small', '', row.not_here);
    } else {
      const run = button('td-run-this', 'Run this', 'Run this: ' + row.title + ' as arm B of Compare', () => trigger('take', { choices: row.choices }));
      run.dataset.row = JSON.stringify(row.choices);
      last.append(run);
    }
  }
  box.scrollLeft = left;
  if (focused) [...box.querySelectorAll('.td-run-this')].find((button) => button.dataset.row === focused)?.focus();
}

const redraw = afterPress(element, draw);
element.querySelector('.td-seek').addEventListener('click', () => trigger('seek', { context: JSON.parse(props.value).context }));
everything.addEventListener('click', () => { all = !all; draw(); });
new ResizeObserver((entries) => {  // labels that have room at this width
  const now = Math.round(entries[0].contentRect.width);
  if (now && now !== width) { width = now; redraw(); }
}).observe(element.querySelector('.td-fit'));
// The sliders end where the model does. They may be ready before or after this.
function tell() {
  if (!props.value) return;
  /** @type {Fit.FitView} */
  const { context, most, label, encoder } = JSON.parse(props.value);
  window.tokendynoFit = { context, most, label, encoder };
  window.dispatchEvent(new Event('tokendyno-fit'));
}
draw();
tell();
onTheme(redraw);
watch('value', () => { redraw(); tell(); });
