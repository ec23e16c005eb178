// The requests in words: the chosen one, with what both arms did with it and its texts side by side, and a table of all.

import { add, afterPress, badge, button, count, el, seconds, setText, tableBody, tableHead, tableRow } from '../../components/js/dom.js';
import { firstDifference } from '../../live/js/columns.js';
import { textPane, writeText } from '../../live/js/texts.js';
import { describeRequest, figuresOf, stateOf } from './requests.js';

/** @param {HTMLElement} box @param {(request: number) => void} choose */
export function makeChosen(box, choose) {
  let arms = [], field = null, said = null;

  function build(head, requests) {
    box.replaceChildren();
    const bar = add(box, 'p', 'td-which'), label = add(bar, 'label', '', 'Request ');
    field = add(label, 'input', 'td-request-number');
    Object.assign(field, { type: 'number', min: 1, max: requests, value: 1 });
    field.addEventListener('input', () => {
      const number = Math.round(Number(field.value));
      if (number >= 1 && number <= requests) choose(number - 1);
    });
    label.append(' of ' + count(requests));
    said = add(bar, 'span', 'td-same-tokens', '');
    arms = head.arms.map(arm => {
      const section = add(box, 'section', 'arm-' + arm.name.toLowerCase()), words = add(section, 'p', 'td-words');
      words.append(badge(arm.name));
      words.setAttribute('role', 'status');
      return { line: add(words, 'span', '', ''), body: textPane(section, 'Text of the chosen request in arm ' + arm.name), shown: '' };
    });
  }

  // views: as in lanes.paint; head.differ: request -> the first token that differs
  /** @param {Batch.View[]} views @param {Batch.BatchHead} head @param {number} request */
  function show(views, head, request) {
    if (!field) return;
    if (document.activeElement !== field && Number(field.value) !== request + 1) field.value = request + 1;
    const rows = views.map(view => view.batch.rows.get(request)), all = rows.map(row => row ? row.text : '');
    const ended = rows.length > 1 && rows.every(row => row && row.end !== null);
    const at = ended ? firstDifference(all[0], all[1]) : -1, token = head.differ[request];
    setText(said, !ended || rows.some(row => row.reason === 'cancelled') ? '' : token === undefined ? 'Both arms gave it the same tokens.' : 'The arms differ from its token ' + count(token) + ' on (counted from 0).');
    views.forEach((view, i) => {
      setText(arms[i].line, describeRequest(request, rows[i], view.asked.arrival_s[request], view.now, view.waits));
      const now = JSON.stringify([all[i], at, request]);
      if (arms[i].shown === now) return;
      arms[i].shown = now;
      if (all[i]) writeText(arms[i].body, all[i], at);
      else arms[i].body.replaceChildren(el('span', 'td-empty', 'Its text appears when it is done.'));
    });
  }

  function clear() { box.replaceChildren(); arms = []; field = said = null; }
  return { build, show, clear };
}

// --- the table of requests: what the canvases show, as text. It is filled while it is open ---

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
    const each = ['state', 'waited', 'for', 'TTFT', 'per token', 'end to end', 'tokens'];
    const titles = ['Request', 'Arrives', 'Prompt', 'New tokens', ...head.arms.flatMap(arm => each.map(title => arm.name + ' ' + title)), ...(both ? ['Same tokens'] : [])];
    const table = el('table'), pick = (number, request) => button('td-pick', number, 'Show request ' + number, () => choose(request));
    table.append(tableHead(titles), tableBody(rows.map(([number, ...rest], request) => tableRow(pick(number, request), rest))));
    box.replaceChildren(table);
  }

  /** @param {Batch.View[]} views @param {Batch.BatchHead} head @param {number} request @param {boolean} both */
  function cells(views, head, request, both) {
    const { asked } = views[0], texts = [String(request + 1), seconds(asked.arrival_s[request]), count(asked.prompt_tokens[request]), count(asked.max_new_tokens[request])];
    const ended = views.every(view => view.batch.rows.get(request)?.end != null);
    for (const { batch, now, waits } of views) {
      const row = batch.rows.get(request), arrival = asked.arrival_s[request], figures = figuresOf(row, arrival);
      const reasons = row ? [...new Set(row.waits.map(([, reason]) => waits[reason] || reason))] : [];
      texts.push(REQUEST_STATES[stateOf(row, arrival, now)], span(figures.waited), reasons.join(', then '), span(figures.ttft), span(figures.perToken), span(figures.total), count(figures.tokens));
    }
    if (both) texts.push(!ended ? '' : head.differ[request] === undefined ? 'yes' : 'until token ' + head.differ[request]);
    return texts;
  }

  function span(value) {
    return value === null ? '\u2013' : value < 1 ? (1000 * value).toPrecision(3) + ' ms' : seconds(value);
  }

  function clear() { latest = null; shown = ''; box.replaceChildren(); }
  return { take, clear };
}
