// How the latencies of all tokens are distributed, on demand: a histogram and the cumulative shares of both arms over one
// another, and the same in a table. While the charts are zoomed, only of the tokens that are visible.

import { count, figure, setText, tableBody, tableHead, tableRow } from '../../components/js/dom.js';
import { drawPlot, look, withoutMarkup } from '../../components/js/plot.js';
import { firstIndex, lineOf } from './chart_data.js';
import { lowerBound, outlierTop } from './columns.js';

const MIN_BINS = 10, MAX_BINS = 60, CUMULATIVE_POINTS = 200;
/** @type {[string, number][]} */
const QUANTILES = [['Shortest', 0], ['10%', 0.1], ['Median', 0.5], ['90%', 0.9], ['99%', 0.99], ['Longest', 1]];

// Nearest rank: the smallest value that at least `share` of all do not exceed. Values are sorted.
/** @param {ArrayLike<number>} values @param {number} share */
export function quantileOf(values, share) {
  return values[Math.max(0, Math.ceil(Number((share * values.length).toFixed(9))) - 1)];
}

// Latencies of the tokens that are asked for, sorted, one list for each arm. zoom: the first and the last token; null: all.
/** @param {Pick<Live.Head, 'unit'>} head @param {Pick<Live.Series, 'lat'>[]} series @param {Live.Span | null} zoom */
export function latenciesOf(head, series, zoom) {
  const first = firstIndex({ first: 1 }, head);
  return series.map(({ lat }) => Float64Array.from(lat.slice(Math.max(first, zoom ? Math.ceil(zoom[0]) : 0), zoom ? Math.floor(zoom[1]) + 1 : lat.length)).sort());
}

// Bins that all arms share, by the rule of Freedman and Diaconis: `edges`, one more than bins; `shares`, of each arm's
// tokens in each bin; `beyond`, how many took longer than the last edge, where a few would flatten the rest.
/** @param {Float64Array[]} lists */
export function histogramOf(lists) {
  const filled = lists.filter(list => list.length), low = Math.min(...filled.map(list => list[0]));
  const high = outlierTop(filled.map(list => [...list]), 0) ?? Math.max(...filled.map(list => list[list.length - 1]));
  const widths = filled.map(list => 2 * (quantileOf(list, 0.75) - quantileOf(list, 0.25)) / Math.cbrt(list.length)).filter(width => width > 0);
  const bins = Math.round(Math.min(MAX_BINS, Math.max(MIN_BINS, widths.length ? (high - low) / Math.min(...widths) : 0)));
  const width = high > low ? (high - low) / bins : Math.max(1e-9, 0.01 * low);
  const edges = Array.from({ length: bins + 1 }, (_, i) => low + i * width), counts = lists.map(() => new Array(bins).fill(0));
  lists.forEach((list, a) => { for (const value of list) if (value <= high) counts[a][Math.min(bins - 1, Math.floor((value - low) / width))]++; });
  return {
    edges, shares: counts.map((binned, a) => binned.map(n => n / Math.max(1, lists[a].length))),
    beyond: lists.map(list => list.length - lowerBound(list, high * (1 + 1e-12))),
  };
}

// Steps (latency, share of the tokens that took at most that long), up to the last edge.
/** @param {ArrayLike<number>} list @param {number} last */
export function cumulativeOf(list, last) {
  const steps = [];
  for (let i = 0; i <= CUMULATIVE_POINTS && list.length; i++) {
    const value = quantileOf(list, i / CUMULATIVE_POINTS);
    if (value <= last * (1 + 1e-12)) steps.push([value, i / CUMULATIVE_POINTS]);
  }
  return steps;
}

// dialog: with .td-spread-what, .td-spread-plot, .td-spread-said and a table. fewest: share -> tokens that a percentile needs.
// read: the run that is shown, and the tokens that are visible of it.
/**
 * @param {HTMLButtonElement} button @param {HTMLDialogElement} dialog @param {{ [share: string]: number }} fewest
 * @param {() => [Live.Head, Live.Series[], Live.Span | null] | null} read
 */
