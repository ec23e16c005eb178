// The page: shows what the address asks for, whenever it is seen, asked otherwise, or gone back to.

import { afterPress, find, setText } from '../../components/js/dom.js';
import { leaveBeside, showBeside, showTray } from './beside.js';
import { showCount, showEmpty, showPages, showRows } from './rows.js';
import { showSearch } from './search.js';
import { FIELDS, complain, question, readAddress, state } from './state.js';

const UNDER_WAY_MS = 2000;
let asking = 0, later = 0, listed = null;  // `listed`: what the list shows, as the server answered

export async function show() {
  const number = ++asking, isCurrent = () => number === asking;
  clearTimeout(later);
  if (!element.offsetParent) return;
  showSearch();
  showTray();
  const beside = state.beside && state.pins.length > 0;
  find('.td-list').hidden = beside;
  find('.td-search').hidden = beside;
  if (beside) { await showBeside(isCurrent); return; }
  find('.td-beside').hidden = true;
  leaveBeside();
  await showList(isCurrent);
}

async function showList(isCurrent) {
  const { at, of, ...rest } = state, fields = { model: of };
  for (const key of FIELDS) if (key !== 'of') fields[key] = rest[key];
  let reply;
  if (listed === null) setText(find('.td-count'), 'Reading the history\u2026');
  try {
    reply = await question({ ask: 'find', fields, page: at, zone: -new Date().getTimezoneOffset() });
  } catch (error) {
    if (isCurrent()) { complain(error); if (listed === null) setText(find('.td-count'), ''); }
    return;
  }
  if (!isCurrent()) return;
  complain(null);
  setText(find('.td-unkept'), reply.trouble ? '\u25B2 ' + reply.trouble : '');
  find('.td-take-in').hidden = !(reply.imports && reply.kept);
  listed = reply;
  drawList();
  if (reply.found.rows.some(row => row.status === 'running')) later = setTimeout(refresh, UNDER_WAY_MS);
}

// What goes on is looked at again, but not under the hands of somebody who types in the list.
function refresh() {
  if (find('.td-edit')) later = setTimeout(refresh, UNDER_WAY_MS);
  else if (!document.hidden) show();
}

const drawList = afterPress(find('.td-list'), () => {
  const { found: runs, team } = listed;
  showRows(runs, team);
  showTray();
  showCount(runs);
  showEmpty(listed);
  showPages(runs);
  element.dataset.shown = String(runs.total);
});

element.classList.add('td-history');
window.addEventListener('popstate', () => {
  if (new URLSearchParams(location.search).get('view') !== 'history') return;
  readAddress();
  show();
});
document.addEventListener('visibilitychange', () => { if (!document.hidden) show(); });
let seenWidth = 0;
new ResizeObserver(entries => {  // the page was opened, or its tab
  const width = Math.round(entries[0].contentRect.width);
  if (width && !seenWidth) show();
  seenWidth = width;
}).observe(element);
