// The columns of a run, one set per arm, filled by cursor. Replies may overlap (several pulls travel at once on a slow
// line), so every column is cut at the cursor and no value counts twice.

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

// The length of every column.
/** @param {Live.Series} series */
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

// First UTF-16 unit in which two texts differ, -1 if one is a prefix of the other.
/** @param {string} a @param {string} b */
export function firstDifference(a, b) {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) if (a.charCodeAt(i) !== b.charCodeAt(i)) return i;
  return -1;
}
