// Memory over the context: of what fits, of the model as it is, and how much there is; and the KV cache alone, of one model by
// kind, and of several with and without a sliding window.

import { add, css } from '../../components/js/dom.js';
import { drawPlot, plotIn, withoutMarkup } from '../../components/js/plot.js';

const COLOURS = ['#4269d0', '#ff725c', '#3ca951', '#a463f2'], MIB = 2 ** 20;

const LEGEND = { showlegend: true, legend: { orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0 }, margin: { t: 28, b: 38, l: 52, r: 12 } };
const AXES = {
  xaxis: { title: { text: 'tokens of context' } }, yaxis: { title: { text: 'MiB' }, rangemode: 'tozero' },
  ...LEGEND,
};
/** @type {{ [kind: string]: string[] }} */
const KINDS = {
  window: ['#4269d0', 'sliding window'], growing: ['#ff725c', 'grows with the context'], latent: ['#a463f2', 'latent (grows)'],
  state: ['#3ca951', 'state (flat)'], index: ['#9c6b4e', 'index (grows)'],
};

/** What stays flat lies at the bottom, so that what grows on it is seen. @param {Fit.FitView} view */
export function drawKinds({ kinds: { contexts, kinds, said } }) {
  /** @type {HTMLElement} */
  const box = element.querySelector('.td-fit-kinds'), flat = ['state', 'window'].filter(kind => kind in kinds);
  const order = [...flat, ...Object.keys(kinds).filter(kind => !flat.includes(kind))];
  box.hidden = !order.length;
  box.replaceChildren();
  const plot = plotIn(box, 'KV cache of one sequence over the context, by kind');
  drawPlot(plot, () => order.map(kind => ({
    x: contexts, y: kinds[kind].map(size => size / MIB), mode: 'lines', name: KINDS[kind][1], stackgroup: 'kv',
    line: { color: KINDS[kind][0], width: 1.5 }, hovertemplate: '%{x:,} tokens: %{y:,.3~g} MiB<extra>' + KINDS[kind][1] + '</extra>',
  })), AXES);
  add(box, 'p', '', said);
}

/** @param {Fit.FitView} view */
export function drawWindows(view) {
  /** @type {HTMLElement} */
  const box = element.querySelector('.td-fit-windows');
  box.replaceChildren();
  const plot = plotIn(box, 'KV cache of one sequence over the context: with its sliding window (solid), and without (dashed)');
  drawPlot(plot, () => view.windows.flatMap((model, at) => [model.windowed, model.unwindowed].map((bytes, without) => ({
    x: model.contexts, y: bytes.map(size => size / MIB), mode: 'lines', name: withoutMarkup(model.title), showlegend: !without,
    line: { color: COLOURS[at % COLOURS.length], width: 2, dash: without ? 'dash' : 'solid' },
    hovertemplate: '%{x:,} tokens: %{y:,.3~g} MiB<extra>' + withoutMarkup(model.title) + (without ? ', no window' : '') + '</extra>',
  }))), AXES);
  for (const model of view.windows) add(box, 'p', '', model.said);
}

/** @param {Fit.FitView} view */
export function drawCurve(view) {
  /** @type {HTMLElement} */
  const box = element.querySelector('.td-fit-curve');
  const { curves, room_bytes } = view.answer, gib = 2 ** 30;
  box.hidden = !curves.length;
  box.replaceChildren();
  if (!curves.length) return;
  const plot = plotIn(box, 'Memory over the context'), [first] = curves, last = first.contexts.at(-1);
  const right = Math.min(last, 2.5 * Math.max(view.context, first.most));  // what cannot fit would flatten the rest
  const highest = Math.max(...curves.flatMap((curve) => curve.bytes.filter((bytes, at) => curve.contexts[at] <= right)));
  const begins = curves.map((curve) => curve.bytes[0]);  // of the model as it is too, however far it is from fitting
  const top = 1.15 * Math.max(room_bytes, ...begins, Math.min(2 * room_bytes, highest)) / gib;
  drawPlot(plot, () => [
    ...curves.map((curve, at) => ({
      x: curve.contexts, y: curve.bytes.map((bytes) => bytes / gib), mode: 'lines', name: withoutMarkup(curve.title),
      line: { color: css(at ? '--body-text-color-subdued' : '--body-text-color'), width: 2, dash: at ? 'dash' : 'solid' },
      hovertemplate: '%{x:,} tokens: %{y:.3~g} GiB<extra>' + withoutMarkup(curve.title) + '</extra>',
    })),
    {
      x: [0, last], y: [room_bytes / gib, room_bytes / gib], mode: 'lines', name: 'memory of the device', hoverinfo: 'skip',
      line: { color: css('--body-text-color-subdued'), width: 1, dash: 'dot' },
    },
  ], {
    xaxis: { range: [0, right], title: { text: view.encoder ? 'tokens of input' : 'tokens of context' } },
    yaxis: { title: { text: 'GiB' }, range: [0, top] },
    ...LEGEND,
  });
}
