// A run's columns in the browser: folded from replies, thinned out, cut to a moment, written as a file.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byteUnit, count, plural, seconds } from '../../ui/components/js/dom.js';
import { appendReply, csvOf, cursorOf, decimate, emptySeries, firstDifference, lowerBound } from '../../ui/live/js/columns.js';
import { charactersAt, columnsAt } from '../../ui/live/js/race.js';

function noise(n) {
  let state = 3;
  return Array.from({ length: n }, () => (state = state * 16807 % 2147483647) / 2147483647);
}

function reply(latencies, samples = []) {
  const n = latencies.length, zeros = latencies.map(() => 0);
  return {
    first: 0, n, t: latencies.map((_, i) => i), lat: latencies, kvs: zeros, kvf: zeros, kvl: [], kvt: [], kvi: [],
    sfirst: 0, sn: samples.length, st: samples.map((_, i) => 0.5 * i), sm: samples, cfirst: 0, cn: 0, text: '',
  };
}

test('text is cut at the cursor in code points', () => {
  const series = emptySeries(), take = part => appendReply(series, { ...reply([]), ...part }).added;
  assert.equal(take({ cn: 3, text: 'a\u{1f98a}b' }), 'a\u{1f98a}b');
  assert.equal(take({ cfirst: 1, cn: 4, text: '\u{1f98a}bé' }), 'é');
  assert.equal(series.text, 'a\u{1f98a}bé');
  assert.deepEqual(cursorOf(series), [0, 0, 4]);
});

test('replies that overlap count nothing twice, and one behind a gap is not taken', () => {
  const series = emptySeries();
  assert.deepEqual(appendReply(series, { ...reply([5, 6]), first: 3, n: 5 }), { tokens: 0, samples: 0, added: '' });
  appendReply(series, reply([1, 2, 3], [7]));
  const more = { ...reply([2, 3, 4], [7, 8]), first: 1, n: 4 };
  assert.deepEqual(appendReply(series, more), { tokens: 1, samples: 1, added: '' });
  assert.deepEqual([series.lat, series.sm], [[1, 2, 3, 4], [7, 8]]);
});

test('texts differ from their first different letter on', () => {
  assert.deepEqual([['ab', 'ac'], ['ab', 'abc'], ['', '']].map(([a, b]) => firstDifference(a, b)), [1, -1, -1]);
});

test('points keep still while values are added', () => {
  const column = noise(1600), [before, after] = [1500, 1520].map(n => decimate([column.slice(0, n)], 0, n, 400));
  const settled = before.filter(index => index < 1496);
  assert.ok(settled.length > 100);
  assert.deepEqual(settled, after.slice(0, settled.length));
});

test('a spike and both ends survive, and no more points are drawn than may be', () => {
  for (const spike of [1, 512, 2999]) {
    const column = noise(3000).map((value, i) => i === spike ? 9 : value), kept = decimate([column], 0, 3000, 400);
    assert.ok(kept.includes(spike) && kept.length <= 400 && kept[0] === 0 && kept.at(-1) === 2999);
  }
  assert.deepEqual(decimate([[1, 2, 3, 4]], 1, 4, 400), [1, 2, 3]);
  assert.deepEqual([0, 2, 2.5, 9].map(value => lowerBound([1, 2, 3], value)), [0, 1, 2, 3]);
});

test('a text of the race grows as it came and not before its first token', () => {
  const pace = { t: [1, 2, 4], n: [10, 30, 40] };
  assert.deepEqual([0.5, 0.75, 1.5, 9].map(at => charactersAt(pace, 0.5, at)), [0, 5, 20, 40]);
  assert.equal(charactersAt({ t: [], n: [] }, 0.5, 9), 0);
});

test('a moment of the race has what came until then', () => {
  const series = emptySeries();
  appendReply(series, reply([1, 2, 3, 4], [5, 6, 7]));
  const cut = columnsAt(series, 0.9);
  assert.deepEqual([cut.lat, cut.kvf, cut.sm, series.lat.length], [[1], [0], [5, 6], 4]);
});

test('the CSV file holds every token and every sample', () => {
  const rows = csvOf({ unit: 'token', arms: [{ name: 'A' }, { name: 'B' }] }, [reply([0.3, 0.01], [512]), { ...reply([0.4]), kvf: [2], kvt: [3] }]);
  assert.deepEqual(rows.split('\n'), [
    'arm,series,index,seconds,latency_s,kv_sliding_bytes,kv_full_bytes,memory_bytes',
    'A,token,0,0,0.3,0,0,', 'A,token,1,1,0.01,0,0,', 'A,sample,0,0,,,,512', 'B,token,0,0,0.4,0,5,', '',
  ]);
});

test('numbers are written as people read them', () => {
  assert.deepEqual([count(1234567), seconds(0.5), seconds(12.34), seconds(1234.5)], ['1,234,567', '0.50 s', '12.3 s', '1235 s']);
  assert.deepEqual([0, 1, 1000].map(runs => plural(runs, 'run')), ['0 runs', '1 run', '1,000 runs']);
  assert.deepEqual([2 ** 21 - 1, 2 ** 21, 2 ** 32].map(bytes => byteUnit(bytes).unit), ['KiB', 'MiB', 'GiB']);
});
