// What came since the charts were last painted, drawn at once. A paint by Plotly takes a tenth of a second of a core
// that may be measured, so it is rare; until the next one the newest points of each line are added on a canvas that lies
// over the chart, on the axes and in the units of the last paint. Only what is new is drawn at each pull.

import { el } from '../../components/js/dom.js';
import { axisSuffix, firstIndex, layerKinds, lineOf, measuredLines } from './chart_data.js';
import { indexToX } from './columns.js';

// box: lies over the figure and holds a canvas for each chart.
/** @param {HTMLElement & { [plotly: string]: any }} plot @param {HTMLElement} box @param {Live.Chart[]} charts */
export function makeFresh(plot, box, charts) {
  let view = null, layers = [];

  function clear() {
    view = null; layers = [];
    box.replaceChildren();
  }

  // The charts show `newView` now: head, series, hidden, axis, units. `painted`: length of every column that they show.
  function take(newView, painted) {
    clear();
    if (!newView.head) return;
    view = newView;
    layers = charts.map((chart, i) => layer(chart, i, painted));
    draw();
  }

  // A replay has come further: these columns go on where those before ended.
  function follow(series) {
    if (view) view = { ...view, series };
    return draw();
  }

  function layer(chart, i, painted) {
    const x = plot._fullLayout['xaxis' + axisSuffix(i)], y = plot._fullLayout['yaxis' + axisSuffix(i)], ratio = window.devicePixelRatio;
    const canvas = el('canvas', ''), pen = canvas.getContext('2d'), kinds = layerKinds(chart, view);
    canvas.width = Math.ceil(x._length * ratio);
    canvas.height = Math.ceil(y._length * ratio);
    Object.assign(canvas.style, { left: x._offset + 'px', top: y._offset + 'px', width: x._length + 'px', height: y._length + 'px' });
    pen.scale(ratio, ratio);
    box.append(canvas);
    const lines = measuredLines(chart).filter(line => !line.kind || kinds.includes(line.kind)).flatMap(line => view.series.map((columns, a) => ({
      line, a, next: Math.max(firstIndex(line, view.head), painted[a][line.column] - 1), drawnPx: 0,
      shown: ![view.head.arms[a].name, line.kind].some(name => name && view.hidden.has(name)),
    })));
    return { x, y, pen, lines, scale: view.units[i].scale };
  }

  // Draw what is new. Returns whether some of it lies beyond an axis that was fitted to what was there before.
  function draw() {
    if (!view) return false;
    return layers.map(drawLayer).some(Boolean);
  }

  function drawLayer({ x, y, pen, lines, scale }) {
    let beyond = false;
    for (const curve of lines) {
      const { line, a } = curve, column = view.series[a][line.column], end = column.length;
      if (!curve.shown || end - curve.next < 2) continue;
      const place = indexToX(line, view.axis, view.series[a]), style = lineOf(view.head.arms[a], a);
      let px = x.l2p(place(curve.next)), py = y.l2p(column[curve.next] * line.scale * scale), length = curve.drawnPx;
      pen.beginPath();
      pen.moveTo(px, py);
      for (let index = curve.next + 1; index < end; index++) {
        const toX = x.l2p(place(index)), toY = y.l2p(column[index] * line.scale * scale);
        pen.lineTo(toX, toY);
        length += Math.hypot(toX - px, toY - py);
        px = toX; py = toY;
        beyond = beyond || (x.autorange && px > x._length) || (y.autorange && (py < 0 || py > y._length));
      }
      pen.strokeStyle = style.color;
      pen.lineWidth = line.width;
      pen.setLineDash(style.dash === 'solid' ? [] : style.dash.split(',').map(parseFloat));
      pen.lineDashOffset = curve.drawnPx; // the dashes go on where the last piece ended
      pen.stroke();
      curve.next = end - 1;
      curve.drawnPx = length;
    }
    return beyond;
  }

  return { take, follow, draw, clear };
}
