// The palette: what is found first by what was typed, and how what an entry adds is called.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf, ranked } from '../../ui/compare/js/rank.js';

test('choices are named in the order of the words, as Python does', () => {
  assert.equal(keyOf({ choices: { compile: 'default', cache: 'static' }, whole: false }), 'cache=static compile=default');
  assert.equal(keyOf({ choices: { loop: 'custom' }, whole: true }), 'whole loop=custom');
});

const entry = (axis, name, more = {}) => ({
  axis, axis_name: axis, title: name, name, group: '', summary: '', words: '', aliases: [], state: 'runs', whole: false, choices: { [axis]: name }, ...more,
});
const ENTRIES = [
  entry('', 'Lowest latency', { whole: true, words: 'fast, with a static cache' }),
  entry('cache', 'offloaded_static', { aliases: ['cache_implementation="offloaded_static"'] }),
  entry('cache', 'static', { aliases: ['StaticCache', 'cache_implementation="static"'], summary: 'fast' }),
  entry('dtype', 'float16', { aliases: ['torch_dtype=float16', 'fp16'] }),
  entry('quantization', 'int8 of one', { state: 'cannot run' }),
  entry('quantization', 'int8 of another'),
];

test('what is called so comes first, whatever people call it, and what cannot run behind the rest', () => {
  const first = { static: 'static', StaticCache: 'static', 'cache_implementation="static"': 'static', fp16: 'float16', 'torch_dtype=float16': 'float16', int8: 'int8 of another', lowest: 'Lowest latency' };
  for (const [typed, name] of Object.entries(first)) assert.equal(ranked(ENTRIES, typed)[0].name, name, typed);
  assert.deepEqual(ranked(ENTRIES, 'fast').map(one => one.name), ['Lowest latency', 'static']);
  assert.deepEqual(ranked(ENTRIES, 'static nonsense'), []);
  assert.equal(ranked(ENTRIES, '').length, ENTRIES.length);
});
