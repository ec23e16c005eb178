// The table of requests: what the canvases show, as text. It is filled while it is open.

import { count, el, seconds } from '../../live/js/dom.js';
import { afterPress } from '../../components/js/press.js';
import { figuresOf, stateOf } from './requests.js';

const REQUEST_STATES = { later: 'not yet arrived', queued: 'waits', prefill: 'prefill', decode: 'decode', done: 'done', cancelled: 'cancelled' };

/** @param {HTMLDetailsElement} details @param {HTMLElement} box @param {(request: number) => void} choose */
export function makeTable(details, box, choose) {
  let latest = null, shown = '', drawnAt = 0;
  const redraw = afterPress(box, draw);
  details.addEventListener('toggle', () => { drawnAt = 0; draw(); });

  function take(views, head, over) {
    latest = { views, head, over };
    redraw();
  }

  function draw() {
    if (!latest || !details.open || (!latest.over && performance.now() - drawnAt < 1000)) return;
    drawnAt = performance.now();
    const { views, head } = latest, { asked } = views[0], both = views.length > 1;
    const rows = asked.arrival_s.map((_, request) => cells(views, head, request, both)), now = JSON.stringify(rows);
    if (now === shown) return;
    shown = now;
    const table = el('table', ''), top = el('thead', ''), line = el('tr', ''), body = el('tbody', '');
    const titles = ['Request', 'Arrives', 'Prompt', 'New tokens'];
    const each = ['state', 'waited', 'for', 'TTFT', 'per token', 'end to end', 'tokens'];
    for (const title of titles) line.append(heading(title));
    for (const arm of head.arms) for (const title of each) line.append(heading(arm.name + ' ' + title));
    if (both) line.append(heading('Same tokens'));
    top.append(line);
    rows.forEach((row, request) => {
      const tr = el('tr', '');
      row.forEach((text, i) => {
        if (i) { tr.append(el('td', '', text)); return; }
        const cell = el('th', ''), button = el('button', 'td-pick', text);
        cell.scope = 'row';
        button.type = 'button';
        button.setAttribute('aria-label', 'Show request ' + text);
        button.addEventListener('click', () => choose(request));
        cell.append(button);
        tr.append(cell);
      });
      body.append(tr);
    });
    table.append(top, body);
    box.replaceChildren(table);
  }

  function heading(text) {
    const cell = el('th', '', text);
    cell.scope = 'col';
    return cell;
  }

  /** @param {Batch.View[]} views @param {Batch.BatchHead} head @param {number} request @param {boolean} both */
  function cells(views, head, request, both) {
    const { asked } = views[0], found = [String(request + 1), seconds(asked.arrival_s[request]), count(asked.prompt_tokens[request]), count(asked.max_new_tokens[request])];
    const ended = views.every(view => view.batch.rows.get(request)?.end != null);
    for (const { batch, now, waits } of views) {
      const row = batch.rows.get(request), arrival = asked.arrival_s[request], figures = figuresOf(row, arrival);
      const reasons = row ? [...new Set(row.waits.map(([, reason]) => waits[reason] || reason))] : [];
      found.push(REQUEST_STATES[stateOf(row, arrival, now)], span(figures.waited), reasons.join(', then '), span(figures.ttft), span(figures.perToken), span(figures.total), count(figures.tokens));
    }
    if (both) found.push(!ended ? '' : head.differ[request] === undefined ? 'yes' : 'until token ' + head.differ[request]);
    return found;
  }

  function span(value) {
    return value === null ? '\u2013' : value < 1 ? (1000 * value).toPrecision(3) + ' ms' : seconds(value);
  }

  function clear() { latest = null; shown = ''; box.replaceChildren(); }
  return { take, clear };
}
