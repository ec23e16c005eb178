// The pointer on one chart points at all of them: a line at the same place, and the values there above each chart, where
// they hide no data. The slider of the race points in the same way, at a moment of each arm. None of this is part of the
// figure, which would be painted anew for each move.

import { count, el, figure, seconds } from '../../components/js/dom.js';
import { axisSuffix, curveAt, curveOffset, firstIndex, layerKinds, measuredLines } from './chart_data.js';
import { indexToX, indicesOf, lowerBound, momentOn, timeAt } from './columns.js';

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
    const pointed = view && view.head && plot._fullLayout ? chartAt(event) : null;
    hovered = pointed && pointedAt(charts[pointed.i], pointed.i, pointed.x, pointed.reach, view);
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
      line.append(el('b', 'td-arm', arm), text);
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

// --- what the charts say at one place of the run: { token }, or { second } since the start of each arm's run ---
// Values come from the columns themselves, not from the points that are drawn.

// The index of a line's column at that place; null where an arm has none.
/**
 * @param {Pick<Live.ChartLine, 'at'>} line @param {Live.Place} at @param {Pick<Live.Series, 't' | 'st'>} columns @param {number} first
 * @returns {number | null}
 */
export function indexAt(line, at, columns, first) {
  const { t, st } = columns;
  if (line.at === 'sample') {
    const second = at.second ?? (at.token < t.length ? timeAt(t, at.token) : Infinity), next = lowerBound(st, second);
    if (!st.length || second > Math.max(st[st.length - 1], t.length ? t[t.length - 1] : 0)) return null;
    return next > 0 && (next >= st.length || second - st[next - 1] < st[next] - second) ? next - 1 : next;
  }
  const index = at.token ?? lowerBound(t, at.second);
  return index >= first && index < t.length ? index : null;
}

// What the other ranks or devices held at that second: the nearest sample of each. Gaps lie between them.
function othersAt({ x }, column, second) {
  const values = [];
  let nearest = null;
  x.forEach((at, n) => {
    if (at === null) { values.push(column[nearest]); nearest = null; }
    else if (nearest === null || Math.abs(at - second) < Math.abs(x[nearest] - second)) nearest = n;
  });
  return values;
}

// One line of text for each visible arm that has a value there: { arm, text }.
/** @param {Live.Chart} chart @param {number} i @param {Live.Place} at @param {Live.View} view */
function readouts(chart, i, at, view) {
  const { head, series, hidden } = view, { unit, scale } = view.units[i], kinds = layerKinds(chart, view);
  const exists = line => !line.kind || kinds.includes(line.kind), [first] = chart.lines.filter(line => !line.curve);
  const measured = measuredLines(chart).filter(exists), curves = chart.lines.filter(line => line.curve && line.at !== 'sample' && exists(line));
  return head.arms.flatMap((arm, a) => {
    const index = indexAt(first, at, series[a], firstIndex(first, head));
    if (index === null || hidden.has(arm.name) || !measured.length) return [];
    const values = measured.map(line => series[a][line.column][index] * line.scale * scale);
    const said = [values.map((value, n) => figure(value) + (measured.length > 1 ? ' ' + measured[n].kind : '')).join(' + ') + ' ' + unit];
    const drawn = curves.filter(line => arm[line.curve]);
    if (drawn.length) {
      const sum = drawn.reduce((total, line) => total + curveAt(arm[line.curve].x, arm[line.curve][line.column], index + curveOffset(line, arm)) * line.scale * scale, 0);
      const same = Math.abs(sum - values.reduce((total, value) => total + value, 0)) < 5e-4 * sum;
      said.push(drawn[0].curve === 'floor' ? 'roofline bound ' + figure(sum) : same ? 'as predicted' : 'predicted ' + figure(sum));
    }
    for (const line of chart.lines.filter(candidate => candidate.curve && candidate.at === 'sample' && arm[candidate.curve])) {
      const others = othersAt(arm[line.curve], arm[line.curve][line.column], series[a].st[index]);
      said.push(line.label + ' ' + others.map(value => figure(value * line.scale * scale)).join(', '));
    }
    if (first.at === 'token' && at.token === undefined) said.push(stepName(head) + ' ' + count(index));
    if (chart.lines.some(line => line.at === 'length')) said.push(count(arm.prompt_tokens + index) + ' tokens cached');
    return [{ arm: arm.name, text: said.join(', ') }];
  });
}

/** @param {Pick<Live.Head, 'unit'>} head */
function stepName(head) {
  return head.unit === 'forward' ? 'pass' : 'token';
}

// What a pointer at x of chart i means. On the chart of latencies a token that is annotated or cut off is hard to hit, so
// one within `reach` attracts the pointer.
/** @param {Live.Chart} chart @param {number} i @param {number} x @param {number} reach @param {Live.View} view @returns {Live.Place} */
function pointedAt(chart, i, x, reach, { head, series, hidden, axis, units, tops }) {
  const [line] = measuredLines(chart), first = firstIndex(line, head), top = tops[i] === null ? Infinity : tops[i] / line.scale / units[i].scale;
  let nearest = null, away = reach;
  if (chart.annotations) head.arms.forEach((arm, a) => {
    if (hidden.has(arm.name)) return;
    const column = series[a][line.column], marked = new Set(arm.marks.map(mark => mark.token)), place = indexToX(line, axis, series[a]);
    const [low, high] = indicesOf(line, axis, series[a], [x - reach, x + reach]);
    for (let index = Math.max(first, low); index <= Math.min(high, column.length - 1); index++) {
      const far = Math.abs(place(index) - x);
      if (far <= away && (marked.has(index) || column[index] > top)) { away = far; nearest = place(index); }
    }
  });
  if (axis === 'second') return { second: Math.max(0, nearest ?? x) };
  return { token: nearest ?? Math.max(0, Math.round(x)) };
}

/** What is known of the tokens at a place: their annotations, in words. @param {Live.Place} at @param {Live.View} view */
function annotationsAt(at, { head, series, hidden }) {
  return head.arms.flatMap((arm, a) => {
    const index = at.token ?? lowerBound(series[a].t, at.second);
    if (hidden.has(arm.name)) return [];
    return arm.marks.filter(mark => mark.token === index && index < series[a].t.length).map(mark => arm.name + ' ' + stepName(head) + ' ' + count(index) + ': ' + mark.text);
  });
}
