// Time axes, strips of slots and maps of pages as numbers, before anything is drawn. Nothing here touches the document.

import { lastMoment } from './columns.js';

const MAP_LINES = 240;

// A round end of the axis at or past `last`, so that the scale does not creep with each step.
/** @param {number} last @param {boolean} over */
export function axisEnd(last, over) {
  if (last <= 0) return 1;
  if (over) return last;
  const unit = 10 ** Math.floor(Math.log10(last));
  return [1, 1.5, 2, 3, 4, 5, 6, 8].map(factor => factor * unit).find(end => end >= last * 1.02) || 10 * unit;
}

// About `most` round numbers from 0 to `end`.
/** @param {number} end @param {number} most */
export function ticks(end, most) {
  const rough = end / Math.max(1, most), unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * unit).find(size => size >= rough);
  const found = [];
  for (let i = 0; i * step <= end * 1.0001; i++) found.push(Number((i * step).toPrecision(6)));
  return found;
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
  let low = 0, high = steps.begin.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps.begin[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
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
  const owner = new Int32Array(lines).fill(-1), held = new Int32Array(lines), holders = new Map();
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
        held[line] += Number(request >= 0) - Number(before >= 0);
        owner[line] = request >= 0 ? request : held[line] > 0 ? owner[line] : -1;
      }
    }
    map.set(owner, x * lines);
  }
  return map;
}
