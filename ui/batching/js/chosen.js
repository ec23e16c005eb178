// The chosen request: what both arms did with it, in words, and its texts side by side.

import { count, el, setText } from '../../live/js/dom.js';
import { firstDifference } from '../../live/js/series.js';
import { describeRequest } from './requests.js';

/** @param {HTMLElement} box @param {(request: number) => void} choose */
export function makeChosen(box, choose) {
  let arms = [], field = null, said = null;

  function build(head, requests) {
    box.replaceChildren();
    const bar = el('p', 'td-which', ''), label = el('label', '', 'Request ');
    field = el('input', 'td-request-number');
    Object.assign(field, { type: 'number', min: 1, max: requests, value: 1 });
    field.addEventListener('input', () => {
      const number = Math.round(Number(field.value));
      if (number >= 1 && number <= requests) choose(number - 1);
    });
    label.append(field, document.createTextNode(' of ' + count(requests)));
    said = el('span', 'td-same-tokens', '');
    bar.append(label, said);
    box.append(bar);
    arms = head.arms.map(arm => {
      const section = el('section', 'arm-' + arm.name.toLowerCase()), words = el('p', 'td-words', ''), body = el('div', 'td-body', '');
      const line = el('span', '', '');
      words.append(el('span', 'td-arm', arm.name), line);
      words.setAttribute('role', 'status');
      const scroll = el('div', 'td-scroll');
      scroll.tabIndex = 0;
      scroll.setAttribute('role', 'region');
      scroll.setAttribute('aria-label', 'Text of the chosen request in arm ' + arm.name);
      scroll.append(body);
      section.append(words, scroll);
      box.append(section);
      return { line, body, shown: '' };
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
      write(arms[i].body, all[i], at);
    });
  }

  function write(body, text, difference) {
    body.replaceChildren();
    if (!text) { body.append(el('span', 'td-empty', 'Its text appears when it is done.')); return; }
    if (difference < 0) { body.append(document.createTextNode(text)); return; }
    const rest = el('span', 'td-divergent'), mark = el('mark', 'td-difference', '\u2260');
    mark.title = 'The texts differ from here on.';
    rest.append(document.createTextNode(text.slice(difference)));
    body.append(document.createTextNode(text.slice(0, difference)), mark, rest);
  }

  function clear() { box.replaceChildren(); arms = []; field = said = null; }
  return { build, show, clear };
}
