// The KV cache over the context: of one model by kind, and of several with and without a sliding window.

import { add } from '../../components/js/add.js';
import { bare, drawPlot } from '../../components/js/plot.js';

const COLOURS = ['#4269d0', '#ff725c', '#3ca951', '#a463f2'], MIB = 2 ** 20;

const AXES = {
  xaxis: { title: { text: 'tokens of context' } }, yaxis: { title: { text: 'MiB' }, rangemode: 'tozero' },
  showlegend: true, legend: { orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0 }, margin: { t: 28, b: 38, l: 52, r: 12 },
};
/** @type {{ [kind: string]: string[] }} */
const KINDS = {
  window: ['#4269d0', 'sliding window'], growing: ['#ff725c', 'grows with the context'], latent: ['#a463f2', 'latent (grows)'],
  state: ['#3ca951', 'state (flat)'], index: ['#9c6b4e', 'index (grows)'],
};

// What stays flat lies at the bottom, so that what grows on it is seen.
/** @param {Fit.FitView} found */
export function drawKinds({ kinds: { contexts, kinds, said } }) {
  /** @type {HTMLElement} */
  const box = element.querySelector('.td-fit-kinds'), flat = ['state', 'window'].filter(kind => kind in kinds);
  const order = [...flat, ...Object.keys(kinds).filter(kind => !flat.includes(kind))];
  box.hidden = !order.length;
  box.replaceChildren();
  add(box, 'figcaption', '', 'KV cache of one sequence over the context, by kind; 2 bytes a number');
  const plot = add(box, 'div', 'td-plotted');
  plot.setAttribute('aria-hidden', 'true');
  drawPlot(plot, () => order.map(kind => ({
    x: contexts, y: kinds[kind].map(size => size / MIB), mode: 'lines', name: KINDS[kind][1], stackgroup: 'kv',
    line: { color: KINDS[kind][0], width: 1.5 }, hovertemplate: '%{x:,} tokens: %{y:,.3~g} MiB<extra>' + KINDS[kind][1] + '</extra>',
  })), () => AXES);
  add(box, 'p', '', said);
}

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
  }))), () => AXES);
  for (const one of found.windows) add(box, 'p', '', one.said);
}
