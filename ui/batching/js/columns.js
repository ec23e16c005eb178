// The columns of one arm of many requests, folded by cursor into one row for each request and one entry for each step.
// Replies may overlap (several pulls travel at once on a slow line), so each is cut at the cursor and nothing counts
// twice. Nothing here touches the document.

export const PREFILL = 0, DECODE = 1, IDLE = 2;

// steps   begin, end (s), prefill, decode and idle parts, waiting requests, padding, of each step
// rows    by request: { bars, waits, tokens, prompt, end, reason, text }
//         bars: { kind, begin, end, last (its last step), tokens, padding } in order; waits: [seconds, reason]
// moves   step, page's first and last byte, request (-1: given back), in order
/** @returns {Batch.Folded} */
export function emptyBatch() {
  return {
    steps: { begin: [], end: [], prefill: [], decode: [], idle: [], waiting: [], padding: [] },
    rows: new Map(), moves: { step: [], from: [], to: [], request: [], page: [], group: [] }, parts: 0, waits: 0, ends: 0, tokens: 0,
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
  const known = batch.steps.end.length;
  if (reply.first <= known && reply.n > known) {
    for (let i = known - reply.first; i < reply.n - reply.first; i++) {
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
    if (kind === DECODE) { row.tokens++; batch.tokens++; }
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
  steps.padding.push(reply.pad[i]);
}

// The latest moment that an arm has told of.
/** @param {Batch.Folded} batch */
export function lastMoment(batch) {
  const end = batch.steps.end;
  return end.length ? end[end.length - 1] : 0;
}
