// Many requests as numbers: rows of the Gantt chart, time axes, slots, pages.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ganttHeight, rowHeight } from '../../ui/batching/js/canvases.js';
import { appendBatch, axisEnd, batchCursor, emptyBatch, mapLines, pageMap, slotColumns, stepAt, ticks } from '../../ui/batching/js/columns.js';
import { describeRequest, figuresOf, pieces, reasonAt, stateOf } from '../../ui/batching/js/requests.js';

const ROW = {
  bars: [
    { kind: 0, begin: 1, end: 2, last: 0, tokens: 1, padding: 3 }, { kind: 1, begin: 2, end: 4, last: 2, tokens: 2, padding: 0 },
    { kind: 2, begin: 4, end: 5, last: 3, tokens: 0, padding: 0 },
  ],
  waits: [[0.2, 'requests'], [0.6, 'pages']], tokens: 2, prompt: 1, end: 4, reason: 'length', text: '',
};

test('a request is drawn from its arrival to its end', () => {
  assert.deepEqual(pieces(ROW, 0, 9).map(one => [one.kind, one.from, one.to]), [
    ['queued', 0, 1], ['padding', 1, 1.75], ['prefill', 1.75, 2], ['decode', 2, 4], ['idle', 4, 5],
  ]);
  assert.deepEqual(pieces(undefined, 1, 3), [{ kind: 'queued', from: 1, to: 3 }]);
  assert.deepEqual(pieces({ ...ROW, bars: [], end: 2 }, 1, 9), [{ kind: 'queued', from: 1, to: 2 }]);
});

test('its figures are known once it has come that far', () => {
  assert.deepEqual(figuresOf(ROW, 0), { waited: 1, ttft: 2, perToken: 1, total: 4, tokens: 3, chunks: 1, padding: 3, idle: 1 });
  assert.deepEqual(figuresOf(undefined, 0), {
    waited: null, ttft: null, perToken: null, total: null, tokens: 0, chunks: 0, padding: 0, idle: 0,
  });
  assert.deepEqual([stateOf(ROW, 0, 9), stateOf(undefined, 2, 1), stateOf(undefined, 0, 1)], ['done', 'later', 'queued']);
  assert.deepEqual([0.1, 0.3, 9].map(at => reasonAt(ROW, at)), ['requests', 'requests', 'pages']);
});

test('rows of the Gantt chart share its height', () => {
  assert.deepEqual([1, 20, 60, 900].map(rowHeight), [15, 15, 5, 1]);
  assert.deepEqual([2, 900].map(ganttHeight), [47, 917]);
});

test('axes end at round numbers while a run goes on', () => {
  assert.deepEqual([0, 0.9, 1.2, 7.9, 8.5].map(last => axisEnd(last, false)), [1, 1, 1.5, 10, 10]);
  assert.equal(axisEnd(1.23, true), 1.23);
  assert.deepEqual(ticks(10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0.3, 3), [0, 0.1, 0.2, 0.3]);
});

test('slots are means over time, and unknown where no step ran', () => {
  const steps = { begin: [0, 1], end: [1, 2], prefill: [2, 0], decode: [0, 1], idle: [0, 3] };
  assert.deepEqual(slotColumns(steps, 4, 4), { work: [2, 1, null, null], idle: [0, 3, 0, 0] });
  assert.deepEqual(slotColumns(steps, 1, 2), { work: [1.5], idle: [1.5] });
  assert.deepEqual([-1, 0, 1.5, 9].map(at => stepAt(steps, at)), [-1, 0, 1, 1]);
});

test('a map has a line for each page while there are few', () => {
  assert.deepEqual([600, 100_000].map(bytes => mapLines(bytes, [{ page_bytes: 100 }])), [6, 240]);
});

// Two steps: requests 0 and 1 with prompts of 4 and 2 tokens, padded; then a token of 0 beside the slot of 1, which is done.
const REPLY = {
  first: 0, n: 2, b: [0, 1], e: [1, 2], pad: [2, 0], w: [1, 0], pfirst: 0, pe: [2, 4], r: [0, 1, 0, 1], k: [0, 0, 1, 2], tok: [4, 2, 1, 0],
  wfirst: 0, wn: 1, wt: [0.5], wr: [2], why: ['pages'], mfirst: 0, mn: 3, ms: [0, 0, 1], mg: [0, 0, 0], mp: [0, 1, 1], mr: [0, 1, -1],
  efirst: 0, en: 1, er: [1], at: [1], ewhy: ['length'], et: [''],
};
const PAGES = [{ page_bytes: 100 }];

test('replies of many requests count nothing twice, and one behind a gap is not taken', () => {
  const batch = emptyBatch();
  assert.ok(!appendBatch(batch, { ...REPLY, first: 1, wfirst: 1, mfirst: 1, efirst: 1 }, PAGES));
  assert.ok(appendBatch(batch, REPLY, []), 'no page moves before the pages are known');
  assert.deepEqual(batchCursor(batch), [2, 1, 0, 1]);
  assert.ok(appendBatch(batch, REPLY, PAGES) && !appendBatch(batch, REPLY, PAGES));
  assert.deepEqual([batchCursor(batch), batch.steps.idle], [[2, 1, 3, 1], [0, 1]]);
  assert.deepEqual(pieces(batch.rows.get(1), 0, 9).map(one => one.kind), ['padding', 'prefill', 'idle']);
});

test('a request is told with why it waited, its padding and its idle slot', () => {
  const batch = emptyBatch(), waits = { pages: 'free pages' };
  appendBatch(batch, REPLY, PAGES);
  const said = (number, arrival, now) => describeRequest(number, batch.rows.get(number), arrival, now, waits);
  assert.equal(said(1, 0, 2), 'Request 2: began at once, prompt of 2 tokens and 2 of padding, first token after 1.00 s, 1 token, done after 1.00 s, its slot then idle for 1.00 s');
  assert.equal(said(2, 0.2, 1), 'Request 3: waits for free pages');
  assert.equal(said(3, 5, 1), 'Request 4: arrives at 5.00 s');
  appendBatch(batch, { ...REPLY, efirst: 1, en: 2, er: [2], at: [1.5], ewhy: ['cancelled'], et: [''] }, PAGES);
  assert.equal(said(2, 0.2, 2), 'Request 3: cancelled while it waited for free pages');
});

test('the map of pages follows each change of hands', () => {
  const batch = emptyBatch();
  appendBatch(batch, REPLY, PAGES);
  assert.deepEqual([...pageMap(batch, 300, 3, 2, 2)], [0, 1, -1, 0, -1, -1]);
  assert.deepEqual([...pageMap(batch, 300, 1, 2, 2)], [1, 1], 'a line of several pages is free only when none is held');
});
