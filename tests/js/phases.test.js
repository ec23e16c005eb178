// The bar of a whole run: what is left of it, and how wide its parts are.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leftText, widthsOf } from '../../ui/live/js/phases.js';

test('what is left is said by what is known, and never falls to nothing', () => {
  const bar = { left_s: null, most_s: null, spent_s: 2.5, parts: [{ state: 'now' }] };
  assert.equal(leftText({ ...bar, left_s: 31.2, most_s: 60 }, 1), 'About 30 s to go');
  assert.equal(leftText({ ...bar, left_s: 3 }, 9), 'About 1 s to go');
  assert.equal(leftText({ ...bar, most_s: 130 }, 0), 'Pairs: at most 2 min');
  assert.equal(leftText(bar, 1.9), '4 s so far');
  assert.equal(leftText({ ...bar, parts: [{ state: 'waiting' }] }, 0), 'Waiting');
});

test('a part is as wide as it takes or should take', () => {
  assert.deepEqual(widthsOf([{ spent_s: 4, expected_s: 2 }, { spent_s: 1, expected_s: 6 }, { spent_s: 0, expected_s: null }]), [4, 6, 2]);
  assert.deepEqual(widthsOf([{ spent_s: 0, expected_s: null }, { spent_s: 0, expected_s: null }]), [1, 1]);
});
