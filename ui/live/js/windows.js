// Linked zoom: a stretch of one chart's horizontal axis is the same stretch of the run on every chart. The charts count
// tokens, seconds, or tokens in the cache, so a stretch is translated through the tokens of the arms.

// Windows of all charts for the window [low, high] of chart `from`; null where a chart has nothing to show there.
function linkedWindows(charts, from, [low, high], { head, series }) {
  const tokens = tokensOf(charts[from].lines[0].at, low, high, head, series);
  return charts.map((chart, i) => {
    const { at } = chart.lines[0];
    if (i === from) return [low, high];
    if (!tokens) return null;
    if (at === 'token') return tokens;
    if (at === 'length') return tokens.map(token => token + prompts(head)[0]);
    const seconds = series.filter(columns => columns.t.length).map(({ t }) => tokens.map(token => timeAt(t, token)));
    return [Math.min(...seconds.map(one => one[0])), Math.max(...seconds.map(one => one[1]))];
  });
}

// The tokens of a stretch, null if there are none yet.
function tokensOf(at, low, high, head, series) {
  const drawn = series.filter(columns => columns.t.length);
  if (!drawn.length) return null;
  if (at === 'token') return [low, high];
  if (at === 'length') return [low, high].map(length => length - prompts(head)[0]);
  const found = drawn.map(({ t }) => [lowerBound(t, low), lowerBound(t, high)]);
  return [Math.min(...found.map(one => one[0])), Math.max(...found.map(one => one[1]))];
}

function prompts(head) {
  return head.arms.map(arm => arm.prompt_tokens);
}

// Where a moment of an arm's run lies on a chart: its token, its seconds, or the tokens in its cache; null before the
// first token and after the last.
function momentOn(chart, { t }, arm, seconds) {
  const { at } = chart.lines[0], token = lowerBound(t, seconds);
  if (!t.length || seconds > t[t.length - 1]) return null;
  if (at === 'second') return seconds;
  return seconds < t[0] ? null : token + (at === 'length' ? arm.prompt_tokens : 0);
}

// Seconds at which a token came, which may lie between two or outside of all.
function timeAt(t, token) {
  const last = t.length - 1, at = Math.min(last, Math.max(0, token)), whole = Math.floor(at);
  return whole === last ? t[last] : t[whole] + (at - whole) * (t[whole + 1] - t[whole]);
}

// Top of an axis on which a few outliers do not flatten the rest: one and a half times the 98th percentile, if the
// largest value is more than twice that percentile; null if all values fit. Values are in the columns' own units.
const OUTLIER_SHARE = 0.98, OUTLIER_TIMES = 2, OUTLIER_ROOM = 1.5, MIN_FOR_OUTLIERS = 20;

function outlierTop(columns, first) {
  const all = columns.flatMap(column => column.slice(first)).sort((a, b) => a - b);
  if (all.length < MIN_FOR_OUTLIERS) return null;
  const usual = all[Math.floor(OUTLIER_SHARE * (all.length - 1))], largest = all[all.length - 1];
  return largest > OUTLIER_TIMES * usual ? OUTLIER_ROOM * usual : null;
}
