// What the charts of a run show: places on both axes, tops, units, labels, and how latencies are distributed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartTraces, chartUnit, curveAt, curveLabels } from '../../ui/live/js/chart_data.js';
import { cumulativeOf, histogramOf, latenciesOf, quantileOf } from '../../ui/live/js/distribution.js';
import { indicesOf, momentOn, outlierTop, timeAt, tokenAt, translated } from '../../ui/live/js/columns.js';
import { indexAt } from '../../ui/live/js/pointer.js';

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

const line = more => ({ at: 'token', first: 0, scale: 1, kind: '', width: 1, curve: '', label: '', ...more });
const CHARTS = [
  { key: 'latency', unit: 'ms', from_zero: true, min_span: 0, lines: [
    line({ column: 's', scale: 1000, curve: 'floor', label: 'roofline' }), line({ column: 'lat', first: 1, scale: 1000 }),
  ] },
  { key: 'memory', unit: 'bytes', from_zero: false, min_span: 0.1, lines: [
    line({ column: 'bytes', at: 'sample', curve: 'ranks', label: 'other devices' }), line({ column: 'sm', at: 'sample' }),
  ] },
  { key: 'kv', unit: 'bytes', from_zero: true, min_span: 0, lines: [
    line({ column: 'kvf', at: 'length', kind: 'full', curve: 'predicted', label: 'predicted' }), line({ column: 'kvf', kind: 'full' }),
  ] },
];

// The traces of a run with so many tokens of arm A and of arm B, 10 ms each, and a sample of 512 MiB twice a second.
function tracesOf(tokens, more = {}) {
  const series = tokens.map(n => {
    const each = Array.from({ length: n }, (_, i) => i);
    return { t: each.map(i => 0.1 + 0.01 * i), lat: each.map(i => i ? 0.01 : 0.1), kvf: each.map(i => 1024 * (11 + i)), st: [0, 0.5], sm: [2 ** 29, 2 ** 29] };
  });
  const arms = tokens.map((_, a) => ({
    name: 'AB'[a], prompt_tokens: 10, floor: { x: [0, 63], s: [0.004, 0.006] }, predicted: { x: [11, 74], kvf: [11264, 75776] }, ranks: null,
  }));
  const view = { head: { arms, unit: 'token', max_new_tokens: 64 }, series, ended: true, hidden: new Set(), axis: 'token', zoom: null, ink: 'black', neutral: 'grey', ...more };
  view.units = CHARTS.map(chart => chartUnit(chart, view, null));
  return chartTraces(CHARTS, view);
}
const measured = traces => traces.filter(({ meta }) => meta?.arm && !meta.curve);

test('an arm keeps its colour and dash in every chart, and what is predicted is dotted', () => {
  const styles = tracesOf([64, 40]).filter(({ meta }) => meta?.arm).map(({ meta, line: { color, dash } }) => [meta.arm, color, dash, !!meta.curve].join());
  assert.deepEqual([...new Set(styles)].sort(), [
    'A,#4269d0,1px,3px,true', 'A,#4269d0,solid,false', 'B,#ff725c,1px,3px,true', 'B,#ff725c,5px,2.5px,false',
  ]);
});

test('latencies are milliseconds from token 1 on, above their bound, which ends with the run', () => {
  const [floor, , a, b] = tracesOf([64, 40]).filter(({ meta }) => meta?.chart === 'latency' && meta.arm);
  assert.deepEqual([floor.x, floor.y], [[0, 63], [4, 6]]);
  assert.deepEqual([a.x[0], a.x.at(-1), b.x.at(-1), a.y[0]], [1, 63, 39, 10]);
  const ends = ended => tracesOf([9, 5], { ended }).filter(({ meta }) => meta?.curve).map(({ x }) => x.at(-1));
  assert.deepEqual([new Set(ends(true)), new Set(ends(false))].map(found => [...found]), [[8], [63, 64]]);
});

test('a name in the legend hides its lines and no others', () => {
  const hides = { A: ({ arm }) => arm === 'A', full: ({ kind }) => kind === 'full', roofline: ({ curve }) => curve === 'floor' };
  for (const [name, hidden] of Object.entries(hides)) {
    const traces = tracesOf([64, 40], { hidden: new Set([name]) });
    for (const { meta, visible } of traces.filter(one => one.meta?.arm)) assert.equal(visible, !hidden(meta), name);
    const entries = traces.filter(one => one.showlegend);
    assert.deepEqual(entries.map(one => one.name), ['A', 'B', 'roofline', 'full', 'predicted']);
    assert.deepEqual(entries.filter(one => one.visible === 'legendonly').map(one => one.name), [name]);
  }
});

test('a zoomed chart draws its stretch and a neighbour on each side', () => {
  const ends = (zoom, axis) => measured(tracesOf([64, 40], { zoom, axis })).filter(({ meta }) => meta.chart === 'kv').map(({ x }) => [x[0], x.at(-1)]);
  assert.deepEqual(ends([20.4, 30.2], 'token'), [[19, 32], [19, 32]]);
  assert.deepEqual(ends([35, 60], 'token'), [[34, 61], [34, 39]]);
  const [[low, high]] = ends([0.301, 0.399], 'second');
  assert.ok(Math.abs(low - 0.3) < 1e-9 && Math.abs(high - 0.41) < 1e-9);
});

test('memory of the other ranks is one line with gaps, on either axis', () => {
  const ranks = { x: [0.1, 0.3, null, 0.1], bytes: [2 ** 29, 2 ** 30, null, 2 ** 28] };
  const series = [{ t: [0.1, 0.2], lat: [0.1, 0.1], kvf: [1, 2], st: [0], sm: [2 ** 29] }];
  for (const axis of ['token', 'second']) {
    const [found] = tracesOf([2], { axis, series, head: { arms: [{ name: 'A', prompt_tokens: 1, ranks }], unit: 'token', max_new_tokens: 9 } })
      .filter(({ meta }) => meta?.curve === 'ranks');
    assert.deepEqual([found.y, found.x.map(at => at === null)], [[512, 1024, null, 256], [false, false, true, false]]);
  }
});

test('axes reach to the end of the run, memory covers a tenth of its value, and the rest begins at 0', () => {
  const extents = more => Object.fromEntries(tracesOf([9, 5], more).filter(({ meta }) => meta?.extent).map(({ meta, x, y }) => [meta.chart, { x, y }]));
  assert.deepEqual([extents({ ended: false }).latency.x, extents({}).latency.x], [[0, 64], [0, 9]]);
  assert.deepEqual([extents({ ended: false, axis: 'second' }).kv.x, extents({ axis: 'second' }).kv.x], [[0, 1], [0, 0.5]]);
  assert.deepEqual([extents({}).latency.y, extents({}).kv.y, extents({ ended: false }).kv.y], [[0, 0], [0, 74], [0, 92.5]]);
  assert.deepEqual(extents({}).memory.y.map(value => value.toFixed(1)), ['499.2', '550.4']);
});
