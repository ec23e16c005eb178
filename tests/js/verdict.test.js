// The scale of the verdict card has the figures of its sentence, and the card those of an arm from its first token on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axisOf, scaled, tileSoFar, wording } from '../../ui/live/js/verdict.js';

test('an arm that takes 2x the time has its pairs around 2, not around 0.5', () => {
  const slower = { pairs: [0.5, 0.4], ratio: 0.5, low: 0.4, high: 0.8 };
  assert.deepEqual(scaled({ ...slower, tail: 'the time of float32' }), { pairs: [2, 2.5], ratio: 2, low: 1.25, high: 2.5 });
  assert.deepEqual(scaled({ ...slower, tail: '' }), slower);
});

test('the scale shows 1 where the interval holds it, however close the pairs are', () => {
  const { from, to } = axisOf({ pairs: [1.42, 1.46], ratio: 1.44, low: 0.12, high: 17 });
  assert.ok(from < 0 && to > Math.log(1.46));
});

test('a figure that only arm A has so far stands beside a dash', () => {
  const arm = (value, unit = 'ms') => ({ tiles: [{ key: 'latency', label: 'Time per token, mean', value, unit, note: '' }] });
  const tile = { title: 'Time per token, mean', a: '9.06', b: '\u2013', unit: 'ms', note: '' };
  assert.deepEqual(tileSoFar('latency', [arm('9.06'), { tiles: [] }]), tile);
  assert.deepEqual(tileSoFar('latency', [arm('9.06'), arm('n/a')]), tile);
  assert.equal(tileSoFar('latency', [arm('n/a'), { tiles: [] }]), null);
  assert.deepEqual(tileSoFar('latency', [arm('900'), arm('1.2', 's')]), { ...tile, a: '900 ms', b: '1.2 s', unit: '' });
});

test('a run under way is told by the arm that works and what it does', () => {
  const head = { verdict: { sentence: '' }, arms: [{ name: 'A', state: 'working', phases: [{ name: 'load', title: 'load' }] }, { name: 'B', state: 'waiting', phases: [] }] };
  assert.equal(wording(head, 'running'), 'Arm A: load; then arm B.');
  head.arms[0].phases.push({ name: 'run', title: 'run' });
  assert.equal(wording(head, 'running'), 'Arm A runs; then arm B.');
  assert.equal(wording({ ...head, arms: [{ ...head.arms[0], phases: [] }] }, 'running'), 'Arm A starts.');
});
