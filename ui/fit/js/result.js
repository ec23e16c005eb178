// The answer of the Fit page. Text reaches the document through textContent only.

import { afterPress } from '../../components/js/press.js';
import { onTheme } from '../../components/js/theme.js';
import { drawChart } from './chart.js';
import { drawCurve } from './curve.js';
import { drawTable } from './table.js';
import { drawKinds, drawWindows } from './windows.js';

let all = false, width = 0;
const everything = element.querySelector('.td-all');

function draw() {
  const box = element.querySelector('.td-fit');
  box.hidden = !props.value;
  if (!props.value) return;
  /** @type {Fit.FitView} */
  const found = JSON.parse(props.value);
  const main = found.rows.filter((row) => row.main);
  const rows = all ? found.rows : main;
  everything.hidden = main.length === found.rows.length;
  everything.textContent = all ? 'Fewer rows' : 'All ' + found.rows.length + ' rows';
  everything.setAttribute('aria-pressed', String(all));
  const hint = element.querySelector('.td-fit-hint');
  hint.textContent = found.not_here
    ? 'No row can be run from here: ' + found.not_here
    : '"Run this" opens Compare with this model and batch size, and the row as arm B. Arm A and the prompt stay.';
  /** @type {HTMLAnchorElement} */
  const link = element.querySelector('.td-fit-measured a');
  link.parentElement.hidden = !found.run;
  link.textContent = found.measured;
  link.href = '?' + new URLSearchParams({ run: found.run });
  drawCurve(found);
  drawChart(found, main);
  drawTable(found, rows);
  drawKinds(found);
  drawWindows(found);
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
