// The pointer on one chart points at all of them: a line at the same place, and the values there above each chart, where
// they hide no data. The slider of the race points in the same way, at a moment of each arm. None of this is part of the
// figure, which would be painted anew for each move.

import { count, el, seconds } from './dom.js';
import { momentOn } from './windows.js';
import { axisSuffix } from './chart_data.js';
import { annotationsAt, pointedAt, readouts, stepName } from './readout.js';

const REACH_PX = 5;

// box: lies over the figure and holds what is drawn. noted: below it, for the texts of annotations.
/**
 * @param {HTMLElement & { [plotly: string]: any }} plot @param {HTMLElement} box @param {HTMLElement} noted @param {Live.Chart[]} charts
 */
export function makePointer(plot, box, noted, charts) {
  let hovered = null, moment = null, view = null;

  const axesOf = i => [plot._fullLayout['xaxis' + axisSuffix(i)], plot._fullLayout['yaxis' + axisSuffix(i)]];

  // The chart under the pointer, and x on its axis; null beside all.
  function chartAt(event) {
    const frame = plot.getBoundingClientRect(), px = event.clientX - frame.left, py = event.clientY - frame.top;
    for (let i = 0; i < charts.length; i++) {
      const [x, y] = axesOf(i);
      if (px < x._offset || px > x._offset + x._length || py < y._offset || py > y._offset + y._length) continue;
      const at = px - x._offset;
      return { i, x: x.p2l(at), reach: Math.abs(x.p2l(at + REACH_PX) - x.p2l(at)) };
    }
    return null;
  }

  function move(event) {
    const found = view && view.head && plot._fullLayout ? chartAt(event) : null;
    hovered = found && pointedAt(charts[found.i], found.i, found.x, found.reach, view);
    draw();
  }

  function leave() {
    if (!hovered) return;
    hovered = null;
    draw();
  }

  function mark(i, place, className) {
    const [x, y] = axesOf(i);
    if (place === null || place < x.range[0] || place > x.range[1]) return [];
    const line = el('i', 'td-moment ' + className);
    Object.assign(line.style, { left: x._offset + x.l2p(place) + 'px', top: y._offset + 'px', height: y._length + 'px' });
    return [line];
  }

  // The place in words, on the axis below a chart.
  function label(i, place, text) {
    const [x, y] = axesOf(i), tag = el('span', 'td-place', text), at = Math.min(x._length, Math.max(0, x.l2p(place)));
    Object.assign(tag.style, { left: x._offset + at + 'px', top: y._offset + y._length + 1 + 'px', transform: 'translateX(-' + 100 * at / x._length + '%)' });
    return tag;
  }

  function values(i, at) {
    const said = readouts(charts[i], i, at, view), [x, y] = axesOf(i);
    if (!said.length) return [];
    const lines = el('div', 'td-readout');
    Object.assign(lines.style, { left: x._offset - 4 + 'px', width: x._length + 8 + 'px', bottom: 'calc(100% - ' + y._offset + 'px)' });
    if (view.titles[i]) lines.append(el('strong', '', view.titles[i]));
    for (const { arm, text } of said) {
      const line = el('span', 'arm-' + arm.toLowerCase());
      line.append(el('b', 'td-arm', arm), document.createTextNode(text));
      lines.append(line);
    }
    return [lines];
  }

  function draw() {
    const at = hovered || (moment === null ? null : { second: moment }), shown = [];
    const able = at && view && view.head && plot._fullLayout && plot._fullLayout.xaxis;
    if (able) charts.forEach((chart, i) => {
      if (!view.series.some(columns => columns.t.length || columns.st.length)) return;
      const place = hovered ? hovered.token ?? hovered.second : view.axis === 'second' ? moment : null;
      if (hovered) shown.push(...mark(i, place, ''));
      else view.series.forEach((columns, a) => shown.push(...mark(i, momentOn(view.axis, columns, moment), 'arm-' + view.head.arms[a].name.toLowerCase())));
      if (place !== null) shown.push(label(i, place, view.axis === 'second' ? seconds(place) : stepName(view.head) + ' ' + count(place)));
      shown.push(...values(i, at));
    });
    box.replaceChildren(...shown);
    const texts = able ? annotationsAt(at, view) : [];
    noted.hidden = !texts.length;
    noted.replaceChildren(...texts.map(text => el('span', '', text)));
  }

  plot.addEventListener('pointermove', move);
  plot.addEventListener('pointerdown', event => (event.pointerType === 'touch' ? move(event) : leave()));
  plot.addEventListener('pointerleave', leave);
  return {
    // What is drawn now: head, series, hidden, axis, units, tops; titles: of charts whose values lie over them. Called after each paint.
    take(newView) { view = newView; if (hovered || moment !== null) draw(); },
    // A moment of the race; null: none.
    pointAt(at) { moment = at; draw(); },
    clear() { hovered = null; moment = null; view = null; draw(); },
  };
}
