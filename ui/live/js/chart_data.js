// From a run's columns to Plotly traces. Nothing here touches the document, so tests call it without one.

import { byteUnit } from '../../components/js/dom.js';
import { withoutMarkup } from '../../components/js/plot.js';
import { annotationTraces } from './annotations.js';
import { decimate, indexToX, indicesOf, lowerBound, tokenAt } from './columns.js';

const ARM_LINES = [
  { color: '#4269d0', dash: 'solid' }, { color: '#ff725c', dash: '5px,2.5px' }, { color: '#3ca951', dash: '10px,3px' },
  { color: '#a463f2', dash: '9px,3px,2px,3px' }, { color: '#9c6b4e', dash: '4px,2px,1px,2px,1px,2px' },
];
// How an arm is drawn: by its place, unless it says which of the lines is its own.
/** @param {object & { line?: number }} arm @param {number} a */
export function lineOf(arm, a) {
  return ARM_LINES[(arm.line ?? a) % ARM_LINES.length];
}

const CURVE_DASH = '1px,3px', MAX_POINTS = 400;

// Every trace of every chart: lines, annotations, an invisible one that holds the axes, legend entries.
/** @param {Live.Chart[]} charts @param {Live.View} view @returns {any[]} */
export function chartTraces(charts, view) {
  return charts.flatMap((chart, i) => {
    const axes = { xaxis: 'x' + axisSuffix(i), yaxis: 'y' + axisSuffix(i), type: 'scatter', mode: 'lines' };
    if (!view.head) return [{ ...axes, x: [0, 1], y: [0, 1], line: { width: 0 }, hoverinfo: 'skip', showlegend: false }];
    const drawn = view.part ? { ...view, series: view.part } : view;
    const kinds = layerKinds(chart, view), out = lineTraces(chart, i, axes, kinds, drawn);
    if (chart.annotations) out.push(...annotationTraces(chart, axes, drawn));
    if (view.tops && view.tops[i] !== null) out.push(...outlierTraces(chart, i, axes, drawn));
    out.push(extentTrace(chart, i, axes, view));
    return out.concat(legendTraces(chart, i, axes, kinds, view));
  });
}

/** Plotly's axes are named x, x2, x3. @param {number} i */
export function axisSuffix(i) {
  return i ? i + 1 : '';
}

// An encoder has passes, not tokens: the first one is like the others, and is drawn.
/** @param {{ first: number }} line @param {Pick<Live.Head, 'unit'>} head */
export function firstIndex(line, head) {
  return head.unit === 'forward' ? 0 : line.first;
}

/** @param {Live.Chart} chart */
export function measuredLines(chart) {
  return chart.lines.filter(line => !line.curve);
}

// Indices to draw for the arms `which`, which share them: on an axis of tokens both arms show the same ones.
/** @param {Live.ChartLine[]} lines @param {number[]} which @param {Live.View} view */
function visibleIndices(lines, which, { head, series, axis, zoom }) {
  const first = firstIndex(lines[0], head), columns = which.flatMap(a => lines.map(line => series[a][line.column]));
  let begin = first, end = Math.max(0, ...columns.map(column => column.length));
  if (zoom) {
    const [low, high] = indicesOf(lines[0], axis, series[which[0]], zoom);
    begin = Math.max(begin, low - 1);
    end = Math.min(end, high + 2);
  }
  return decimate(columns, begin, end, MAX_POINTS);
}

// A curve of the head (predicted, roofline) or the measured columns: where a line takes its values from; may be null.
/** @param {Live.ChartLine} line @param {number} a @param {Live.View} view @returns {any} */
function sourceOf(line, a, { head, series }) {
  return line.curve ? head.arms[a][line.curve] : series[a];
}

/** The largest value of a chart, in the columns' own units. @param {Live.Chart} chart @param {Live.View} view */
function largestValue(chart, view) {
  let largest = 0;
  for (const line of chart.lines) view.series.forEach((_, a) => {
    const source = sourceOf(line, a, view);
    if (source) for (const value of source[line.column]) if (value > largest) largest = value;
  });
  return largest;
}

/** The smallest measured value of a chart, 0 where there is none. @param {Live.Chart} chart @param {Live.View} view */
function smallestValue(chart, { series }) {
  let smallest = Infinity;
  for (const line of measuredLines(chart)) for (const columns of series) {
    for (const value of columns[line.column]) if (value < smallest) smallest = value;
  }
  return smallest < Infinity ? smallest : 0;
}

// Bytes are shown in the unit that suits the largest value; `zoomed`: the unit to keep while the chart is zoomed.
/** @param {Live.Chart} chart @param {Live.View} view @param {Live.ChartUnit | null} zoomed @returns {Live.ChartUnit} */
export function chartUnit(chart, view, zoomed) {
  if (chart.unit !== 'bytes') return { unit: chart.unit, scale: 1 };
  return zoomed || byteUnit(largestValue(chart, view));
}

