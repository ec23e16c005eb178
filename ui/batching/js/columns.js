// The columns of one arm of many requests, folded by cursor into one row for each request and one entry for each step.
// Replies may overlap (several pulls travel at once on a slow line), so each is cut at the cursor and nothing counts
// twice. Nothing here touches the document.

import { upperBound } from '../../live/js/columns.js';

export const PREFILL = 0, DECODE = 1, IDLE = 2;

// steps   begin, end (s), prefill, decode and idle parts, waiting requests, of each step
// rows    by request: { bars, waits, tokens, prompt, end, reason, text }
//         bars: { kind, begin, end, last (its last step), tokens, padding } in order; waits: [seconds, reason]
// moves   step, page's first and last byte, request (-1: given back), in order
/** @returns {Batch.Folded} */
export function emptyBatch() {
  return {
    steps: { begin: [], end: [], prefill: [], decode: [], idle: [], waiting: [] },
    rows: new Map(), moves: { step: [], from: [], to: [], request: [], page: [], group: [] }, waits: 0, ends: 0,
  };
}

/** @param {Batch.Folded} batch */
export function batchCursor(batch) {
  return [batch.steps.end.length, batch.waits, batch.moves.step.length, batch.ends];
}

/** @param {Batch.Folded} batch @param {number} request @returns {Batch.Row} */
function rowOf(batch, request) {
  if (!batch.rows.has(request)) batch.rows.set(request, { bars: [], waits: [], tokens: 0, prompt: 0, end: null, reason: '', text: '' });
  return batch.rows.get(request);
}

// Append what is new in an arm's reply; `pages` are the groups of its paged cache. Returns whether anything was new.
/** @param {Batch.Folded} batch @param {Batch.BatchColumns} reply @param {Batch.PageGroup[]} pages */
export function appendBatch(batch, reply, pages) {
  let grew = false;
  const steps = batch.steps.end.length;
  if (reply.first <= steps && reply.n > steps) {
    for (let i = steps - reply.first; i < reply.n - reply.first; i++) {
      const from = (i ? reply.pe[i - 1] : reply.pfirst) - reply.pfirst, to = reply.pe[i] - reply.pfirst;
      appendStep(batch, reply, i, from, to);
    }
    grew = true;
  }
  if (reply.wfirst <= batch.waits && reply.wn > batch.waits) {
    for (let i = batch.waits - reply.wfirst; i < reply.wt.length; i++) rowOf(batch, reply.wr[i]).waits.push([reply.wt[i], reply.why[i]]);
    batch.waits = reply.wn;
    grew = true;
  }
  const moved = batch.moves.step.length;
  if (pages.length && reply.mfirst <= moved && reply.mn > moved) {
    for (let i = moved - reply.mfirst; i < reply.ms.length; i++) {
      const size = pages[reply.mg[i]].page_bytes;
      batch.moves.step.push(reply.ms[i]);
      batch.moves.from.push(reply.mp[i] * size);
      batch.moves.to.push((reply.mp[i] + 1) * size);
      batch.moves.request.push(reply.mr[i]);
      batch.moves.page.push(reply.mp[i]);
      batch.moves.group.push(reply.mg[i]);
    }
    grew = true;
  }
  if (reply.efirst <= batch.ends && reply.en > batch.ends) {
    for (let i = batch.ends - reply.efirst; i < reply.er.length; i++) {
      const row = rowOf(batch, reply.er[i]);
      row.end = reply.at[i];
      row.reason = reply.ewhy[i];
      row.text = reply.et[i];
    }
    batch.ends = reply.en;
    grew = true;
  }
  return grew;
}

// Step i of a reply, whose parts are `from` to `to`. A static batch pads each prompt to the same width.
/** @param {Batch.Folded} batch @param {Batch.BatchColumns} reply @param {number} i @param {number} from @param {number} to */
function appendStep(batch, reply, i, from, to) {
  const begin = reply.b[i], end = reply.e[i], step = batch.steps.end.length, counts = [0, 0, 0];
  let prompts = 0, filled = 0;
  for (let p = from; p < to; p++) if (reply.k[p] === PREFILL) { prompts++; filled += reply.tok[p]; }
  const width = reply.pad[i] && prompts ? (reply.pad[i] + filled) / prompts : 0;
  for (let p = from; p < to; p++) {
    const kind = reply.k[p], request = reply.r[p], tokens = reply.tok[p];
    counts[kind]++;
    if (request < 0) continue;
    const row = rowOf(batch, request), last = row.bars[row.bars.length - 1];
    if (kind === PREFILL) row.prompt += tokens;
    if (kind === DECODE) row.tokens++;
    if (last && last.kind === kind && last.last === step - 1 && kind !== PREFILL) {
      last.end = end;
      last.last = step;
      last.tokens += tokens;
    } else {
      row.bars.push({ kind, begin, end, last: step, tokens, padding: kind === PREFILL && width ? width - tokens : 0 });
    }
  }
  const steps = batch.steps;
  steps.begin.push(begin);
  steps.end.push(end);
  steps.prefill.push(counts[PREFILL]);
  steps.decode.push(counts[DECODE]);
  steps.idle.push(counts[IDLE]);
  steps.waiting.push(reply.w[i]);
}

