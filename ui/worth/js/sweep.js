// A sweep: what is varied is chosen here; lines with intervals, heat maps where two things vary, and a table.

import { add, css } from '../../components/js/dom.js';
import { showPareto } from '../../components/js/pareto.js';
import { drawPlot, plotIn, withoutMarkup } from '../../components/js/plot.js';
import { find, result, showCourse, tableIn } from './course.js';

const EXPLAINED = 'One arm at every combination of these values, in rounds that favour none: lines with 95% intervals, and what no other beats.';
const COLOURS = ['#4269d0', '#ff725c', '#3ca951', '#a463f2', '#9c6b4e'], DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash'];
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
/** @param {HTMLElement} plot @param {Sweep.SweepView} view @param {Sweep.LineChart} chart */
function lines(plot, view, chart) {
  const at = view.places.map(place => view.numbers ? Number(place.replaceAll(',', '')) : withoutMarkup(place));
  // one wide interval leaves the lines readable: it goes on beyond the edge, and the table has its ends
  const tops = (key) => Math.max(...chart.lines.flatMap(line => line[key].filter(value => value !== null)), 0);
  const top = 1.05 * Math.min(Math.max(tops('high'), tops('values')), 2 * tops('values'));
  const colour = (i) => chart.lines.length > 1 ? COLOURS[i % COLOURS.length] : css('--body-text-color');
  drawPlot(plot, () => chart.lines.flatMap((line, i) => {
    const ends = at.flatMap((x, n) => line.low[n] === null ? [] : [[x, line.low[n]], [x, line.high[n]], [null, null]]);
    return [
      { x: ends.map(([x]) => x), y: ends.map(([, y]) => y), mode: 'lines', line: { color: colour(i), width: 6 }, opacity: 0.4, hoverinfo: 'skip', showlegend: false },
      {
        x: at, y: line.values, mode: 'lines+markers', name: withoutMarkup(line.title), line: { color: colour(i), width: 1.5, dash: DASHES[i % DASHES.length] },
        marker: { size: 6 }, customdata: line.texts.map((text) => (line.title ? withoutMarkup(line.title) + ': ' : '') + text), hovertemplate: '%{customdata}<extra></extra>',
      },
    ];
  }), {
    xaxis: {
      title: { text: withoutMarkup(view.horizontal), font: { size: 11 } }, ...(view.numbers ? { type: 'log', tickvals: at, ticktext: view.places } : { type: 'category' }),
    },
    yaxis: { title: { text: chart.unit, font: { size: 11 } }, range: [0, top || 1] }, showlegend: chart.lines.length > 1,
    legend: { orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0 }, margin: { t: chart.lines.length > 1 ? 28 : 8, b: 38, l: 52, r: 12 },
  });
}
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
  for (const chart of view.charts) if (!unknown(chart)) lines(plotIn(add(grid, 'figure'), chart.title), view, chart);
  for (const map of view.heats) if (map.values.flat().some(value => value !== null)) heat(plotIn(add(grid, 'figure'), map.title + ' by both'), view, map);
  if (view.pareto) showPareto(grid, view.pareto);
  tableIn(result, 'Points of the sweep', view.table);
  add(result, 'p', 'td-worth-note', view.note);
};
showCourse({ draw, begin, explained: EXPLAINED });
