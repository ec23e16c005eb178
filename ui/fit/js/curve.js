// Memory over the context: of what fits, of the model as it is, and how much there is.

import { add } from '../../components/js/add.js';
import { bare, drawPlot } from '../../components/js/plot.js';

/** @param {Fit.FitView} found */
export function drawCurve(found) {
  /** @type {HTMLElement} */
  const box = element.querySelector('.td-fit-curve');
  const { curves, room_bytes } = found.answer, gib = 2 ** 30;
  box.hidden = !curves.length;
  box.replaceChildren();
  if (!curves.length) return;
  add(box, 'figcaption', '', 'Memory over the context');
  const plot = add(box, 'div', 'td-plotted'), [first] = curves, last = first.contexts.at(-1);
  const right = Math.min(last, 2.5 * Math.max(found.context, first.most));  // what cannot fit would flatten the rest
  const highest = Math.max(...first.bytes.filter((bytes, at) => first.contexts[at] <= right));
  const top = 1.15 * Math.max(room_bytes, first.bytes[0], Math.min(2 * room_bytes, highest)) / gib;
  plot.setAttribute('aria-hidden', 'true');
  drawPlot(plot, (css) => [
    ...curves.map((curve, at) => ({
      x: curve.contexts, y: curve.bytes.map((bytes) => bytes / gib), mode: 'lines', name: bare(curve.title),
      line: { color: css(at ? '--body-text-color-subdued' : '--body-text-color'), width: 2, dash: at ? 'dash' : 'solid' },
      hovertemplate: '%{x:,} tokens: %{y:.3~g} GiB<extra>' + bare(curve.title) + '</extra>',
    })),
    {
      x: [0, last], y: [room_bytes / gib, room_bytes / gib], mode: 'lines', name: 'memory of the device', hoverinfo: 'skip',
      line: { color: css('--body-text-color-subdued'), width: 1, dash: 'dot' },
    },
  ], () => ({
    xaxis: { range: [0, right], title: { text: found.encoder ? 'tokens of input' : 'tokens of context' } },
    yaxis: { title: { text: 'GiB' }, range: [0, top] },
    showlegend: true, legend: { orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0 }, margin: { t: 28, b: 38, l: 52, r: 12 },
  }));
}
