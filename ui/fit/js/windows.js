// The KV cache over the context with and without a sliding window, of several models.

import { add } from '../../components/js/add.js';
import { bare, drawPlot } from '../../components/js/plot.js';

const COLOURS = ['#4269d0', '#ff725c', '#3ca951', '#a463f2'], MIB = 2 ** 20;

/** @param {Fit.FitView} found */
export function drawWindows(found) {
  /** @type {HTMLElement} */
  const box = element.querySelector('.td-fit-windows');
  box.replaceChildren();
  add(box, 'figcaption', '', 'KV cache of one sequence over the context: with its sliding window (solid), and without (dashed); 2 bytes a number');
  const plot = add(box, 'div', 'td-plotted');
  plot.setAttribute('aria-hidden', 'true');
  drawPlot(plot, () => found.windows.flatMap((one, at) => [one.windowed, one.unwindowed].map((bytes, without) => ({
    x: one.contexts, y: bytes.map(size => size / MIB), mode: 'lines', name: bare(one.title), showlegend: !without,
    line: { color: COLOURS[at % COLOURS.length], width: 2, dash: without ? 'dash' : 'solid' },
    hovertemplate: '%{x:,} tokens: %{y:,.3~g} MiB<extra>' + bare(one.title) + (without ? ', no window' : '') + '</extra>',
  }))), () => ({
    xaxis: { title: { text: 'tokens of context' } }, yaxis: { title: { text: 'MiB' }, rangemode: 'tozero' },
    showlegend: true, legend: { orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0 }, margin: { t: 28, b: 38, l: 52, r: 12 },
  }));
  for (const one of found.windows) add(box, 'p', '', one.said);
}
