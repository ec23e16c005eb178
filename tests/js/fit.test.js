// Where the sliders and the chart of Fit end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axisEnd, nearest, stopsTo } from '../../ui/fit/js/chart.js';

test('a slider stops at powers of two and half way between, and at the end', () => {
  assert.deepEqual(stopsTo(20), [1, 2, 3, 4, 6, 8, 12, 16, 20]);
  assert.deepEqual(stopsTo(1), [1]);
  assert.deepEqual([0, 5, 7, 1000].map(value => stopsTo(20)[nearest(stopsTo(20), value)]), [1, 6, 8, 20]);
});

test('the axis holds all bars that are not far beyond the chosen card, and that unless the bars would vanish beside it', () => {
  const end = (memory_bytes) => axisEnd({ cards: [{ chosen: true, memory_bytes }] }, [{ parts: [60, 40] }, { parts: [10] }]);
  assert.deepEqual([10, 50, 200, 10_000].map(bytes => Math.round(end(bytes))), [30, 112, 224, 250]);
});
