// Annotations: what may explain a token's latency. A shape in neutral ink at its token on the latency chart, filled
// for the first arm and hollow for the second, and the same in words below the charts.

import { add, badge, count, redrawn } from '../../components/js/dom.js';
import { firstIndex, measuredLines } from './chart_data.js';
import { indexToX } from './columns.js';

const ANNOTATION_SHAPES = {
  compile: ['diamond', '\u25C6'], recompile: ['diamond', '\u25C6'], graph_skip: ['x', '\u2715'], window: ['triangle-down', '\u25BC'],
  cache: ['square', '\u25A0'], gc: ['circle', '\u25CF'], throttle: ['star', '\u2605'], foreign: ['cross', '\u271A'],
};
const MAX_LISTED = 3;

// One trace for each annotated arm; each annotation stands on its token's value, on the spike that it explains. Their
// texts are read below the charts, where they hide nothing.
/** @param {Live.Chart} chart @param {object} axes @param {Live.View} view */
export function annotationTraces(chart, axes, { head, series, hidden, axis, ink }) {
  const line = measuredLines(chart)[0], first = firstIndex(line, head), out = [];
  head.arms.forEach((arm, a) => {
    const column = series[a][line.column];
    const byToken = new Map(arm.marks.filter(({ token }) => token >= first && token < column.length).reverse().map(mark => [mark.token, mark.kind]));
    if (!byToken.size) return;
    const tokens = [...byToken.keys()].sort((a, b) => a - b), shapes = tokens.map(token => ANNOTATION_SHAPES[byToken.get(token)][0]);
    out.push({
      ...axes, mode: 'markers', x: tokens.map(indexToX(line, axis, series[a])), y: tokens.map(token => column[token] * line.scale),
      marker: { symbol: shapes.map(shape => shape + (a % 2 ? '-open' : '')), size: 9, color: ink, line: { width: 1.2, color: ink } },
      hoverinfo: 'skip', showlegend: false, visible: !hidden.has(arm.name), meta: { chart: chart.key, annotations: arm.name },
    });
  });
  return out;
}

/** The line below the charts lists the first few of each arm; its tooltip lists all. @param {HTMLElement} box */
export function makeAnnotations(box) {
  return redrawn(box, (/** @type {Pick<Live.ArmHead, 'name' | 'marks'>[]} */ arms, /** @type {Live.Head['unit']} */ unit) => {
    const worded = mark => (unit === 'forward' ? 'pass ' : 'token ') + count(mark.token) + ': ' + mark.text;
    box.title = arms.flatMap(arm => arm.marks.map(mark => arm.name + ' ' + worded(mark))).join('\n');
    for (const { name, marks } of arms) {
      if (!marks.length) continue;
      const listed = marks.slice(0, MAX_LISTED).map(mark => ANNOTATION_SHAPES[mark.kind][1] + ' ' + worded(mark)), unlisted = marks.length - MAX_LISTED;
      add(box, 'span', 'td-annotation arm-' + name.toLowerCase()).append(badge(name), listed.join(', ') + (unlisted > 0 ? ' and ' + count(unlisted) + ' more' : ''));
    }
  });
}
