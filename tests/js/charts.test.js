// What the charts of a run show: places on both axes, tops, units, labels, and how latencies are distributed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartUnit, curveAt, curveLabels } from '../../ui/live/js/chart_data.js';
import { cumulativeOf, histogramOf, latenciesOf, quantileOf } from '../../ui/live/js/distribution.js';
import { indexAt } from '../../ui/live/js/readout.js';
import { indicesOf, momentOn, outlierTop, timeAt, tokenAt, translated } from '../../ui/live/js/windows.js';

const COLUMNS = { t: [1, 2, 4], st: [0, 1, 2, 3] };

test('tokens and seconds are translated into each other', () => {
  assert.deepEqual([-1, 0.5, 1.5, 9].map(token => timeAt(COLUMNS.t, token)), [1, 1.5, 3, 4]);
  assert.deepEqual([0.5, 1.5, 3, 9].map(at => tokenAt(COLUMNS.t, at)), [0, 0.5, 1.5, 2]);
  assert.deepEqual(translated([0, 1], 'second', [COLUMNS, { t: [2, 3] }, { t: [] }]), [1, 3]);
  assert.equal(translated([0, 1], 'second', [{ t: [] }]), null);
  assert.deepEqual([0.5, 3, 5].map(at => momentOn('token', COLUMNS, at)), [null, 2, null]);
  assert.deepEqual([0.5, 5].map(at => momentOn('second', COLUMNS, at)), [0.5, null]);
});

test('a stretch of an axis holds these values, and a pointer means the nearest sample', () => {
  const sample = { at: 'sample' }, token = { at: 'token' };
  assert.deepEqual(indicesOf(sample, 'token', COLUMNS, [0, 1]), [1, 2]);
  assert.deepEqual(indicesOf(token, 'second', COLUMNS, [1.5, 4]), [1, 2]);
  assert.deepEqual([1.4, 1.6, 9].map(second => indexAt(sample, { second }, COLUMNS, 0)), [1, 2, null]);
  assert.deepEqual([0, 1, 3].map(at => indexAt(token, { token: at }, COLUMNS, 1)), [null, 1, null]);
});

test('a few outliers do not flatten the rest', () => {
  const tens = n => new Array(n).fill(10), top = values => outlierTop([[5000, ...values]], 1);  // the prefill is not drawn
  assert.equal(top([...tens(98), 900, 900]), 15);
  assert.equal(top([...tens(99), 19]), null);
  assert.equal(top(Array.from({ length: 100 }, (_, i) => i)), null);
  assert.equal(top([...tens(5), 900]), null);
});

test('bytes are shown in the unit that suits the largest, which stays while a chart is zoomed', () => {
  const chart = { unit: 'bytes', lines: [{ column: 'sm', curve: '' }] };
  const unit = (size, kept) => chartUnit(chart, { head: { arms: [{}] }, series: [{ sm: [1, size, 3] }] }, kept);
  assert.deepEqual(unit(2 ** 21 - 1, null), { unit: 'KiB', scale: 1 / 1024 });
  assert.deepEqual(unit(2 ** 32, null), { unit: 'GiB', scale: 2 ** -30 });
  assert.deepEqual(unit(5, { unit: 'GiB', scale: 2 ** -30 }), { unit: 'GiB', scale: 2 ** -30 });
});

test('the roofline bound is labelled with its value at the right edge', () => {
  const chart = { unit: 'ms', lines: [{ curve: 'floor', column: 's', at: 'token', scale: 1000 }] };
  const label = (bounds, zoom) => {
    const arms = bounds.map((s, a) => ({ name: 'AB'[a], floor: { x: [0, 100], s: [0.001, s] } }));
    const columns = { t: Array.from({ length: 101 }, (_, i) => i) };
    const state = { head: { arms }, series: [columns, columns], ended: false, axis: 'token', zoom, units: [{ unit: 'ms', scale: 1 }] };
    return curveLabels(chart, 0, state, 'black')[0].text;
  };
  assert.equal(label([0.004, 0.0041], null), 'roofline bound 4 ms');
  assert.equal(label([0.004, 0.008], null), 'roofline bound A 4, B 8 ms');
  assert.equal(label([0.003, 0.0031], [0, 50]), 'roofline bound 2 ms');
  assert.deepEqual([-5, 50, 500].map(at => curveAt([0, 100], [1, 3], at)), [1, 2, 3]);
});

test('latencies without the first token are shared out over bins and quantiles', () => {
  const head = { unit: 'token' }, series = [{ lat: [9, 3, 1, 2, 4] }, { lat: [9] }];
  assert.deepEqual(latenciesOf(head, series, null).map(list => [...list]), [[1, 2, 3, 4], []]);
  assert.deepEqual(latenciesOf(head, series, [1.5, 3.2]).map(list => [...list]), [[1, 2], []]);
  assert.deepEqual([0, 0.25, 0.5, 1].map(share => quantileOf([1, 2, 3, 4], share)), [1, 1, 2, 4]);
  const { edges, shares, beyond } = histogramOf([[...new Array(98).fill(10), 900, 900], []]);
  assert.equal(edges.length, shares[0].length + 1);
  assert.deepEqual([edges.at(-1), beyond], [15, [2, 0]]);
  assert.ok(Math.abs(shares[0].reduce((one, other) => one + other) - 0.98) < 1e-9);
  assert.deepEqual(cumulativeOf([1, 9], 5).at(-1), [1, 0.5]);
});