/** The latest moment that an arm has told of. @param {Batch.Folded} batch */
export function lastMoment(batch) {
  const end = batch.steps.end;
  return end.length ? end[end.length - 1] : 0;
}

// --- time axes, strips of slots and maps of pages, before anything is drawn ---

const MAP_LINES = 240;

// A round end of the axis at or past `last`, so that the scale does not creep with each step.
/** @param {number} last @param {boolean} over */
export function axisEnd(last, over) {
  if (last <= 0) return 1;
  if (over) return last;
  const unit = 10 ** Math.floor(Math.log10(last));
  return [1, 1.5, 2, 3, 4, 5, 6, 8].map(factor => factor * unit).find(end => end >= last * 1.02) || 10 * unit;
}

/** About `most` round numbers from 0 to `end`. @param {number} end @param {number} most */
export function ticks(end, most) {
  const rough = end / Math.max(1, most), unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * unit).find(size => size >= rough);
  const marks = [];
  for (let i = 0; i * step <= end * 1.0001; i++) marks.push(Number((i * step).toPrecision(6)));
  return marks;
}

// Slots over time, in `width` columns of equal time up to `end`: time-weighted means of slots at useful work and of
// idle ones; null where no step ran.
/** @param {Pick<Batch.Steps, 'begin' | 'end' | 'prefill' | 'decode' | 'idle'>} steps @param {number} width @param {number} end */
export function slotColumns(steps, width, end) {
  const work = new Array(width).fill(0), idle = new Array(width).fill(0), covered = new Array(width).fill(0);
  const size = end / width;
  for (let i = 0; i < steps.end.length; i++) {
    const busy = steps.prefill[i] + steps.decode[i];
    for (let x = Math.floor(steps.begin[i] / size); x < width && x * size < steps.end[i]; x++) {
      const share = Math.max(0, Math.min(steps.end[i], (x + 1) * size) - Math.max(steps.begin[i], x * size)) / size;
      work[x] += share * busy;
      idle[x] += share * steps.idle[i];
      covered[x] += share;
    }
  }
  return { work: work.map((sum, x) => covered[x] ? sum : null), idle };
}

// The step under way at a moment: the last that had begun. -1 before the first.
/** @param {Pick<Batch.Steps, 'begin'>} steps @param {number} at */
export function stepAt(steps, at) {
  return upperBound(steps.begin, at) - 1;
}

// Lines of a map of pages: one for each page while there are few.
/** @param {number} cacheBytes @param {Pick<Batch.PageGroup, 'page_bytes'>[]} pages */
export function mapLines(cacheBytes, pages) {
  const smallest = Math.min(...pages.map(group => group.page_bytes));
  return Math.max(1, Math.min(MAP_LINES, Math.round(cacheBytes / smallest)));
}

// Who holds each line of the paged cache in each of `width` columns of time: Int32Array, column by column; -1 is free.
// A line that covers several pages is free when none of them is held.
/** @param {Batch.Folded} batch @param {number} cacheBytes @param {number} lines @param {number} width @param {number} end */
export function pageMap(batch, cacheBytes, lines, width, end) {
  const { moves, steps } = batch, map = new Int32Array(lines * width).fill(-1);
  const owner = new Int32Array(lines).fill(-1), used = new Int32Array(lines), holders = new Map();
  const last = lastMoment(batch);
  let next = 0;
  for (let x = 0; x < width; x++) {
    const at = (x + 0.5) * end / width;
    if (at > last) break;
    const step = stepAt(steps, at);
    for (; next < moves.step.length && moves.step[next] <= step; next++) {
      const key = moves.group[next] + ':' + moves.page[next], request = moves.request[next];
      const before = holders.has(key) ? holders.get(key) : -1;
      holders.set(key, request);
      const from = Math.floor(moves.from[next] / cacheBytes * lines), to = Math.max(from + 1, Math.round(moves.to[next] / cacheBytes * lines));
      for (let line = from; line < Math.min(to, lines); line++) {
        used[line] += Number(request >= 0) - Number(before >= 0);
        owner[line] = request >= 0 ? request : used[line] > 0 ? owner[line] : -1;
      }
    }
    map.set(owner, x * lines);
  }
  return map;
}
