// How high a chart of lines is, and which intervals go on above it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heightOf } from '../../ui/components/js/lines.js';

const line = (values, low, high) => ({ title: '', values, low, high, texts: values.map(String) });

test('an interval is within the axis as long as the lines can still be read, else it is marked where it is cut', () => {
  const near = heightOf([line([10, 12], [8, 9], [14, 19])]);
  assert.ok(near.range[1] > 19 && near.range[0] === 0);
  assert.deepEqual(near.cut, [[]]);
  const far = heightOf([line([10, 12], [8, 1], [14, 900]), line([11, null], [10, null], [12, null])]);
  assert.ok(far.range[1] > 14 && far.range[1] < 30, 'the lines are not flattened');
  assert.deepEqual(far.cut, [[1], []]);
});
