// One chart for a slide: few grid lines, lines named at their ends instead of a legend, and nothing to operate.

import { chartTraces, chartUnit, curveLabels, firstIndex, measuredLines, withoutMarkup } from './chart_data.js';
import { outlierTop } from './windows.js';

const SVG = 'http://www.w3.org/2000/svg';
const MOST_TICKS = 5, LONGEST_NAME = 32, ROOM_ABOVE = 1.12;

// Round values from `low` to `high`, at most `most` of them.
/** @param {number} low @param {number} high @param {number} most */
export function roundTicks(low, high, most = MOST_TICKS) {
  const raw = (high - low) / (most - 1), power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find(times => times * power >= raw * (1 - 1e-9));
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at++) ticks.push(Number((at * step).toPrecision(12)));
  return ticks;
}

// Places of labels, in the order of `wanted`, at least `gap` apart and between `low` and `high` as far as there is room.
/** @param {number[]} wanted @param {number} gap @param {number} low @param {number} high */
export function spreadOut(wanted, gap, low, high) {
  const order = wanted.map((_, i) => i).sort((one, other) => wanted[one] - wanted[other]), places = [...wanted];
  let least = low;
  for (const i of order) { places[i] = Math.max(least, places[i]); least = places[i] + gap; }
  let most = high;
  for (const i of order.reverse()) { places[i] = Math.min(most, places[i]); most = places[i] - gap; }
  return places;
}

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

// Draws it into a box, in its size. Lengths follow the size of its font.
/** @param {HTMLElement} box @param {ReturnType<typeof slideLines>} what */
export function drawSlideChart(box, { title, lines, bounds, low, high, last, word }) {
  const width = box.clientWidth, height = box.clientHeight, em = parseFloat(getComputedStyle(box).fontSize);
  box.replaceChildren();
  if (width < 8 * em || height < 8 * em || !lines.length) return;
  const yTicks = roundTicks(low, high), xTicks = roundTicks(0, last, 6);
  const left = em * (0.8 + 0.6 * Math.max(...yTicks.map(tick => tick.toLocaleString('en-US').length))), right = 1.4 * em, top = 2.2 * em, bottom = 3 * em;
  const X = x => left + (width - left - right) * x / last, Y = y => top + (height - top - bottom) * (1 - (y - low) / (high - low));
  const svg = node('svg', { width, height, viewBox: [0, 0, width, height].join(' '), 'aria-hidden': 'true' });
  const clip = 'td-slide-' + box.closest('[id]')?.id;
  const area = node('clipPath', { id: clip });
  area.append(node('rect', { x: left, y: top, width: width - left - right, height: height - top - bottom }));
  svg.append(area, words(0, em, title, 'start', 'td-slide-axis'));
  for (const tick of yTicks) {
    svg.append(node('line', { x1: left, x2: width - right, y1: Y(tick), y2: Y(tick), class: 'td-slide-grid' }));
    svg.append(words(left - 0.5 * em, Y(tick) + 0.35 * em, tick.toLocaleString('en-US'), 'end', 'td-slide-axis'));
  }
  for (const tick of xTicks) svg.append(words(X(tick), height - 1.7 * em, tick.toLocaleString('en-US'), 'middle', 'td-slide-axis'));
  svg.append(words((left + width - right) / 2, height - 0.4 * em, word, 'middle', 'td-slide-axis'));
  for (const line of [...lines].sort((one, other) => Number(other.curve) - Number(one.curve))) {
    const points = line.x.map((x, i) => X(x).toFixed(1) + ',' + Y(line.y[i]).toFixed(1)).join(' ');
    const stroke = { stroke: line.color, 'stroke-width': (line.curve ? 0.08 : 0.1 * line.width) * em, 'stroke-dasharray': line.dash === 'solid' ? 'none' : line.dash };
    svg.append(node('polyline', { points, fill: 'none', 'clip-path': 'url(#' + clip + ')', ...stroke }));
  }
  const ending = line => line.y.slice(-Math.ceil(line.y.length / 5));
  const named = [
    ...lines.filter(line => line.label).map(line => ({
      text: line.label, at: Y(Math.min(high, ending(line).reduce((sum, y) => sum + y, 0) / ending(line).length)), className: 'td-slide-name arm-' + line.arm.toLowerCase(),
    })),
    ...bounds.map(({ text, y }) => ({ text, at: Y(y), className: 'td-slide-axis td-slide-bound' })),
  ].sort((one, other) => one.at - other.at);
  // above its line; the lowest stands below, where the one above it is near
  const wanted = named.map(({ at }, i) => at + (i && i === named.length - 1 && at - named[i - 1].at < 2.4 * em ? 1.5 : -0.7) * em);
  const places = spreadOut(wanted, 1.7 * em, top + em, height - bottom - 0.4 * em);
  named.forEach(({ text, className }, i) => svg.append(words(width - right, places[i], text, 'end', className)));
  box.append(svg);
}

/** @param {string} tag @param {{ [name: string]: string | number }} attributes */
function node(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

/** @param {number} x @param {number} y @param {string} text @param {string} anchor @param {string} className */
function words(x, y, text, anchor, className) {
  const made = node('text', { x, y, 'text-anchor': anchor, class: className });
  made.textContent = withoutMarkup(text);
  return made;
}
