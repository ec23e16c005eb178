// What a change costs in quality: a row for each text that both arms have read, and one for all of them.

import { el } from './dom.js';
import { titled } from './terms.js';

const QUALITY_COLUMNS = [
  ['title', 'Text', ''], ['positions', 'Positions', 'tokens that both arms were asked to predict'],
  ['a', 'Perplexity A', ''], ['b', 'Perplexity B', ''], ['ratio', 'B / A', 'perplexity of B / perplexity of A'],
  ['kl', 'KL, nats', 'mean divergence of B from A'], ['largest', 'Largest KL', 'at a single position'],
  ['agreement', 'Agreement', 'positions at which both find the same token most likely'],
  ['divergence', 'First divergence', 'first position at which they do not'],
];

/** @param {HTMLElement} box */
export function makeQuality(box) {
  let shown = '';

  /** @param {Live.QualityView | null} found */
  function take(found) {
    const now = JSON.stringify(found);
    if (now === shown) return;
    shown = now;
    box.hidden = !found;
    box.replaceChildren();
    if (!found) return;
    box.append(el('h3', '', 'Quality on given texts'));
    box.append(table(found.rows));
    if (found.progress) box.append(el('p', 'td-quality-progress', found.progress));
    if (!found.compared) return;
    const line = el('p', ''), link = el('a', 'td-compared', 'The comparison of these arms');
    link.href = '?' + new URLSearchParams({ run: found.compared });
    line.append(link, document.createTextNode(' names this cost beside its gain.'));
    box.append(line);
  }

  function table(rows) {
    const scroll = el('div', 'td-quality-rows'), whole = el('table', ''), head = el('tr', ''), top = el('thead', ''), body = el('tbody', '');
    scroll.tabIndex = 0;
    scroll.setAttribute('role', 'region');
    scroll.setAttribute('aria-label', 'Quality by text');
    for (const [, name, what] of QUALITY_COLUMNS) {
      const cell = titled('th', '', name);
      cell.scope = 'col';
      if (!cell.querySelector('button')) cell.title = what;
      head.append(cell);
    }
    top.append(head);
    for (const row of rows) {
      const tr = el('tr', row === rows[rows.length - 1] ? 'td-all-texts' : ''), name = el('th', '', row.title);
      name.scope = 'row';
      tr.append(name, ...QUALITY_COLUMNS.slice(1).map(([key]) => el('td', '', row[key])));
      body.append(tr);
    }
    whole.append(top, body);
    scroll.append(whole);
    return scroll;
  }

  function clear() { shown = ''; box.hidden = true; box.replaceChildren(); }
  return { take, clear };
}
