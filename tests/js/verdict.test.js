// The scale of the verdict card has the figures of its sentence.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scaled } from '../../ui/live/js/verdict.js';

test('an arm that takes 2x the time has its pairs around 2, not around 0.5', () => {
  const slower = { pairs: [0.5, 0.4], ratio: 0.5, low: 0.4, high: 0.8 };
  assert.deepEqual(scaled({ ...slower, tail: 'the time of float32' }), { pairs: [2, 2.5], ratio: 2, low: 1.25, high: 2.5 });
  assert.deepEqual(scaled({ ...slower, tail: '' }), slower);
});
