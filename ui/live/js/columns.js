// The columns of a run, one set for each arm, filled by cursor: where their values lie on the axes of the charts, which of
// them are drawn, and how they are saved. Nothing here touches the page.

export const TOKEN_COLUMNS = ['t', 'lat', 'kvs', 'kvf', 'kvl', 'kvt', 'kvi'];

/** @returns {Live.Series} */
export function emptySeries() {
  return { t: [], lat: [], kvs: [], kvf: [], kvl: [], kvt: [], kvi: [], st: [], sm: [], text: '', chars: 0 };
}

// Cursor of an arm: tokens, samples, characters. The server counts characters as code points, JavaScript as UTF-16
// units, so the server's count is kept.
/** @param {Live.Series} series */
export function cursorOf(series) {
  return [series.t.length, series.st.length, series.chars];
}

/** The length of every column. @param {Live.Series} series */
export function lengthsOf(series) {
  return Object.fromEntries([...TOKEN_COLUMNS, 'st', 'sm'].map(key => [key, series[key].length]));
}

// Append what is new in an arm's reply. Returns how much it was; `added` is the new text.
/** @param {Live.Series} series @param {Live.Columns} reply */
export function appendReply(series, reply) {
  const grew = { tokens: 0, samples: 0, added: '' };
  const tokens = series.t.length;
  if (reply.first <= tokens && reply.n > tokens) {
    for (const key of TOKEN_COLUMNS) {
      const column = series[key], from = reply[key];
      for (let i = tokens - reply.first; i < from.length; i++) column.push(from[i]);
    }
    grew.tokens = reply.n - tokens;
  }
  const samples = series.st.length;
  if (reply.sfirst <= samples && reply.sn > samples) {
    for (let i = samples - reply.sfirst; i < reply.st.length; i++) {
      series.st.push(reply.st[i]);
      series.sm.push(reply.sm[i]);
    }
    grew.samples = reply.sn - samples;
  }
  if (reply.cfirst <= series.chars && reply.cn > series.chars) {
    const skip = series.chars - reply.cfirst;
    grew.added = skip ? Array.from(reply.text).slice(skip).join('') : reply.text;
    series.text += grew.added;
    series.chars = reply.cn;
  }
  return grew;
}

// When a run has ended its text is read once more as a whole: what streamed may have held half a character.
/** @param {Live.Series} series @param {Live.Columns} reply */
export function replaceText(series, reply) {
  series.text = reply.text;
  series.chars = reply.cn;
}

/** First UTF-16 unit in which two texts differ, -1 if one is a prefix of the other. @param {string} a @param {string} b */
export function firstDifference(a, b) {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) if (a.charCodeAt(i) !== b.charCodeAt(i)) return i;
  return -1;
}

// --- places on the horizontal axis ---
// All charts share it: tokens (an encoder's passes), or seconds since the start of an arm's run. A stretch that is zoomed is
// the same on every chart; what is counted otherwise is translated through an arm's tokens.

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
  const spans = drawn.map(({ t }) => to === 'second' ? [timeAt(t, low), timeAt(t, high)] : [tokenAt(t, low), tokenAt(t, high)]);
  return [Math.min(...spans.map(span => span[0])), Math.max(...spans.map(span => span[1]))];
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

// --- fewer points, same picture ---
// The lowest and the highest value of every bucket of the visible window survive, so no spike is lost, and zooming in
// refines. A bucket's size is a power of two and buckets begin at index 0, so they do not move while values are added, and
// nothing shimmers.

/** First index whose x is >= value; x is ascending. @param {ArrayLike<number>} x @param {number} value @param {boolean} [above] only > */
export function lowerBound(x, value, above = false) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value || (above && x[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many of these values, which rise, are not above a limit. @param {ArrayLike<number>} x @param {number} limit */
export function upperBound(x, limit) {
  return lowerBound(x, limit, true);
}

// Indices to draw, out of [begin, end), for columns that are drawn together; at most `most` of them.
/** @param {ArrayLike<number>[]} columns @param {number} begin @param {number} end @param {number} most */
export function decimate(columns, begin, end, most) {
  const length = Math.max(0, end - begin);
  if (length <= most) return Array.from({ length }, (_, i) => begin + i);
  let size = 2;
  while (size * (most / 2 - 2) < length) size *= 2;
  for (;;) {
    const indices = bucketExtremes(columns, begin, end, size);
    if (indices.length <= most) return indices;
    size *= 2;
  }
}

// Indices of the lowest and highest value of every column in every bucket, and both ends.
/** @param {ArrayLike<number>[]} columns @param {number} begin @param {number} end @param {number} size */
function bucketExtremes(columns, begin, end, size) {
  const indices = [begin];
  for (let at = begin - (begin % size); at < end; at += size) {
    const from = Math.max(at, begin), to = Math.min(at + size, end), extremes = [];
    for (const column of columns) {
      const stop = Math.min(to, column.length);
      if (from >= stop) continue;
      let low = from, high = from;
      for (let i = from + 1; i < stop; i++) {
        if (column[i] < column[low]) low = i;
        else if (column[i] > column[high]) high = i;
      }
      extremes.push(low, high);
    }
    extremes.sort((a, b) => a - b);
    for (const index of extremes) if (index > indices[indices.length - 1]) indices.push(index);
  }
  if (indices[indices.length - 1] !== end - 1) indices.push(end - 1);
  return indices;
}

// --- files ---

const CSV_COLUMNS = ['arm', 'series', 'index', 'seconds', 'latency_s', 'kv_sliding_bytes', 'kv_full_bytes', 'memory_bytes'];

// One line for each token (or pass) of the first run, and one for each sample of memory.
/**
 * @param {{ unit: string, arms: { name: string }[] }} head @param {Pick<Live.Series, 't' | 'lat' | 'kvs' | 'kvf' | 'kvl' | 'kvt' | 'kvi' | 'st' | 'sm'>[]} series
 */
export function csvOf(head, series) {
  const lines = [CSV_COLUMNS.join(',')], step = head.unit === 'forward' ? 'pass' : 'token';
  head.arms.forEach(({ name }, a) => {
    const { t, lat, kvs, kvf, kvl, kvt, kvi, st, sm } = series[a];
    const full = i => [kvf, kvl, kvt, kvi].reduce((sum, column) => sum + (column[i] || 0), 0);
    t.forEach((seconds, i) => lines.push([name, step, i, seconds, lat[i], kvs[i], full(i), ''].join(',')));
    st.forEach((seconds, i) => lines.push([name, 'sample', i, seconds, '', '', '', sm[i]].join(',')));
  });
  return lines.join('\n') + '\n';
}

/** @param {string} text @param {string} name */
export function saveText(text, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
