// What the panels of all runs have in common: a run is opened by its id, pulled until it has ended, and its status, phases,
// verdict, figures, ledger, remarks and links are shown. What a panel shows besides is passed to `makeRunPanel`.

import { badge, el, find, redrawn, setText } from '../../components/js/dom.js';
import { makeLedger } from './ledger.js';
import { makePhaseBar, makePhases } from './phases.js';
import { makePuller } from './pull.js';
import { makeDetails, makeTiles } from './tiles.js';
import { makeCard, makeVerdict, nextStep } from './verdict.js';

const STATUS_LABELS = {
  queued: 'Queued', running: 'Running', done: 'Done',
  failed: 'Failed', cancelled: 'Stopped', interrupted: 'Interrupted',
};
const LEVEL_LABELS = { note: 'Note: ', fallback: '\u25B2 Fallback: ', blocked: '\u2715 Blocked: ' };
const WATCHED = 'What was recorded appears here: open a story, or a link to a run.';
const SMALL = matchMedia('(max-width: 760px), (max-height: 800px)');
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);

/**
 * `empty`: what is said without a run, where the page does not say it; `run` and `code`: selectors of the button and of the scripts, which end in the arm's
 * letter; `links`: whether the run is the page's, which names it in its address; `bar`: whether it has one for the whole run.
 * question   what a pull asks besides run and version
 * begin      the first head of a run has come
 * show       each head, also the first
 * grow       columns have come; 'more' asks for more at once
 * whole      whether a run that has ended has been read to its end
 * end        it has
 * clear      another run is opened
 * written    by arm { t: { length } }: how many tokens there are
 * pace       quiet: the machine that is measured is this one, so that drawing takes time from the model
 * tick       ten times a second
 * @param {{
 *   page: 'compare' | 'batching', empty?: string, run: string, code: string, links?: boolean, bar?: boolean,
 *   question: () => object, begin: (head: any) => void, show: (head: any, reply: any, broken: boolean) => void,
 *   grow: (reply: any) => 'more' | 'wait', whole?: (reply: any) => boolean, end: () => void, clear: () => void,
 *   written: () => { t: { length: number } }[], pace: (quiet: boolean, ended: boolean) => void, tick?: () => void,
 * }} panel
 */
export function makeRunPanel({ page, empty, run: runButton, code, links = true, bar: hasBar = true, question, begin, show, grow, whole, end, clear, written, pace, tick }) {
  const phases = makePhases(find('.td-progress')), bar = makePhaseBar(find('.td-run-bar'), settings.acts ? stop : null);
  const verdict = makeVerdict(), card = makeCard(find('.td-answer'), settings.acts ? next => nextStep(next, runButton, code) : null);
  const tiles = makeTiles(find('.td-tiles')), details = makeDetails(find('.td-rows'));
  const ledger = makeLedger(find('.td-ledger'), () => (links ? 'files/' + encodeURIComponent(run) + '.py' : ''));
  const remarks = makeRemarks(find('.td-remarks'));
  const puller = makePuller(ask, take, text => setText(find('.td-connection'), text));
  let run = '', titled = '', version = -1, asks = 0, answered = 0, over = false, quiet = false, head = null;

  async function ask() {
    const number = ++asks, reply = JSON.parse(await server.pull({ run, version, ...question() }));
    return { ...reply, number };
  }

  function take(reply) {
    if (reply.error) { refuse(reply.error); return 'over'; }
    if (reply.run !== run || over) return over ? 'over' : 'wait';
    if (reply.head && reply.number > answered) { answered = reply.number; takeHead(reply); }
    if (!head) return 'wait';
    setText(find('.td-status'), STATUS_LABELS[reply.status] || reply.status);
    if (reply.status === 'queued' && reply.queue) setText(find('.td-message'), reply.queue);
    element.dataset.status = reply.status;
    setText(find('.td-unkept'), reply.trouble ? '\u25B2 ' + reply.trouble : '');
    puller.atLeast(reply.every_ms);
    const next = grow(reply);
    if (!reply.ended) return next;
    if (whole && !whole(reply)) return 'more';
    over = true;
    setPace(true);
    phases.tick(written(), true);
    end();
    element.dataset.over = reply.run;
    trigger('finished', { run: reply.run, status: reply.status });
    return 'over';
  }

  function takeHead(reply) {
    const first = !head;
    head = reply.head;
    version = reply.version;
    if (first) {
      begin(head);
      phases.build(head.arms);
      bare(false);
    }
    setText(find('.td-title'), head.title);
    setText(find('.td-note'), head.note);
    phases.take(head);
    bar.take(hasBar ? head.bar : null, reply.ended);
    verdict.take(head, reply.status);
    showCard(['queued', 'running'].includes(reply.status) && head.arms.length === 2 && !head.quality);
    entitle(head.heading || bar.title());
    tiles.take(head.arms, head.differences);
    details.take(head.arms);
    ledger.take(head.arms, head.digest);
    remarks.take(head.arms.map(({ name, verdicts, spoilers, notes }) => ({ name, verdicts, spoilers, notes })));
    const broken = reply.status === 'failed' || reply.status === 'interrupted';
    setText(find('.td-failure'), broken ? head.message || 'The run ended unexpectedly.' : '');
    setText(find('.td-message'), broken ? '' : head.message);
    show(head, reply, broken);
    setPace(reply.ended);
    if (!first || reply.ended || !settings.acts || !SMALL.matches) return;
    // in a small window verdict, texts and charts of a run that goes on take the place of what was asked for
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    find('.td-run-bar').scrollIntoView({ block: 'start', behavior: still ? 'auto' : 'smooth' });
  }

  function stop() {
    /** @type {HTMLButtonElement | null} */ (document.querySelector(runButton.replace('run', 'stop')))?.click();
  }

  /** @param {boolean} waits for the first pair, so that there is only a sentence */
  function showCard(waits) {
    card.take(head.card, waits ? find('.td-sentence').textContent : '', page === 'compare' ? head.arms : []);
    find('.td-verdict').classList.toggle('td-carded', Boolean(head.card) || waits);
    setText(find('.td-sure'), head.card ? head.card.confidence : '');
  }

  function setPace(ended) {
    quiet = !ended && head.quiet && LOCAL;
    pace(quiet, ended);
  }

  /** There is no such run, or it cannot be read. @param {string} text */
  function refuse(text) {
    setText(find('.td-status'), '');
    find('.td-empty-run').hidden = true;
    setText(find('.td-failure'), text);
    bare(true);
    trigger('finished', { run, status: 'unknown' });
  }

  /** The title of the browser's tab: what is shown, or how long it still goes. @param {string} text */
  function entitle(text) {
    if (!links || text === titled) return;
    titled = text;
    window.tokendynoAddress?.title(page, text);
  }

  /** @param {string} id '' for none */
  function open(id) {
    run = id || '';
    head = null; version = -1; answered = asks; over = false;
    for (const key of ['status', 'over']) delete element.dataset[key];
    element.dataset.run = run;
    for (const part of find('.td-verdict').querySelectorAll('.td-head > span:not(.td-link, .td-files), .td-sure, .td-unkept')) setText(part, '');
    setText(find('.td-failure'), '');
    find('.td-verdict').classList.remove('td-carded');
    for (const part of [bar, phases, verdict, card, tiles, details, ledger, remarks]) part.clear();
    clear();
    if (links) window.dispatchEvent(new Event('tokendyno-run'));
    entitle('');
    find('.td-empty-run').hidden = Boolean(run) || !links;
    if (!run) bare(true);
    if (links) showLink(run, page);
    if (run) puller.begin(); else puller.stop();
  }

  function clock() {
    if (!element.isConnected) return;
    if (head && !over) entitle(head.heading || bar.title());
    if (head && !over && !document.hidden) { bar.tick(); phases.tick(written()); }
    tick?.();
    setTimeout(clock, quiet && !tick ? 1000 : 100);
  }

  return {
    puller, verdict, showCard, get run() { return run; }, get head() { return head; }, get over() { return over; },
    start() {
      watch('value', () => { if ((props.value || '') !== run) open(props.value); });
      bare(true);  // until there is something to show
      const said = settings.acts ? empty : WATCHED;
      if (said) setText(find('.td-empty-run'), said);
      open(props.value);
      clock();
    },
  };
}

