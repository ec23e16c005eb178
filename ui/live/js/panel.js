// The live panel of a run of one prompt: passes what is pulled to charts, texts and figures.

import { add, find, redrawn, scrolled, setText, tableBody, tableHead, tableRow } from '../../components/js/dom.js';
import { makeAnnotations } from './annotations.js';
import { makeCharts } from './charts.js';
import { appendReply, csvOf, cursorOf, emptySeries, replaceText, saveText } from './columns.js';
import { makeDistribution } from './distribution.js';
import { makeRace } from './race.js';
import { bare, makeRunPanel } from './run_panel.js';
import { makeSlide } from './slide.js';
import { makeCrossing, makeParts } from './step_time.js';
import { titled } from './terms.js';
import { makeTexts } from './texts.js';

const FORCED_PACE = new URLSearchParams(location.search).get('pace');
const QUIET_MS = 75, WAIT_MS = 60;  // tokens arrive every 50 ms

const charts = makeCharts(settings.charts);
const texts = makeTexts(find('.td-texts'));
const race = makeRace(find('.td-race'), find('.td-scrub'), find('.td-clock'), find('.td-speed'), texts, (at, columns) => {
  if (slide.at(at)) return;
  charts.only(columns);
  charts.pointAt(at);
});
const slide = makeSlide(find('.td-slide'), find('.td-present'), () => panel.head && { head: panel.head, series, ended: panel.over }, race);
/** @type {Parameters<typeof makeDistribution>[3]} */
const latencies = () => panel.head && [panel.head, series, charts.zoom];
const distribution = makeDistribution(find('.td-distribution'), find('.td-spread'), settings.fewest, latencies);
const stepTime = makeParts(find('.td-parts'), {
  of: arm => arm.step, title: 'Where the time of a step goes', hint: 'the line under a part is the time that its bytes need',
  whole: 'Measured', numbers: 'Parts of a step as numbers', lacking: 'Not traced: ',
});
const start = makeParts(find('.td-start'), {
  of: arm => arm.start, title: 'Where the time of the start goes', whole: 'Together', numbers: 'Parts of a start as numbers',
});
const annotations = makeAnnotations(find('.td-annotations'));
const crossing = makeCrossing(find('.td-crossing'));

// What a change costs in quality: a row for each text that both arms have read, and one for all of them.
const QUALITY_COLUMNS = [
  ['title', 'Text', ''], ['positions', 'Positions', 'tokens that both arms were asked to predict'],
  ['a', 'Perplexity A', ''], ['b', 'Perplexity B', ''], ['ratio', 'B / A', 'perplexity of B / perplexity of A'],
  ['kl', 'KL, nats', 'mean divergence of B from A'], ['largest', 'Largest KL', 'at a single position'],
  ['agreement', 'Agreement', 'positions at which both find the same token most likely'],
  ['divergence', 'First divergence', 'first position at which they do not'],
];
const qualityBox = find('.td-quality');
const quality = redrawn(qualityBox, /** @param {Live.QualityView | null} view */ view => {
  if (!view) return;
  const head = tableHead(QUALITY_COLUMNS.map(([, name, what]) => {
    const cell = titled('span', '', name);
    if (!cell.querySelector('button')) cell.title = what;
    return cell;
  }));
  const rows = view.rows.map((row, i) => tableRow(row.title, QUALITY_COLUMNS.slice(1).map(([key]) => row[key]), i === view.rows.length - 1 ? 'td-all-texts' : ''));
  add(qualityBox, 'h3', '', 'Quality on given texts');
  qualityBox.append(scrolled('td-quality-rows', 'Quality by text', [head, tableBody(rows)]).box);
  if (view.progress) add(qualityBox, 'p', 'td-quality-progress', view.progress);
  if (!view.compared) return;
  const line = add(qualityBox, 'p'), link = add(line, 'a', 'td-compared', 'The comparison of these arms');
  link.href = '?' + new URLSearchParams({ run: view.compared });
  line.append(' names this cost beside its gain.');
});

/** @type {Live.Series[]} */
let series = [];
let closing = false, behind = false, quiet = false;  // closing: the run has ended, and its texts are read as a whole