/** Layer kinds that this model has: a line of zeros is left out. @param {Live.Chart} chart @param {Live.View} view @returns {string[]} */
export function layerKinds(chart, view) {
  const used = line => view.series.some((_, a) => {
    const source = sourceOf(line, a, view), values = source && source[line.column];
    return values && values.length && values[values.length - 1] > 0;
  });
  return [...new Set(chart.lines.filter(line => line.kind && used(line)).map(line => line.kind))];
}

/** @param {Live.Chart} chart @param {number} i @param {object} axes @param {string[]} kinds @param {Live.View} view */
function lineTraces(chart, i, axes, kinds, view) {
  const { head, series, hidden, axis, ended } = view, { scale } = view.units[i], out = [];
  const declared = measuredLines(chart), existing = declared.filter(line => !line.kind || kinds.includes(line.kind));
  const measured = existing.length ? existing : declared, all = series.map((_, a) => a);
  const shared = measured[0].at === 'token' && axis === 'token';
  const indices = shared ? all.map(() => visibleIndices(measured, all, view)) : all.map(a => visibleIndices(measured, [a], view));
  const put = (line, a, x, y) => {
    const arm = head.arms[a].name, style = lineOf(head.arms[a], a);
    out.push({
      ...axes, x, y, name: withoutMarkup([arm, line.kind, line.label].filter(Boolean).join(' ')), showlegend: false, hoverinfo: 'skip',
      visible: ![arm, line.kind, line.label].some(name => name && hidden.has(name)),
      meta: { chart: chart.key, arm, kind: line.kind, curve: line.curve },
      line: { width: line.width, color: style.color, dash: line.curve ? CURVE_DASH : style.dash },
      opacity: line.curve ? 0.9 : 1,
    });
  };
  for (const line of chart.lines) for (const a of all) {
    if (line.kind && !kinds.includes(line.kind)) continue;
    const source = sourceOf(line, a, view), factor = line.scale * scale;
    if (!source) continue;
    const column = source[line.column];
    if (line.curve && line.at === 'sample') { // curves of several ranks, with gaps between them
      const places = axis === 'second' ? source.x : source.x.map(at => at === null ? null : tokenAt(series[a].t, at));
      put(line, a, places, column.map(value => value === null ? null : value * factor));
      continue;
    }
    if (line.curve) {
      const offset = curveOffset(line, head.arms[a]), { t } = series[a];
      if (axis === 'token') {
        const end = ended ? Math.max(...series.map(columns => columns.t.length)) - 1 + offset : Infinity, x = curveUntil(source.x, end);
        put(line, a, x.map(at => at - offset), x.map(at => curveAt(source.x, column, at) * factor));
        continue;
      }
      const seen = visibleIndices(TOKEN_LINES, [a], view).filter(token => token + offset >= source.x[0]);
      put(line, a, seen.map(token => t[token]), seen.map(token => curveAt(source.x, column, token + offset) * factor));
      continue;
    }
    const drawn = indices[a].filter(index => index < column.length);
    put(line, a, drawn.map(indexToX(line, axis, source)), drawn.map(index => column[index] * factor));
  }
  return out;
}

/** @type {Live.ChartLine[]} */
const TOKEN_LINES = [{ at: 'token', column: 'lat', first: 0, scale: 1, kind: '', width: 1, curve: '', label: '' }];

// What to add to a token to find it on a curve: curves over the cache begin with the prompt.
/** @param {Live.ChartLine} line @param {Pick<Live.ArmHead, 'prompt_tokens'>} arm */
export function curveOffset(line, arm) {
  return line.at === 'length' ? arm.prompt_tokens : 0;
}

/** Corners of a curve up to where the run ended, so that all charts end there. @param {number[]} x @param {number} end */
function curveUntil(x, end) {
  const corners = x.filter(at => at <= end);
  return corners.length && corners.length < x.length && corners[corners.length - 1] < end ? [...corners, end] : corners;
}

// Value of a curve of corner points, straight between them; beyond its ends that of the nearest.
/** @param {number[]} x @param {number[]} y @param {number} at */
export function curveAt(x, y, at) {
  const next = lowerBound(x, at);
  if (next === 0 || next >= x.length) return y[next ? x.length - 1 : 0];
  return y[next - 1] + (y[next] - y[next - 1]) * (at - x[next - 1]) / (x[next] - x[next - 1]);
}

// What lies above the top of the axis stands at its edge, with its value in the tooltip.
/** @param {Live.Chart} chart @param {number} i @param {object} axes @param {Live.View} view */
function outlierTraces(chart, i, axes, view) {
  const { head, series, hidden, axis, tops } = view, { unit, scale } = view.units[i], [line] = measuredLines(chart);
  return head.arms.map((arm, a) => {
    const column = series[a][line.column], factor = line.scale * scale, over = [];
    for (let index = firstIndex(line, head); index < column.length; index++) if (column[index] * factor > tops[i]) over.push(index);
    return {
      ...axes, mode: 'markers', x: over.map(indexToX(line, axis, series[a])), y: over.map(() => 0.985 * tops[i]), showlegend: false, visible: !hidden.has(arm.name), cliponaxis: false,
      marker: { symbol: 'triangle-up' + (a % 2 ? '-open' : ''), size: 7, color: lineOf(head.arms[a], a).color }, hoverinfo: 'skip',
      text: over.map(index => (column[index] * factor).toPrecision(3) + ' ' + unit), meta: { chart: chart.key, outliers: arm.name },
    };
  });
}