/** Verdicts of the rules, possible interference with the measurement, and notes of the worker. @param {HTMLElement} box */
function makeRemarks(box) {
  const add = (name, level, text) => {
    const line = el('li', level + ' arm-' + name.toLowerCase());
    line.append(badge(name), text);
    box.append(line);
  };
  return redrawn(box, (/** @type {Pick<Live.ArmHead, 'name' | 'verdicts' | 'spoilers' | 'notes'>[]} */ arms) => {
    for (const { name, verdicts, spoilers, notes } of arms) {
      for (const verdict of verdicts) if (verdict.level !== 'ok') add(name, verdict.level, LEVEL_LABELS[verdict.level] + verdict.reason);
      for (const text of spoilers) add(name, 'fallback', '\u25B2 ' + text);
      for (const text of notes) add(name, 'note', LEVEL_LABELS.note + text);
    }
  });
}

/** A bare panel shows no instruments: there is no run, or it failed before its first token. @param {boolean} on */
export function bare(on) {
  element.classList.toggle('td-bare', on);
}

/** @param {string} selector @returns {HTMLAnchorElement} */
function link(selector) {
  return find(selector);
}

/** The address bar names the run as well. '': there is none. @param {string} run @param {string} page */
function showLink(run, page) {
  find('.td-link').hidden = find('.td-files').hidden = !run;
  if (!run) return;
  const permanent = new URL(location.href);
  permanent.search = '?' + new URLSearchParams({ run });
  permanent.hash = '';
  link('.td-permalink').href = permanent.href;
  setText(find('.td-permalink'), permanent.search);
  link('.td-kept').href = '?' + new URLSearchParams({ view: 'history', q: run });
  find('.td-kept').hidden = run.startsWith('recorded-');  // it came with tokendyno
  for (const ending of ['dyno', 'html', 'json']) {
    link('.td-file-' + ending).href = 'files/' + encodeURIComponent(run) + '.' + ending;
  }
  find('.td-file-html').hidden = page === 'batching';  // a report is of one prompt
  const here = new URL(location.href), view = here.searchParams.get('view') || window.tokendynoAddress?.page;
  const names = window.tokendynoAddress?.note(page, run) ?? true;
  if (!names || (view && view !== 'compare' && view !== 'batching')) return;  // or it is another page's address
  here.searchParams.set('run', run);
  for (const key of ['worth', 'sweep', 'a', 'b', 'tokens', 'batch_size', 'prompt_tokens']) here.searchParams.delete(key);
  if (here.href !== location.href) history.replaceState(history.state, '', here.href);
}

find('.td-copy').addEventListener('click', async () => {
  const { href } = link('.td-permalink');
  try {
    await navigator.clipboard.writeText(href);
    setText(find('.td-copied'), 'Copied');
  } catch {
    window.prompt('Copy this link:', href);
  }
  setTimeout(() => setText(find('.td-copied'), ''), 2000);
});
