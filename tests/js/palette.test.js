// The palette: how what an entry adds is called, so that its seconds at the start are found.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf } from '../../ui/compare/js/rank.js';

test('choices are named in the order of the words, as Python does', () => {
  assert.equal(keyOf({ choices: { compile: 'default', cache: 'static' }, whole: false }), 'cache=static compile=default');
  assert.equal(keyOf({ choices: { loop: 'custom' }, whole: true }), 'whole loop=custom');
});
