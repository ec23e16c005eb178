// Axes and labels of a slide's chart.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { roundTicks, spreadOut } from '../../ui/live/js/slide_chart.js';

test('ticks are round, few, and inside of the axis', () => {
  assert.deepEqual(roundTicks(0, 15), [0, 5, 10, 15]);
  assert.deepEqual(roundTicks(0, 84.6), [0, 25, 50, 75]);
  assert.deepEqual(roundTicks(16100, 21900), [18000, 20000]);
  for (const high of [0.013, 0.9, 1, 7.3, 64, 255, 4095]) assert.ok(roundTicks(0, high).length >= 3 && roundTicks(0, high).length <= 5);
});

test('labels that would lie on each other move apart and stay inside', () => {
  assert.deepEqual(spreadOut([10, 50], 20, 0, 100), [10, 50]);
  assert.deepEqual(spreadOut([52, 50], 20, 0, 100), [70, 50]);
  assert.deepEqual(spreadOut([99, 98, 97], 20, 0, 100), [100, 80, 60]);
});
