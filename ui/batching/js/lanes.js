// The instruments of each arm: slots, Gantt chart, map of pages. A request is chosen by a click or with the arrow keys;
// what is under the pointer is said in words beside it.

import { add, badge, el, setText } from '../../components/js/dom.js';
import { describePages, describeSlots, drawGantt, drawPages, drawSlots, timeAtX } from './canvases.js';
import { describeRequest } from './requests.js';

const LEGEND = [['queued', 'waits'], ['prefill', 'prefill'], ['decode', 'decode'], ['idle', 'idle slot or padding'], ['cancelled', 'cancelled']];

/** @param {HTMLElement} box @param {HTMLElement} tip @param {(request: number) => void} choose */
export function makeLanes(box, tip, choose) {
  let lanes = [];

  /** @param {Batch.BatchHead} head */
  function build(head) {
    box.replaceChildren();
    lanes = head.arms.map((arm, i) => {
      const section = el('section', 'td-lane arm-' + arm.name.toLowerCase()), title = el('h3', '', '');
      title.append(badge(arm.name), el('b', '', arm.kind), ' ', legend());
      const slots = figure('Slots at work', 'of ' + head.slots + ', by step');
      const gantt = figure('Requests', 'by arrival, over seconds');
      const pages = figure('KV pages', arm.kind === 'continuous' ? 'who holds them, over seconds' : '');
      gantt.canvas.tabIndex = 0;
      gantt.canvas.setAttribute('role', 'application');
      gantt.canvas.setAttribute('aria-label', 'Gantt chart of the requests of arm ' + arm.name + '. Arrow keys choose a request, which is described below; the table of requests holds the same.');
      slots.canvas.setAttribute('role', 'img');
      slots.canvas.setAttribute('aria-label', 'Slots at useful work and idle slots of arm ' + arm.name + ' by step; the figures above give their share.');
      pages.canvas.setAttribute('role', 'img');
      pages.canvas.setAttribute('aria-label', 'Map of the KV pages of arm ' + arm.name + ' by step: free, or held by which request.');
      pages.figure.classList.toggle('td-map', arm.kind === 'continuous');
      const none = add(pages.figure, 'p', 'td-empty', '');
      section.append(title, slots.figure, gantt.figure, pages.figure);
      box.append(section);
      const lane = { i, slots, gantt, pages, none, fields: {}, view: null, hovered: -1 };
      listen(lane);
      return lane;
    });
  }

  function legend() {
    const list = el('span', 'td-legend');
    for (const [kind, text] of LEGEND) {
      add(list, 'span').append(el('i', 'td-key ' + kind), text);
    }
    return list;
  }

  function figure(title, note) {
    const strip = el('div', 'td-strip');
    add(strip, 'p', 'td-caption').append(el('b', '', title), ' ' + note);
    return { figure: strip, canvas: add(strip, 'canvas') };
  }

  function listen(lane) {
    const over = (part, words) => {
      const { canvas } = lane[part];
      canvas.addEventListener('pointermove', event => {
        const where = canvas.getBoundingClientRect(), x = event.clientX - where.left, y = event.clientY - where.top;
        show(event, lane.fields[part] && lane.view ? words(x, y) : '');
      });
      canvas.addEventListener('pointerleave', () => { tip.hidden = true; if (lane.hovered >= 0) { lane.hovered = -1; draw(lane); } });
    };
    over('slots', x => describeSlots(lane.view.batch, lane.view.slots, timeAtX(lane.fields.slots, lane.view.end, x)));
    over('pages', (x, y) => describePages(lane.fields.pages, lane.view, x, y));
    over('gantt', (x, y) => {
      const request = requestAt(lane, y);
      if (request !== lane.hovered) { lane.hovered = request; draw(lane); }
      return request < 0 ? '' : wordsOf(lane, request);
    });
    lane.gantt.canvas.addEventListener('click', event => {
      const request = requestAt(lane, event.clientY - lane.gantt.canvas.getBoundingClientRect().top);
      if (request >= 0) choose(request);
    });
    lane.gantt.canvas.addEventListener('keydown', event => {
      if (!lane.view) return;
      const last = lane.view.asked.arrival_s.length - 1, now = lane.view.chosen;
      const to = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + 10, PageUp: now - 10, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(Math.max(0, Math.min(last, to)));
    });
  }

  function requestAt(lane, y) {
    const { gantt } = lane.fields;
    if (!gantt || y >= gantt.bottom) return -1;
    return Math.max(0, Math.min(lane.view.asked.arrival_s.length - 1, Math.floor(y / gantt.high)));
  }

  function wordsOf(lane, request) {
    const { batch, asked, now, waits } = lane.view;
    return describeRequest(request, batch.rows.get(request), asked.arrival_s[request], now, waits);
  }

  // The words stand beside the pointer, inside the panel.
  function show(event, text) {
    tip.hidden = !text;
    if (!text) return;
    setText(tip, text);
    const frame = box.getBoundingClientRect(), wide = Math.min(360, frame.width - 8);
    tip.style.maxWidth = wide + 'px';
    const x = Math.min(event.clientX - frame.left + 14, frame.width - tip.offsetWidth - 4);
    tip.style.left = Math.max(0, x) + 'px';
    tip.style.top = event.clientY - frame.top + 18 + 'px';
  }

  function draw(lane) {
    const { view } = lane;
    if (!view) return;
    lane.fields.slots = drawSlots(lane.slots.canvas, view);
    lane.fields.gantt = drawGantt(lane.gantt.canvas, { ...view, hovered: lane.hovered });
    lane.pages.canvas.hidden = !view.pages.length;
    setText(lane.none, view.pages.length ? '' : view.paged ? 'The pages appear when the run begins.' : 'No pages: each static batch has one padded cache, as long as its longest request.');
    if (view.pages.length) lane.fields.pages = drawPages(lane.pages.canvas, view);
  }

  /** views: one for each arm, see drawGantt, drawSlots and drawPages @param {Batch.View[]} views */
  function paint(views) {
    lanes.forEach((lane, i) => { lane.view = views[i]; draw(lane); });
  }

  function clear() { lanes = []; box.replaceChildren(); tip.hidden = true; }
  return { build, paint, clear };
}
