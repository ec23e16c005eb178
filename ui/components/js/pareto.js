// Pareto charts of arms: time against memory, a point for each arm, and what no other beats.

import { add, css } from './dom.js';
import { drawPlot, plotIn, withoutMarkup } from './plot.js';

/** What no other beats in everything, from the fastest on, those that compete together. @param {Worth.Pareto} pareto */
function frontOf(pareto) {
  const kinds = [...new Set(pareto.points.map(point => point.alike))];
  return kinds.flatMap(kind => pareto.points.filter(point => point.front && point.alike === kind).sort((a, b) => a.latency_s - b.latency_s));
}

// The front is filled and joined by a line; a point is the larger, the more its texts differ. Beside it stands its mark;
// without marks the front is numbered as in the list below the chart.
/** @param {HTMLElement} node @param {Worth.Pareto} pareto */
function drawPareto(node, pareto) {
  const large = Math.max(...pareto.points.map(point => point.memory_bytes)) > 4 * 2 ** 30;
  const scale = large ? 2 ** -30 : 2 ** -20, most = pareto.quality ? Math.max(...pareto.points.map(point => point.quality)) : 0;
  const x = point => point.latency_s * 1e3, y = point => point.memory_bytes * scale;
  const size = point => 9 + (most ? 13 * Math.sqrt((point.quality || 0) / most) : 0);
  const front = frontOf(pareto), ends = front.flatMap((point, at) => at && front[at - 1].alike !== point.alike ? [null, point] : [point]);
  const markOf = point => point.mark || (point.front ? String(front.indexOf(point) + 1) : '');
  const dots = (points, ink, filled) => ({
    x: points.map(x), y: points.map(y), mode: 'markers+text', cliponaxis: false,
    marker: { size: points.map(size), color: filled ? ink : 'rgba(0,0,0,0)', line: { color: ink, width: 1.5 } },
    text: points.map(markOf), textposition: 'top center', textfont: { size: 11, color: ink },
    customdata: points.map(point => withoutMarkup(point.label + ': ' + point.text)), hovertemplate: '%{customdata}<extra></extra>',
  });
  drawPlot(node, () => [
    { x: ends.map(point => point && x(point)), y: ends.map(point => point && y(point)), mode: 'lines', line: { color: css('--body-text-color-subdued'), width: 1, dash: 'dot' }, hoverinfo: 'skip' },
    dots(pareto.points.filter(point => !point.front), css('--body-text-color-subdued'), false), dots(front, css('--body-text-color'), true),
  ], {
    xaxis: { title: { text: 'Time per token (ms)', font: { size: 11 } } }, yaxis: { title: { text: 'Peak memory (' + (large ? 'GiB' : 'MiB') + ')', font: { size: 11 } } },
    margin: { t: 22, b: 38, l: 52, r: 24 },
  });
}

/** The chart under a title, with its numbers in words. @param {HTMLElement} parent @param {Worth.Pareto} pareto */
export function showPareto(parent, pareto) {
  const box = add(parent, 'figure', 'td-pareto'), plot = plotIn(box, pareto.quality ? 'Time, memory and quality' : 'Time and memory');
  const among = new Set(pareto.points.map(point => point.alike)).size > 1 ? ' of the same sizes' : '';
  add(box, 'p', '', 'What no other' + among + ' beats in ' + (pareto.quality ? 'time, memory and ' + pareto.quality + ' together; a larger point has more of the last:' : 'time and memory together:'));
  const list = add(box, 'ol');
  for (const point of frontOf(pareto)) {
    const item = add(list, 'li', '', point.label + ': ' + point.text);
    if (/^\d+$/.test(point.mark)) item.value = Number(point.mark);
  }
  drawPareto(plot, pareto);
}
