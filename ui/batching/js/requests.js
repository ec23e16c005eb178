// One request of one arm, from its columns: what is drawn of it, and what is said of it. Nothing here touches the
// document.

import { count, plural, seconds } from '../../components/js/dom.js';
import { IDLE, PREFILL } from './columns.js';

// When its first token existed: at the end of its last piece of prompt, once a token followed or it ended. null: not yet.
/** @param {Batch.Row | undefined} row @returns {number | null} */
function firstToken(row) {
  let prefilled = null, done = false;
  for (const bar of row ? row.bars : []) {
    if (bar.kind === PREFILL) prefilled = bar.end;
    else done = true;
  }
  return done || (row && row.end !== null) ? prefilled : null;
}

/** Tokens that it has: that of its prompt, and one for each decode step. @param {Batch.Row | undefined} row */
export function tokensOf(row) {
  return firstToken(row) === null ? 0 : row.tokens + 1;
}

/** @param {Batch.Row | undefined} row */
function startOf(row) {
  return row && row.bars.length ? row.bars[0].begin : null;
}

// queued, prefill, decode, done or cancelled; "later" before it has arrived.
/** @param {Batch.Row | undefined} row @param {number} arrival @param {number} now */
export function stateOf(row, arrival, now) {
  if (row && row.end !== null) return row.reason === 'cancelled' ? 'cancelled' : 'done';
  if (row && row.bars.length) return row.bars[row.bars.length - 1].kind === PREFILL ? 'prefill' : 'decode';
  return arrival > now ? 'later' : 'queued';
}

// The reason for which it waits at a moment, as the scheduler gave it; '' if none was given by then.
/** @param {Batch.Row | undefined} row @param {number} at */
export function reasonAt(row, at) {
  let latest = '';
  for (const [begin, reason] of row ? row.waits : []) if (begin <= at || !latest) latest = reason;
  return latest;
}

// What is drawn of a request: pieces with a kind ("queued", "padding", "prefill", "decode", "idle") from one second to
// another. A request that has not begun waits until `now`.
/** @param {Batch.Row | undefined} row @param {number} arrival @param {number} now */
export function pieces(row, arrival, now) {
  const drawn = [], start = startOf(row), until = start === null ? (row && row.end !== null ? row.end : now) : start;
  if (until > arrival) drawn.push({ kind: 'queued', from: arrival, to: until });
  for (const bar of row ? row.bars : []) {
    if (bar.kind === PREFILL) {
      const share = bar.padding / (bar.padding + bar.tokens), middle = bar.begin + share * (bar.end - bar.begin);
      if (bar.padding) drawn.push({ kind: 'padding', from: bar.begin, to: middle });
      drawn.push({ kind: 'prefill', from: middle, to: bar.end });
    } else {
      drawn.push({ kind: bar.kind === IDLE ? 'idle' : 'decode', from: bar.begin, to: bar.end });
    }
  }
  return drawn;
}

/** The figures of a request, in seconds; null where they are not known. @param {Batch.Row | undefined} row @param {number} arrival */
export function figuresOf(row, arrival) {
  const first = firstToken(row), start = startOf(row), tokens = tokensOf(row);
  const chunks = row ? row.bars.filter(bar => bar.kind === PREFILL) : [];
  const idle = row ? row.bars.filter(bar => bar.kind === IDLE).reduce((sum, bar) => sum + bar.end - bar.begin, 0) : 0;
  return {
    waited: start === null ? null : Math.max(0, start - arrival),
    ttft: first === null ? null : first - arrival,
    perToken: row && row.end !== null && tokens > 1 ? (row.end - first) / (tokens - 1) : null,
    total: row && row.end !== null ? row.end - arrival : null,
    tokens, chunks: chunks.length, padding: chunks.reduce((sum, bar) => sum + bar.padding, 0), idle,
  };
}

// A request of an arm in words. `waits`: reason -> what it waited for.
/**
 * @param {number} number @param {Batch.Row | undefined} row @param {number} arrival @param {number} now
 * @param {{ [reason: string]: string }} waits
 */
export function describeRequest(number, row, arrival, now, waits) {
  const state = stateOf(row, arrival, now), figures = figuresOf(row, arrival), parts = [];
  const reasons = row ? [...new Set(row.waits.map(([, reason]) => reason))] : [];
  const why = reasons.length ? ' for ' + reasons.map(reason => waits[reason] || reason).join(', then for ') : '';
  if (now <= 0 && !row) return 'Request ' + (number + 1) + ': this arm has not begun';
  if (state === 'later') return 'Request ' + (number + 1) + ': arrives at ' + seconds(arrival);
  if (figures.waited === null) {
    const reason = reasonAt(row, now);
    parts.push(state === 'cancelled' ? 'cancelled while it waited' + why : 'waits' + (reason ? ' for ' + (waits[reason] || reason) : ''));
  } else {
    parts.push(figures.waited > 0 && why ? 'waited ' + seconds(figures.waited) + why : 'began at once');
    const padded = figures.padding ? ' and ' + count(Math.round(figures.padding)) + ' of padding' : '';
    parts.push('prompt of ' + plural(row.prompt, 'token') + padded + (figures.chunks > 1 ? ' in ' + figures.chunks + ' pieces' : ''));
    if (figures.ttft !== null) parts.push('first token after ' + seconds(figures.ttft));
    parts.push(plural(figures.tokens, 'token'));
    if (figures.total !== null) parts.push((state === 'cancelled' ? 'cancelled after ' : 'done after ') + seconds(figures.total));
    if (figures.idle > 0) parts.push('its slot then idle for ' + seconds(figures.idle));
  }
  return 'Request ' + (number + 1) + ': ' + parts.join(', ');
}