export function makeDistribution(button, dialog, fewest, read) {
  const find = selector => dialog.querySelector(selector), plot = find('.td-spread-plot');

  // Also when more values came, or the run ended.
  function show() {
    if (!dialog.open || !read()) return;
    const [head, series, zoom] = read(), lists = latenciesOf(head, series, zoom), step = head.unit === 'forward' ? 'passes' : 'tokens';
    const what = zoom ? step + ' ' + count(Math.ceil(Math.max(0, zoom[0]))) + ' to ' + count(Math.floor(zoom[1])) + ', as zoomed' : head.unit === 'forward' ? 'all passes' : 'all tokens after the first';
    setText(find('.td-spread-what'), 'The first run of each arm: ' + what + '.');
    if (!lists.some(list => list.length)) { clear(); return; }
    const histogram = histogramOf(lists), last = histogram.edges[histogram.edges.length - 1];
    setText(find('.td-spread-said'), said(head, lists, histogram, last, step));
    find('table').replaceChildren(...rows(head, lists, step));
    draw(head, lists, histogram, last, step);
  }

  function clear() {
    setText(find('.td-spread-said'), 'There are no latencies here.');
    if (window.Plotly) Plotly.purge(plot);  // a figure whose parts were only taken away would not be drawn again
    find('table').replaceChildren();
  }

  function said(head, lists, { beyond }, last, step) {
    return head.arms.map(({ name }, a) => {
      if (!lists[a].length) return 'Arm ' + name + ' has none yet.';
      const [low, high] = [0.25, 0.75].map(share => figure(1e3 * quantileOf(lists[a], share)));
      const cut = beyond[a] ? ', and ' + count(beyond[a]) + ' longer than the ' + figure(1e3 * last) + ' ms that are drawn' : '';
      return 'Half of the ' + step + ' of arm ' + name + ' took ' + low + ' to ' + high + ' ms' + cut + '.';
    }).join(' ');
  }

  function rows(head, lists, step) {
    return [tableHead(['ms', step[0].toUpperCase() + step.slice(1), 'Mean', ...QUANTILES.map(([name]) => name)]), tableBody(head.arms.map(({ name }, a) => {
      const list = lists[a], mean = list.reduce((sum, value) => sum + value, 0) / list.length;
      const values = QUANTILES.map(([, share]) => list.length < (fewest[share] || 1) ? 'needs ' + fewest[share] + ' ' + step : figure(1e3 * quantileOf(list, share)));
      return tableRow('Arm ' + name, [count(list.length), ...(list.length ? [figure(1e3 * mean), ...values] : [])], 'arm-' + name.toLowerCase());
    }))];
  }

  function draw(head, lists, { edges, shares }, last, step) {
    const ms = edges.map(edge => 1e3 * edge), room = 0.02 * (ms[ms.length - 1] - ms[0]), title = text => ({ text, standoff: 4 });
    drawPlot(plot, () => head.arms.flatMap(({ name }, a) => {
      const line = { width: 1.6, ...lineOf(head.arms[a], a), shape: 'hv' }, steps = cumulativeOf(lists[a], last), common = { mode: 'lines', name: withoutMarkup(name), line, hoverinfo: 'skip' };
      return [
        { ...common, x: ms, y: [...shares[a].map(share => 100 * share), 0], fill: 'tozeroy', fillcolor: line.color + '30' },
        { ...common, x: steps.map(step => 1e3 * step[0]), y: steps.map(step => 100 * step[1]), xaxis: 'x2', yaxis: 'y2', showlegend: false },
      ];
    }), {
      ...look(11, '--body-text-color'), margin: { t: 24, b: 38, l: 46, r: 8 }, hovermode: false,
      showlegend: true, legend: { orientation: 'h', x: 1, xanchor: 'right', y: 1, yanchor: 'bottom' },
      xaxis: { nticks: 6, range: [ms[0] - room, ms[ms.length - 1] + room], domain: [0, 0.47], title: title('latency, ms') },
      yaxis: { nticks: 6, title: title('% of ' + step), rangemode: 'tozero' },
      xaxis2: { domain: [0.55, 1], anchor: 'y2', matches: 'x', title: title('latency, ms') },
      yaxis2: { anchor: 'x2', title: title('cumulative %'), range: [0, 101] },
    }, { staticPlot: true });
  }

  button.addEventListener('click', () => { if (read()) dialog.showModal(); show(); });
  dialog.querySelector('.td-close').addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  return { follow: show };
}
