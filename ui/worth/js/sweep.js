// A sweep: what is varied is chosen here; lines with intervals, heat maps where two things vary, and a table.

import { add, css } from '../../components/js/dom.js';
import { drawLines } from '../../components/js/lines.js';
import { showPareto } from '../../components/js/pareto.js';
import { drawPlot, plotIn, withoutMarkup } from '../../components/js/plot.js';
import { find, result, showCourse, tableIn } from './course.js';

const EXPLAINED = 'One arm at every combination of these values, in rounds that favour none: lines with 95% intervals, and what no other beats.';
/** @type {NodeListOf<HTMLSelectElement>} */
const selects = element.querySelectorAll('.td-sweep-name');
/** @type {NodeListOf<HTMLInputElement>} */
const fields = element.querySelectorAll('.td-sweep-values');
const names = [...selects], values = [...fields];

// --- what is varied ---
names.forEach((select, at) => {
  if (at) add(select, 'option', '', 'nothing else').value = '';
  for (const { name, title } of settings.varied) add(select, 'option', '', title).value = name;
  const fill = () => {
    const chosen = settings.varied.find(({ name }) => name === select.value);
    values[at].hidden = !chosen;
    values[at].value = chosen ? chosen.values : '';
  };
  select.addEventListener('change', fill);
  fill();
});
const begin = () => ({
  arm: /** @type {HTMLInputElement} */ (element.querySelector('.td-sweep-arm')).value,
  over: names.map((select, at) => [select.value, values[at].value]).filter(([name]) => name),
  quality: /** @type {HTMLInputElement} */ (element.querySelector('.td-sweep-quality input')).checked,
});
for (const field of values) field.addEventListener('keydown', (event) => { if (event.key === 'Enter') find('begin').click(); });

// --- what was measured ---
/** @param {HTMLElement} plot @param {Sweep.SweepView} view @param {Sweep.HeatMap} map */
function heat(plot, view, map) {
  drawPlot(plot, () => [{
    type: 'heatmap', z: map.values, x: map.columns.map(withoutMarkup), y: map.rows.map(withoutMarkup), text: map.texts, texttemplate: '%{text}', hoverinfo: 'skip', showscale: false,
    xgap: 2, ygap: 2, colorscale: [[0, css('--background-fill-secondary')], [1, css('--input-border-color')]], textfont: { color: css('--body-text-color') },
  }], {
    xaxis: { type: 'category', title: { text: withoutMarkup(view.across), font: { size: 11 } } }, yaxis: { type: 'category', autorange: 'reversed', title: { text: withoutMarkup(view.down), font: { size: 11 } } },
  });
}
let begun = '';
/** The fields show what is swept, once. @param {Sweep.SweepView} view */
const show = (view) => {
  if (begun === view.course.id) return;
  begun = view.course.id;
  names.forEach((select, at) => {
    const [name, text] = view.over[at] || ['', ''];
    select.value = name;
    values[at].value = text;
    values[at].hidden = !name;
  });
};
/** @param {Sweep.SweepView} view */
const draw = (view) => {
  show(view);
  add(result, 'p', 'td-sweep-arm-said', 'Arm: ' + (view.arm || 'every axis at its default') + '.');
  const grid = add(result, 'div', 'td-plots');
  const unknown = (chart) => chart.lines.every(line => line.values.every(value => value === null));
  for (const chart of view.charts) if (!unknown(chart)) drawLines(plotIn(add(grid, 'figure'), chart.title), view, chart);
  for (const map of view.heats) if (map.values.flat().some(value => value !== null)) heat(plotIn(add(grid, 'figure'), map.title + ' by both'), view, map);
  if (view.pareto) showPareto(grid, view.pareto);
  tableIn(result, 'Points of the sweep', view.table);
  add(result, 'p', 'td-worth-note', view.note);
};
showCourse({ draw, begin, explained: EXPLAINED });
