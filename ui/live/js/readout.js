// What the charts say at one place of the run: { token }, or { second } since the start of each arm's run. Values come
// from the columns themselves, not from the points that are drawn.

import { count } from './dom.js';
import { lowerBound } from './decimate.js';
import { indexToX, indicesOf, timeAt } from './windows.js';
import { curveAt, curveOffset, firstIndex, layerKinds, measuredLines } from './chart_data.js';

// The index of a line's column at that place; null where an arm has none.
/**
 * @param {Pick<Live.ChartLine, 'at'>} line @param {Live.Place} at @param {Pick<Live.Series, 't' | 'st'>} columns @param {number} first
 * @returns {number | null}
 */
export function indexAt(line, at, columns, first) {
  const { t, st } = columns;
  if (line.at === 'sample') {
    const second = at.second ?? (at.token < t.length ? timeAt(t, at.token) : Infinity), next = lowerBound(st, second);
    if (!st.length || second > Math.max(st[st.length - 1], t.length ? t[t.length - 1] : 0)) return null;
    return next > 0 && (next >= st.length || second - st[next - 1] < st[next] - second) ? next - 1 : next;
  }
  const index = at.token ?? lowerBound(t, at.second);
  return index >= first && index < t.length ? index : null;
}

/** @param {number} value */
export function figure(value) {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 4 });
}

// What the other ranks or devices held at that second: the nearest sample of each. Gaps lie between them.
function othersAt({ x }, column, second) {
  const found = [];
  let nearest = null;
  x.forEach((at, n) => {
    if (at === null) { found.push(column[nearest]); nearest = null; }
    else if (nearest === null || Math.abs(at - second) < Math.abs(x[nearest] - second)) nearest = n;
  });
  return found;
}

// One line of text for each visible arm that has a value there: { arm, text }.
/** @param {Live.Chart} chart @param {number} i @param {Live.Place} at @param {Live.View} view */
export function readouts(chart, i, at, view) {
  const { head, series, hidden } = view, { unit, scale } = view.units[i], kinds = layerKinds(chart, view);
  const has = line => !line.kind || kinds.includes(line.kind), [first] = chart.lines.filter(line => !line.curve);
  const measured = measuredLines(chart).filter(has), curves = chart.lines.filter(line => line.curve && line.at !== 'sample' && has(line));
  return head.arms.flatMap((arm, a) => {
    const index = indexAt(first, at, series[a], firstIndex(first, head));
    if (index === null || hidden.has(arm.name) || !measured.length) return [];
    const values = measured.map(line => series[a][line.column][index] * line.scale * scale);
    const said = [values.map((value, n) => figure(value) + (measured.length > 1 ? ' ' + measured[n].kind : '')).join(' + ') + ' ' + unit];
    const known = curves.filter(line => arm[line.curve]);
    if (known.length) {
      const sum = known.reduce((total, line) => total + curveAt(arm[line.curve].x, arm[line.curve][line.column], index + curveOffset(line, arm)) * line.scale * scale, 0);
      const same = Math.abs(sum - values.reduce((one, other) => one + other, 0)) < 5e-4 * sum;
      said.push(known[0].curve === 'floor' ? 'roofline bound ' + figure(sum) : same ? 'as predicted' : 'predicted ' + figure(sum));
    }
    for (const line of chart.lines.filter(one => one.curve && one.at === 'sample' && arm[one.curve])) {
      const held = othersAt(arm[line.curve], arm[line.curve][line.column], series[a].st[index]);
      said.push(line.label + ' ' + held.map(value => figure(value * line.scale * scale)).join(', '));
    }
    if (first.at === 'token' && at.token === undefined) said.push(stepName(head) + ' ' + count(index));
    if (chart.lines.some(line => line.at === 'length')) said.push(count(arm.prompt_tokens + index) + ' tokens cached');
    return [{ arm: arm.name, text: said.join(', ') }];
  });
}

/** @param {Pick<Live.Head, 'unit'>} head */
export function stepName(head) {
  return head.unit === 'forward' ? 'pass' : 'token';
}

// What a pointer at x of chart i means. On the chart of latencies a token that is annotated or cut off is hard to hit, so
// one within `reach` attracts the pointer.
/** @param {Live.Chart} chart @param {number} i @param {number} x @param {number} reach @param {Live.View} view @returns {Live.Place} */
export function pointedAt(chart, i, x, reach, { head, series, hidden, axis, units, tops }) {
  const [line] = measuredLines(chart), first = firstIndex(line, head), top = tops[i] === null ? Infinity : tops[i] / line.scale / units[i].scale;
  let nearest = null, away = reach;
  if (chart.annotations) head.arms.forEach((arm, a) => {
    if (hidden.has(arm.name)) return;
    const column = series[a][line.column], marked = new Set(arm.marks.map(one => one.token)), place = indexToX(line, axis, series[a]);
    const [low, high] = indicesOf(line, axis, series[a], [x - reach, x + reach]);
    for (let index = Math.max(first, low); index <= Math.min(high, column.length - 1); index++) {
      const far = Math.abs(place(index) - x);
      if (far <= away && (marked.has(index) || column[index] > top)) { away = far; nearest = place(index); }
    }
  });
  if (axis === 'second') return { second: Math.max(0, nearest ?? x) };
  return { token: nearest ?? Math.max(0, Math.round(x)) };
}

// What is known of the tokens at a place: their annotations, in words.
/** @param {Live.Place} at @param {Live.View} view */
export function annotationsAt(at, { head, series, hidden }) {
  return head.arms.flatMap((arm, a) => {
    const index = at.token ?? lowerBound(series[a].t, at.second);
    if (hidden.has(arm.name)) return [];
    return arm.marks.filter(one => one.token === index && index < series[a].t.length).map(one => arm.name + ' ' + stepName(head) + ' ' + count(index) + ': ' + one.text);
  });
}
