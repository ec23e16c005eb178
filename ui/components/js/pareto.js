// Pareto charts of arms: time against memory, a point for each arm, and what no other beats.

import { add, css } from './dom.js';
import { drawPlot, plotIn, withoutMarkup } from './plot.js';

/** What no other beats in everything, from the fastest on, those that compete together. @param {Worth.Pareto} found */
function frontOf(found) {
  const kinds = [...new Set(found.points.map(one => one.alike))];
  return kinds.flatMap(kind => found.points.filter(one => one.front && one.alike === kind).sort((a, b) => a.latency_s - b.latency_s));
}

// The front is filled and joined by a line; a point is the larger, the more its texts differ. Beside it stands its mark;
// without marks the front is numbered as in the list below the chart.
/** @param {HTMLElement} node @param {Worth.Pareto} found */
function drawPareto(node, found) {
  const large = Math.max(...found.points.map(one => one.memory_bytes)) > 4 * 2 ** 30;
  const scale = large ? 2 ** -30 : 2 ** -20, most = found.quality ? Math.max(...found.points.map(one => one.quality)) : 0;
  const x = one => one.latency_s * 1e3, y = one => one.memory_bytes * scale;
  const size = one => 9 + (most ? 13 * Math.sqrt((one.quality || 0) / most) : 0);
  const front = frontOf(found), ends = front.flatMap((one, at) => at && front[at - 1].alike !== one.alike ? [null, one] : [one]);
  const markOf = one => one.mark || (one.front ? String(front.indexOf(one) + 1) : '');
  const dots = (points, ink, filled) => ({
    x: points.map(x), y: points.map(y), mode: 'markers+text', cliponaxis: false,
    marker: { size: points.map(size), color: filled ? ink : 'rgba(0,0,0,0)', line: { color: ink, width: 1.5 } },
    text: points.map(markOf), textposition: 'top center', textfont: { size: 11, color: ink },
    customdata: points.map(one => withoutMarkup(one.label + ': ' + one.text)), hovertemplate: '%{customdata}<extra></extra>',
  });
  drawPlot(node, () => [
    { x: ends.map(one => one && x(one)), y: ends.map(one => one && y(one)), mode: 'lines', line: { color: css('--body-text-color-subdued'), width: 1, dash: 'dot' }, hoverinfo: 'skip' },
    dots(found.points.filter(one => !one.front), css('--body-text-color-subdued'), false), dots(front, css('--body-text-color'), true),
  ], {
    xaxis: { title: { text: 'Time per token (ms)', font: { size: 11 } } }, yaxis: { title: { text: 'Peak memory (' + (large ? 'GiB' : 'MiB') + ')', font: { size: 11 } } },
    margin: { t: 22, b: 38, l: 52, r: 24 },
  });
}

/** The chart under a title, with its numbers in words. @param {HTMLElement} parent @param {Worth.Pareto} found */
export function showPareto(parent, found) {
  const box = add(parent, 'figure', 'td-pareto'), plot = plotIn(box, found.quality ? 'Time, memory and quality' : 'Time and memory');
  const among = new Set(found.points.map(one => one.alike)).size > 1 ? ' of the same sizes' : '';
  add(box, 'p', '', 'What no other' + among + ' beats in ' + (found.quality ? 'time, memory and ' + found.quality + ' together; a larger point has more of the last:' : 'time and memory together:'));
  const list = add(box, 'ol');
  for (const one of frontOf(found)) {
    const item = add(list, 'li', '', one.label + ': ' + one.text);
    if (/^\d+$/.test(one.mark)) item.value = Number(one.mark);
  }
  drawPareto(plot, found);
}