// The roofline bound by its name and value, at the right edge of what is visible: one label for both arms.
/** @param {Live.Chart} chart @param {number} i @param {Omit<Live.View, 'hidden'>} view @param {string} ink */
export function curveLabels(chart, i, { head, series, ended, axis, zoom, units }, ink) {
  const line = chart.lines.find(candidate => candidate.curve === 'floor');
  /** @type {[Live.ArmHead, Live.Series][]} */
  const all = head.arms.map((arm, a) => [arm, series[a]]);
  const bounded = line ? all.filter(([{ floor }]) => floor && floor[line.column].length) : [];
  if (!bounded.length) return [];
  const { unit, scale } = units[i], values = bounded.map(([{ floor }, { t }]) => {
    const end = zoom ? zoom[1] : ended && axis === 'token' ? Math.max(...series.map(columns => columns.t.length)) - 1 : Infinity;
    const edge = axis === 'second' ? tokenAt(t, end) : end;
    return curveAt(floor.x, floor[line.column], edge) * line.scale * scale;
  });
  const shown = values.map(value => Number(value.toPrecision(3))), near = Math.max(...values) < 1.1 * Math.min(...values);
  const said = near ? shown[0] : bounded.map(([arm], n) => withoutMarkup(arm.name) + ' ' + shown[n]).join(', ');
  const shared = bounded.filter(([{ floor }]) => floor.exchanges)
    .map(([{ name, floor }]) => ', exchanges of ' + withoutMarkup(name) + ' ' + floor.exchanges).join('');
  return [{
    text: 'roofline bound ' + said + ' ' + unit + shared, showarrow: false, xref: 'x' + axisSuffix(i) + ' domain', yref: 'y' + axisSuffix(i),
    x: 1, y: Math.max(...values), xanchor: 'right', yanchor: 'bottom', font: { size: 10, color: ink },
  }];
}

// An invisible line that holds the axes where the run will end, so that they do not creep while values stream in. The
// y axis of latencies follows what is visible: the prefill, which is not drawn, would hold it too high. While a run goes on
// its memory has room to grow: each value beyond an axis would cost a paint.
const ROOM_TO_GROW = 0.25;
/** @param {Live.Chart} chart @param {number} i @param {object} axes @param {Live.View} view */
function extentTrace(chart, i, axes, view) {
  const { head, series, ended, axis } = view, { scale } = view.units[i];
  let x = [0, Math.max(1, ended ? Math.max(...series.map(columns => columns.t.length)) : head.max_new_tokens)];
  if (axis === 'second') {
    const last = Math.max(0, ...series.flatMap(({ t, st }) => [t, st].filter(column => column.length).map(column => column[column.length - 1])));
    const step = 10 ** Math.floor(Math.log10(Math.max(1, last)));
    x = [0, ended ? last : Math.ceil((last + step / 10) / step) * step];
  }
  const largest = chart.unit === 'bytes' ? largestValue(chart, view) * scale : 0, room = chart.min_span * largest;
  const smallest = chart.from_zero ? 0 : smallestValue(chart, view) * scale;
  const highest = ended ? largest : largest + ROOM_TO_GROW * (largest - smallest);
  const y = [smallest - room / 4, Math.max(highest, smallest + 3 * room / 4)];
  return { ...axes, x, y, line: { width: 0 }, hoverinfo: 'skip', showlegend: false, meta: { chart: chart.key, extent: true } };
}

// Legend entries: the arms in the first chart; in each its layer kinds and curves, where it has them.
/** @param {Live.Chart} chart @param {number} i @param {object} axes @param {string[]} kinds @param {Live.View} view */
function legendTraces(chart, i, axes, kinds, { head, hidden, neutral }) {
  const entry = (name, line, legend) => ({
    ...axes, x: [null], y: [null], name: withoutMarkup(name), line, legend, showlegend: true, hoverinfo: 'skip',
    visible: hidden.has(name) ? 'legendonly' : true, meta: { legend: name },
  });
  const legend = 'legend' + axisSuffix(i);
  const out = i ? [] : head.arms.map((arm, a) => entry(arm.name, { width: 2, ...lineOf(head.arms[a], a) }, legend));
  for (const kind of kinds) {
    const { width } = measuredLines(chart).find(line => line.kind === kind);
    out.push(entry(kind, { width, color: neutral }, legend));
  }
  const shown = line => line.curve && (!line.kind || kinds.includes(line.kind)) && head.arms.some(arm => arm[line.curve]);
  for (const label of new Set(chart.lines.filter(shown).map(line => line.label))) {
    out.push(entry(label, { width: 1.2, color: neutral, dash: CURVE_DASH }, legend));
  }
  return out;
}
