// The horizontal axis, which all charts share: tokens (an encoder's passes), or seconds since the start of an arm's run.
// A stretch that is zoomed is the same on every chart; what is counted otherwise is translated through an arm's tokens.

import { lowerBound } from './decimate.js';

// Where each index of a line's column lies on an axis.
/**
 * @param {Pick<Live.ChartLine, 'at'>} line @param {Live.Axis} axis @param {Pick<Live.Series, 't' | 'st'>} columns
 * @returns {(index: number) => number}
 */
export function indexToX(line, axis, columns) {
  if (line.at === 'sample') return axis === 'second' ? index => columns.st[index] : index => tokenAt(columns.t, columns.st[index]);
  return axis === 'second' ? index => columns.t[index] : index => index;
}

// The first and last index of a line's column that a stretch of an axis holds, which may lie outside of the column.
/**
 * @param {Pick<Live.ChartLine, 'at'>} line @param {Live.Axis} axis @param {Pick<Live.Series, 't' | 'st'>} columns @param {Live.Span} span
 * @returns {Live.Span}
 */
export function indicesOf(line, axis, columns, [low, high]) {
  if (line.at === 'sample') {
    const [begin, end] = axis === 'second' ? [low, high] : [timeAt(columns.t, low), timeAt(columns.t, high)];
    return [lowerBound(columns.st, begin), lowerBound(columns.st, end)];
  }
  return axis === 'second' ? [lowerBound(columns.t, low), lowerBound(columns.t, high)] : [Math.floor(low), Math.ceil(high)];
}

// The same stretch of the run on the other axis, over all arms; null before the first token.
/** @param {Live.Span} span @param {Live.Axis} to @param {Pick<Live.Series, 't'>[]} series @returns {Live.Span | null} */
export function translated([low, high], to, series) {
  const drawn = series.filter(columns => columns.t.length);
  if (!drawn.length) return null;
  const found = drawn.map(({ t }) => to === 'second' ? [timeAt(t, low), timeAt(t, high)] : [tokenAt(t, low), tokenAt(t, high)]);
  return [Math.min(...found.map(one => one[0])), Math.max(...found.map(one => one[1]))];
}

// Where a moment of an arm's run lies on an axis; null before the first token (of an axis of tokens) and after the last.
/** @param {Live.Axis} axis @param {Pick<Live.Series, 't'>} columns @param {number} seconds @returns {number | null} */
export function momentOn(axis, { t }, seconds) {
  if (!t.length || seconds > t[t.length - 1]) return null;
  if (axis === 'second') return seconds;
  return seconds < t[0] ? null : lowerBound(t, seconds);
}

// Seconds at which a token came, which may lie between two or outside of all; 0 before the first.
/** @param {number[]} t @param {number} token */
export function timeAt(t, token) {
  if (!t.length) return 0;
  const last = t.length - 1, at = Math.min(last, Math.max(0, token)), whole = Math.floor(at);
  return whole === last ? t[last] : t[whole] + (at - whole) * (t[whole + 1] - t[whole]);
}

// The token at a time, between two where it was being made; 0 until the first came, and the last after it.
/** @param {number[]} t @param {number} seconds */
export function tokenAt(t, seconds) {
  const next = lowerBound(t, seconds);
  if (next === 0) return 0;
  if (next >= t.length) return t.length - 1;
  return next - 1 + (seconds - t[next - 1]) / (t[next] - t[next - 1]);
}

// Top of an axis on which a few outliers do not flatten the rest: one and a half times the 98th percentile, if the
// largest value is more than twice that percentile; null if all values fit. Values are in the columns' own units.
const OUTLIER_SHARE = 0.98, OUTLIER_TIMES = 2, OUTLIER_ROOM = 1.5, MIN_FOR_OUTLIERS = 20;

/** @param {number[][]} columns @param {number} first @returns {number | null} */
export function outlierTop(columns, first) {
  const all = Float64Array.from(columns.flatMap(column => column.slice(first))).sort();
  if (all.length < MIN_FOR_OUTLIERS) return null;
  const usual = all[Math.floor(OUTLIER_SHARE * (all.length - 1))], largest = all[all.length - 1];
  return largest > OUTLIER_TIMES * usual ? OUTLIER_ROOM * usual : null;
}