const panel = makeRunPanel({
  page: 'compare', run: '#run', code: '#code-', links: settings.links, bar: !settings.replays,
  question() {
    const cur = series.length ? series.map(cursorOf) : [[0, 0, 0], [0, 0, 0]];
    if (closing) cur.forEach(cursor => { cursor[2] = 0; });
    return { cur, wait_ms: quiet && !closing && !behind ? WAIT_MS : 0 };
  },
  begin(/** @type {Live.Head} */ head) {
    series = head.arms.map(emptySeries);
    texts.build(head.arms, head.unit);
    element.classList.toggle('single', head.arms.length === 1);
  },
  show(/** @type {Live.Head} */ head, reply, broken) {
    quality.take(head.quality);
    element.classList.toggle('td-reads', Boolean(head.quality));
    const disturbed = head.arms.filter(arm => arm.spoilers.length).map(arm => arm.name);
    setText(find('.td-interference'), disturbed.length ? '\u25B2 Interference or noise (' + disturbed.join(' and ') + ')' : '');
    annotations.take(head.arms.map(({ name, marks }) => ({ name, marks })), head.unit);
    stepTime.take(head.arms);
    start.take(head.arms);
    crossing.take(head);
    if (broken) bare(!head.arms.some(arm => arm.prompt_tokens));
    charts.take(head, series);
  },
  grow(/** @type {Live.Delta} */ reply) {
    let grew = false;
    behind = false;
    reply.lanes.forEach((part, i) => {
      if (!series[i]) return;
      if (closing && part.cfirst === 0) replaceText(series[i], part);
      const got = appendReply(series[i], part);
      texts.append(i, got.added);
      grew = grew || got.tokens > 0 || got.samples > 0;
      behind = behind || part.n - part.first >= settings.most;
    });
    if (grew) { charts.grow(); distribution.follow(); slide.follow(); }
    if (window.tokendynoProbe) window.tokendynoProbe.arrived(series.map(columns => columns.t.length));
    return behind ? 'more' : 'wait';
  },
  whole(/** @type {Live.Delta} */ reply) {
    if (closing) return reply.lanes.every(part => part.cfirst === 0);
    closing = true;
    return false;
  },
  end() {
    texts.finish(series, panel.head.texts);
    charts.end();
    race.ready(panel.head, series);
    slide.draw();
    if (settings.replays && !slide.open && !matchMedia('(prefers-reduced-motion: reduce)').matches) race.toggle();
  },
  clear() {
    series = []; closing = false; behind = false;
    element.classList.remove('td-reads');
    find('.td-texts').replaceChildren();
    for (const part of [race, quality, annotations, stepTime, start, crossing]) part.clear();
    charts.reset(panel.run);
  },
  written: () => series,
  // A pull is then answered just after tokens have arrived, every other time that they do: as fresh as more pulls at any
  // moment would be.
  pace(quietly, ended) {
    quiet = FORCED_PACE ? !ended && FORCED_PACE === 'quiet' : quietly;
    charts.pace(...(quiet ? [60, 1000, 6000] : [10, 300, 1000]));
    panel.puller.every(...(quiet ? [QUIET_MS, true] : [60, false]));
  },
});

// Of an ended run nothing is pulled any more, but texts may have been read by its arms since: by an ablation, in another tab.
async function learnQuality() {
  const { run, head, over } = panel, unread = over && !document.hidden && head.verdict.gate && !head.verdict.gate_run;
  if (!unread) return;
  const reply = JSON.parse(await server.pull({ run, version: -1, cur: series.map(cursorOf), anew: true }).catch(() => '{}'));
  if (!reply.head || run !== panel.run || !panel.over) return;
  head.verdict = reply.head.verdict;
  head.card = reply.head.card;
  panel.verdict.take(head, reply.status);
  panel.showCard(false);
}

find('.td-csv').addEventListener('click', () => { if (panel.head) saveText(csvOf(panel.head, series), 'tokendyno-' + panel.run + '.csv'); });
find('.td-png').addEventListener('click', () => { if (panel.head) charts.picture('tokendyno-' + panel.run); });
if (settings.links) {
  window.addEventListener('tokendyno-measured', learnQuality);
  document.addEventListener('visibilitychange', learnQuality);
}
element.classList.add('td-live');
element.live = { get series() { return series; }, get head() { return panel.head; } };
panel.start();
