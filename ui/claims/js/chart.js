// One figure of a claim: the claimed range as a band, the measured interval as a bar with its middle. The text beside it
// says the same.

import { drawPlot } from '../../components/js/plot.js';
import { add } from '../../components/js/add.js';

const CLAIM_CHART_HEIGHT = 58;

/** @param {HTMLElement} parent @param {Claims.FigureView} figure */
export function claimChart(parent, figure) {
  if (figure.value === null) return;
  const plot = add(parent, 'div', 'td-claim-chart');
  plot.setAttribute('aria-hidden', 'true');
  const ends = [figure.low ?? figure.value, figure.high ?? figure.value];
  const claimed = [figure.claimed_low, figure.claimed_high];
  const none = figure.unit === 'x' ? 1 : 0;  // no effect
  const known = [...ends, ...claimed.filter((end) => end !== null), none];
  const least = Math.min(...known), most = Math.max(...known), room = (most - least || Math.abs(most) || 1) * 0.08;
  const range = [least - room, most + room];
  const band = (ink) => claimed.some((end) => end !== null) ? [{
    type: 'rect', xref: 'x', yref: 'paper', x0: claimed[0] ?? range[0], x1: claimed[1] ?? range[1], y0: 0, y1: 1,
    fillcolor: ink, opacity: 0.25, line: { width: 0 }, layer: 'below',
  }] : [];
  const zero = (ink) => ({ type: 'line', xref: 'x', yref: 'paper', x0: none, x1: none, y0: 0, y1: 1, line: { color: ink, width: 1, dash: 'dot' } });
  const measured = (ink) => ({
    type: 'bar', orientation: 'h', y: [''], x: [Math.max(ends[1] - ends[0], (range[1] - range[0]) / 250)], base: [ends[0]],
    width: [0.5], marker: { color: ink }, hoverinfo: 'skip',
  });
  const sign = { '%': '%', x: 'x' }[figure.unit] ?? ' ' + figure.unit, subdued = '--body-text-color-subdued';
  drawPlot(plot, (css) => [measured(css('--body-text-color'))], (css) => ({
    height: CLAIM_CHART_HEIGHT, margin: { t: 4, b: 22, l: 4, r: 12, autoexpand: false }, hovermode: false,
    shapes: [...band(css(subdued)), zero(css(subdued))],
    xaxis: { range, nticks: 6, tickformat: ',~r', ticksuffix: sign, automargin: false }, yaxis: { visible: false, automargin: false },
  }));
}
