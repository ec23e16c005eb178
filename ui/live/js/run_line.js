// The line of a run that every panel has: its status, what became of it, and its permanent link.

import { find, setText } from './dom.js';

const RUN_STATUS_LABELS = {
  queued: 'Queued', running: 'Running', done: 'Done',
  failed: 'Failed', cancelled: 'Stopped', interrupted: 'Interrupted',
};
export const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);

/** Of a panel without a run, where nothing is run. */
export const WATCHED = 'What was recorded appears here: open a story, or a link to a run.';

// `queue`: where a queued run stands.
/** @param {Live.Delta['status']} status @param {string} queue */
export function showStatus(status, queue) {
  setText(find('.td-status'), RUN_STATUS_LABELS[status] || status);
  if (status === 'queued' && queue) setText(find('.td-message'), queue);
  element.dataset.status = status;
}

// A bare panel shows no instruments: there is no run, or it failed before its first token.
/** @param {boolean} on */
export function bare(on) {
  element.classList.toggle('td-bare', on);
}

// There is no such run, or it cannot be read.
/** @param {string} run @param {string} text */
export function refuse(run, text) {
  for (const name of ['status', 'empty-run']) setText(find('.td-' + name), '');
  setText(find('.td-failure'), text);
  bare(true);
  trigger('finished', { run, status: 'unknown' });
}

// Another run is opened ('': none): nothing is left of the one before.
/** @param {string} run @param {string[]} names */
export function clearLine(run, names) {
  for (const key of ['status', 'over']) delete element.dataset[key];
  element.dataset.run = run;
  for (const name of ['status', 'title', 'note', 'failure', 'message', 'connection', 'unkept', ...names]) setText(find('.td-' + name), '');
  find('.td-remarks').replaceChildren();
  delete find('.td-remarks').dataset.shown;
}

// What of the runs is not being kept at this moment; '' while all is well.
/** @param {string} trouble */
export function showUnkept(trouble) {
  setText(find('.td-unkept'), trouble ? '\u25B2 ' + trouble : '');
}

// Whether the run broke; then the message is its cause.
/** @param {Live.Delta['status']} status @param {string} message */
export function showMessage(status, message) {
  const broken = status === 'failed' || status === 'interrupted';
  setText(find('.td-failure'), broken ? message || 'The run ended unexpectedly.' : '');
  setText(find('.td-message'), broken ? '' : message);
  return broken;
}

/** @param {string} selector @returns {HTMLAnchorElement} */
function link(selector) {
  return find(selector);
}

// The address bar names the run as well. '': there is none.
/** @param {string} run */
export function showLink(run) {
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
  find('.td-file-html').hidden = !find('.td-plot');  // a report is of one prompt
  const here = new URL(location.href), view = here.searchParams.get('view') || window.tokendynoAddress?.page;
  if (view && view !== 'compare' && view !== 'batching') {  // another page is shown, whose address it is
    window.tokendynoAddress?.note(element.closest('#batch-live') ? 'batching' : 'compare', run);
    return;
  }
  here.searchParams.set('run', run);
  for (const key of ['worth', 'sweep']) here.searchParams.delete(key);
  if (here.href !== location.href) history.replaceState(history.state, '', here.href);
}

async function copyLink() {
  const { href } = link('.td-permalink');
  try {
    await navigator.clipboard.writeText(href);
    setText(find('.td-copied'), 'Copied');
  } catch {
    window.prompt('Copy this link:', href);
  }
  setTimeout(() => setText(find('.td-copied'), ''), 2000);
}

find('.td-copy').addEventListener('click', copyLink);
