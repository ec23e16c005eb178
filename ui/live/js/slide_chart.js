// One chart for a slide: large letters, few grid lines, and nothing to operate.

import { chartTraces, chartUnit, curveLabels, firstIndex, measuredLines, withoutMarkup } from './chart_data.js';
import { css } from './dom.js';
import { plotly } from './plotly.js';
import { outlierTop } from './windows.js';

const LONGEST_NAME = 32, ROOM_ABOVE = 1.12;

/**
 * What a slide draws: title with unit, lines in that unit, and the ends of both axes.
 * @param {Live.Chart[]} charts @param {string} key
 * @param {{ head: Live.Head, series: Live.Series[], ended: boolean }} run @param {{ [arm: string]: string }} names
 */
export function slideLines(charts, key, { head, series, ended }, names) {
  const at = Math.max(0, charts.findIndex(chart => chart.key === key)), chart = charts[at];
  /** @type {any} */
  const view = { head, series, ended, hidden: new Set(), axis: 'token', zoom: null, ink: '', neutral: '' };
  const units = charts.map(one => chartUnit(one, view, null)), { unit, scale } = units[at];
  const traces = chartTraces(charts, { ...view, units, tops: null });
  const lines = traces.filter(one => one.meta?.chart === chart.key && one.meta.arm && one.meta.curve !== 'ranks' && one.y.length).map(one => {
    const arm = head.arms.find(({ name }) => name === one.meta.arm), last = one.y[one.y.length - 1];
    const mean = arm.tiles.find(tile => tile.key === 'latency'), name = names[arm.name] || '';
    const called = name.length > LONGEST_NAME ? name.slice(0, LONGEST_NAME) + '\u2026' : name;
    const figure = chart.key === 'latency' && mean && mean.value !== 'n/a' ? mean.value + ' ' + mean.unit : Number(last.toPrecision(3)) + ' ' + unit;
    const who = [arm.name, called === arm.name ? '' : called].filter(Boolean).join(' ');
    const label = one.meta.curve ? '' : who + (one.meta.kind ? ', ' + one.meta.kind + ' layers' : '') + ': ' + figure;
    return { arm: arm.name, curve: Boolean(one.meta.curve), label, x: one.x, y: one.y, color: one.line.color, dash: one.line.dash, width: one.line.width };
  });
  const measured = lines.filter(line => !line.curve);
  const [first] = measuredLines(chart), from = firstIndex(first, head);
  const outlier = chart.unit === 'ms' ? outlierTop(series.map(columns => columns[first.column]), from) : null;
  const all = measured.flatMap(line => line.y), most = Math.max(0, ...all), least = all.length ? Math.min(...all) : 0;
  const top = outlier === null ? most : outlier * first.scale * scale;
  const low = chart.from_zero ? 0 : Math.max(0, Math.min(least, most * (1 - chart.min_span)) - 0.1 * (most - least));
  const bounds = curveLabels(chart, at, { ...view, units }, '').map(({ text, y }) => ({ text, y }));
  const title = (head.unit === 'forward' && chart.encoder?.title) || chart.title || head.memory_label;
  return {
    title: title[0].toUpperCase() + title.slice(1) + ', ' + unit, lines, bounds, low, high: top > low ? low + ROOM_ABOVE * (top - low) : low + 1,
    last: Math.max(1, ...measured.map(line => line.x[line.x.length - 1] ?? 0)), word: head.unit === 'forward' ? 'forward pass' : 'token',
  };
}

// Draws it into a box, in its size and with letters of the size of its font.
/** @param {HTMLElement} box @param {ReturnType<typeof slideLines>} what */
export async function drawSlideChart(box, { title, lines, bounds, low, high, last, word }) {
  await plotly();
  const size = parseFloat(getComputedStyle(box).fontSize), grid = css('--border-color-primary'), wide = box.clientWidth;
  if (wide < 8 * size || box.clientHeight < 8 * size || !lines.length) return Plotly.purge(box);
  const axis = { gridcolor: grid, linecolor: grid, zeroline: false, nticks: 6 };
  const traces = lines.map(line => ({
    x: line.x, y: line.y, mode: 'lines', name: withoutMarkup(line.label), showlegend: Boolean(line.label),
    line: { color: line.color, dash: line.dash, width: (line.curve ? 0.08 : 0.1 * line.width) * size },
  }));
  Plotly.react(box, traces, {
    width: wide, height: box.clientHeight, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', margin: { t: 4.5 * size, r: size, b: 3.5 * size, l: 4 * size },
    font: { size, color: css('--body-text-color'), family: css('--font') || 'sans-serif' }, legend: { orientation: 'h', x: 0, y: 1.01, yanchor: 'bottom', traceorder: 'normal' },
    xaxis: { ...axis, range: [0, last], showgrid: false, title: { text: word, standoff: 0 } }, yaxis: { ...axis, range: [low, high], title: { text: title, standoff: 0 } },
    annotations: bounds.map(({ text, y }) => ({ text: withoutMarkup(text), x: 1, xref: 'paper', y, xanchor: 'right', yanchor: 'bottom', showarrow: false, font: { size } })),
  }, { staticPlot: true });
}
