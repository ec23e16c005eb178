// The charts of pinned arms over each other: the live panel's charts, over the columns that its pulls return.

import { onTheme } from '../../components/js/theme.js';
import { find, setText } from '../../live/js/dom.js';
import { appendReply, cursorOf, emptySeries } from '../../live/js/series.js';
import { makePointer } from '../../live/js/pointer.js';
import { makeFresh } from '../../live/js/fresh.js';
import { makeCharts } from '../../live/js/charts.js';
import { answerTo } from './state.js';

const pointer = makePointer(find('.td-plot'), find('.td-moments'), find('.td-noted'), settings.charts);
const fresh = makeFresh(find('.td-plot'), find('.td-fresh'), settings.charts);
const tools = { outliers: find('.td-outliers'), axes: find('.td-axis'), whole: find('.td-whole') };
const charts = makeCharts(find('.td-plot'), settings.charts, tools, pointer, fresh);
const pulledRuns = new Map();  // by id: { head, series }, of runs that have ended
const MAX_HELD = 8;

// A whole run; null where there is none.
async function pullRun(run) {
  if (pulledRuns.has(run)) return pulledRuns.get(run);
  let series = [], head = null, version = -1;
  for (;;) {
    const cur = series.length ? series.map(cursorOf) : [];
    const reply = await answerTo(server.pull({ run, version, cur }));
    if (reply.error) return null;
    if (reply.head) { head = reply.head; version = reply.version; if (!series.length) series = head.arms.map(emptySeries); }
    let grew = 0;
    reply.lanes.forEach((part, i) => { grew += appendReply(series[i], part).tokens; });
    if (reply.ended || !grew) {
      const found = { head, series };
      if (reply.ended) pulledRuns.set(run, found);
      if (pulledRuns.size > MAX_HELD) pulledRuns.delete(pulledRuns.keys().next().value);
      return found;
    }
  }
}

// Arms that are timed alike share the charts; what is left out is said. `wanted()`: whether this is still asked for.
/** @param {History.PinnedArm[]} arms @param {() => boolean} wanted */
export async function drawOverlay(arms, wanted) {
  setText(find('.td-drawn'), '');
  const found = await Promise.all(arms.map(async ({ run, arm, label }) => {
    const got = await pullRun(run), at = got && got.head ? got.head.arms.findIndex(one => one.name === arm) : -1;
    return at < 0 || !got.series[at].t.length ? { label } : { label, head: got.head, arm: got.head.arms[at], series: got.series[at] };
  }));
  if (!wanted()) return;
  const drawn = found.filter(one => one.head), unit = drawn.length ? drawn[0].head.unit : 'token', alike = drawn.filter(one => one.head.unit === unit);
  const left = found.filter(one => !alike.includes(one)).map(one => one.label);
  setText(find('.td-drawn'), left.length ? 'Not drawn: ' + left.join(', ') + ' (no ' + (unit === 'forward' ? 'forward passes' : 'tokens of one prompt') + ' were timed)' : '');
  find('.td-stage').hidden = !alike.length;
  if (!alike.length) return;
  const labels = new Set(alike.map(one => one.head.memory_label));
  const head = {
    unit, memory_label: labels.size === 1 ? [...labels][0] : 'memory', max_new_tokens: Math.max(...alike.map(one => one.head.max_new_tokens)),
    arms: alike.map(one => ({ ...one.arm, name: one.label, line: Number(one.label) - 1 })),
  };
  charts.reset(arms.map(one => one.pin).join());
  charts.take(head, alike.map(one => one.series));
  charts.end();
}

find('.td-png').addEventListener('click', () => charts.picture('tokendyno-pins'));
onTheme(() => charts.touch());
new ResizeObserver(() => charts.touch()).observe(element);
