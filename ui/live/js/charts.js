// Draws the charts that ui/live/charts declares: one figure with a plot for each, since one figure paints in two
// thirds of the time of three. `uirevision` keeps a user's zoom while values stream in.

import { css, find, onTheme, setText } from '../../components/js/dom.js';
import { look, plotly, withoutMarkup } from '../../components/js/plot.js';
import { axisSuffix, chartTraces, chartUnit, curveLabels, firstIndex, measuredLines } from './chart_data.js';
import { lengthsOf, outlierTop, translated } from './columns.js';
import { makeFresh } from './fresh.js';
import { makePointer } from './pointer.js';

// A chart that is narrower than TIGHT_PX has its legend below its title, not beside it.
const NARROW_PX = 760, NARROW_HEIGHT = 250, TIGHT_PX = 420;
// A longer title would lie over that of the next chart: a stored run may call its memory anything.
const TITLE_LETTERS = 40, LETTER_PX = 7.5;  // five letters for its unit
// The charts of a wide page take about a quarter of the window, so that texts and charts share one screen.
const wideHeight = () => Math.round(Math.min(420, Math.max(200, 0.26 * window.innerHeight)));
const FIGURE_OPTIONS = {
  responsive: true, displaylogo: false, showTips: false, showSendToCloud: false, displayModeBar: false,
};

// The charts of a panel, with their buttons and pointer: .td-plot, .td-fresh, .td-moments, .td-noted, .td-axis, .td-whole and
// .td-outliers lie in it.
/** @param {Live.Chart[]} charts */
export function makeCharts(charts) {
  /** @type {HTMLElement & { [plotly: string]: any }} */
  const plot = find('.td-plot');
  const tools = { outliers: find('.td-outliers'), axes: find('.td-axis'), whole: find('.td-whole') };
  const pointer = makePointer(plot, find('.td-moments'), find('.td-noted'), charts), fresh = makeFresh(plot, find('.td-fresh'), charts);
  let run = '', head = null, series = [], part = null, units = [], tops = [], blank = [], hidden = new Set(), ended = false, revision = 0;
  /** @type {Live.Axis} */
  let axis = 'token';
  let zoom = null, resets = 0, inFull = false;
  let begun = false, ready = false, heard = false, dirty = true, painting = false, notBefore = 0, soonest = 0, rest = 10, leastMs = 300, mostMs = 1000;
  const paintMs = [], titles = [];

  function reset(newRun) {
    if (newRun) begin();
    run = newRun; head = null; series = []; part = null; units = []; hidden = new Set(); ended = false; dirty = true;
    zoom = null; inFull = false;
    pointer.clear();
    fresh.clear();
  }

  // A user zoomed one chart, or went back: all charts follow.
  function relayout(event) {
    charts.forEach((chart, i) => {
      const name = 'xaxis' + axisSuffix(i), range = event[name + '.range'] || [event[name + '.range[0]'], event[name + '.range[1]']];
      if (event[name + '.autorange']) zoom = null;
      else if (head && range[0] !== undefined) zoom = range.map(Number);
    });
    repaint();
  }

  function repaint() {
    dirty = true;
    paint(true);
  }

  /** Tokens or seconds, for all charts: what is zoomed stays the same stretch of the run. @param {Live.Axis} next */
  function switchTo(next) {
    if (next === axis) return;
    axis = next;
    zoom = zoom && translated(zoom, axis, series);
    repaint();
  }

  // The top of a chart's vertical axis where outliers would flatten the rest, in the chart's unit; null for all else.
  /** @param {Live.Chart} chart @param {number} i @returns {number | null} */
  function topOf(chart, i) {
    if (!head || inFull || chart.unit !== 'ms') return null;
    const [line] = measuredLines(chart), top = outlierTop(series.map(columns => columns[line.column]), firstIndex(line, head));
    return top === null ? null : top * line.scale * units[i].scale;
  }

  // The top of the whole run's latencies while only a part of it is drawn, so that the axis stands still; null for all else.
  /** @param {Live.Chart} chart @param {number} i @returns {number | null} */
  function steadyTop(chart, i) {
    if (!head || !part || chart.unit !== 'ms') return null;
    const [line] = measuredLines(chart), first = firstIndex(line, head);
    const largest = series.reduce((most, columns) => columns[line.column].slice(first).reduce((one, other) => Math.max(one, other), most), 0);
    return largest ? 1.05 * largest * line.scale * units[i].scale : null;
  }

  function traces() {
    const view = {
      head, series, part, ended, hidden, axis, zoom, units,
      ink: css('--body-text-color'), neutral: css('--body-text-color-subdued'),
    };
    units = charts.map((chart, i) => head ? chartUnit(chart, view, zoom && units[i]) : null);
    tops = charts.map(topOf);
    tools.outliers.toggleAttribute('disabled', !inFull && tops.every(top => top === null));  // always there: a spike moves nothing
    tools.outliers.setAttribute('aria-pressed', String(inFull));
    tools.whole.hidden = zoom === null;
    for (const button of tools.axes.querySelectorAll('button')) button.setAttribute('aria-pressed', String(button.dataset.axis === axis));
    setText(tools.axes.firstElementChild, head && head.unit === 'forward' ? 'Passes' : 'Tokens');
    const drawn = chartTraces(charts, { ...view, units, tops });
    const seen = drawn.filter(trace => !trace.meta?.extent && trace.y.some(Number.isFinite)).map(trace => trace.yaxis);
    blank = charts.map((_, i) => !part && !seen.includes('y' + axisSuffix(i)));
    return drawn;
  }

  function layout() {
    const stacked = element.clientWidth < NARROW_PX, n = charts.length, gap = stacked ? 0.13 : 0.05;
    const size = (1 - gap * (n - 1)) / n, width = element.clientWidth * (stacked ? 1 : size), tight = width < TIGHT_PX, text = css('--body-text-color'), grid = css('--border-color-primary');
    const figure = {
      uirevision: run + '/' + resets, datarevision: ++revision, ...look(11, '--body-text-color'),
      height: stacked ? NARROW_HEIGHT * n : wideHeight(),
      margin: { t: tight ? 56 : 36, b: 34, l: 44, r: 8, autoexpand: false }, hovermode: false, dragmode: 'zoom',
      annotations: [],
    };
    charts.forEach((chart, i) => {
      const from = i * (size + gap), x = stacked ? [0, 1] : [from, from + size], y = stacked ? [1 - from - size, 1 - from] : [0, 1];
      const unit = chart.unit === 'bytes' ? units[i] && units[i].unit : chart.unit;
      /** @type {{ title: string, note?: string }} */
      const wording = (head && head.unit === 'forward' && chart.encoder) || chart;
      const label = withoutMarkup(wording.title || (head ? head.memory_label : 'memory')).slice(0, TITLE_LETTERS);
      const title = wording.title || (label.length + 5) * LETTER_PX < width ? label : 'memory';
      const top = tops[i] ?? steadyTop(chart, i);
      titles[i] = tight ? '' : title[0].toUpperCase() + title.slice(1);  // what values cover
      const scale = { gridcolor: grid, zeroline: false, linecolor: grid, ticks: '', automargin: false, showticklabels: !!head && !wording.note };
      figure['xaxis' + axisSuffix(i)] = {
        ...scale, domain: x, anchor: 'y' + axisSuffix(i), uirevision: [run, resets, axis].join('/'), ...(zoom ? { range: [...zoom], autorange: false } : {}),
        title: { text: axis === 'second' ? 'seconds' : head && head.unit === 'forward' ? 'forward pass' : 'token', standoff: 2 }, nticks: 6,
      };
      figure['yaxis' + axisSuffix(i)] = {
        ...scale, domain: y, anchor: 'x' + axisSuffix(i), rangemode: chart.from_zero ? 'tozero' : 'normal', nticks: 6, tickformat: ',~r',
        ...(top === null ? {} : { range: [0, top], autorange: false }),
        ...(blank[i] ? { showticklabels: false } : {}),  // nothing to read yet
      };
      if (head) figure.annotations.push(...curveLabels(chart, i, { head, series, ended, axis, zoom, units }, text));
      figure.annotations.push({
        text: '<b>' + title[0].toUpperCase() + title.slice(1) + '</b>' + (unit ? ', ' + unit : ''), showarrow: false, xref: 'paper', yref: 'paper',
        x: x[0], y: y[1], xanchor: 'left', yanchor: 'bottom', yshift: tight ? 32 : 4, xshift: -4, font: { size: 12 },
      });
      if (wording.note) figure.annotations.push({
        text: withoutMarkup(wording.note), showarrow: false, xanchor: 'center', xref: 'paper', yref: 'paper', x: (x[0] + x[1]) / 2, y: (y[0] + y[1]) / 2,
      });
      const left = tight && (stacked || i < n - 1);  // the last one's may be wider than its chart, and would be cut
      const legend = { orientation: 'h', x: left ? x[0] - (stacked ? 0 : 0.02) : x[1], y: y[1], xanchor: left ? 'left' : 'right', yanchor: 'bottom', bgcolor: 'rgba(0,0,0,0)', font: { size: 11 }, itemwidth: 30 };
      figure['legend' + axisSuffix(i)] = legend;
    });
    return figure;
  }

  async function paint(force) {
    if (!ready || !dirty || painting || document.hidden || (!force && performance.now() < notBefore)) return;
    if (!element.offsetParent) return;
    dirty = false;
    const begin = performance.now(), columns = part || series, painted = columns.map(lengthsOf), drawn = traces();
    const view = { head, series, hidden, axis, units, tops, titles };  // of this paint: another run may begin meanwhile
    painting = true;
    try {
      await Plotly.react(plot, drawn, layout(), FIGURE_OPTIONS);
    } finally {
      painting = false;
    }
    listen();
    if (view.series === series) {
      pointer.take(view);
      fresh.take({ ...view, series: columns }, painted);
    }
    requestAnimationFrame(() => setTimeout(() => {
      paintMs.push(performance.now() - begin);
      if (paintMs.length > 5) paintMs.shift();
      soonest = performance.now() + leastMs;
      notBefore = performance.now() + Math.max(leastMs, Math.min(mostMs, Math.min(...paintMs) * rest));
      if (window.tokendynoProbe) window.tokendynoProbe.painted(paintMs[paintMs.length - 1]);
    }, 0));
    noteShown();
  }

  // Values came: they are drawn at once, and painted when the time has come.
  function grow() {
    dirty = true;
    if (fresh.draw()) notBefore = Math.min(notBefore, soonest);
    noteShown();
  }

  // For benchmarks: the next frame shows all that is known now.
  function noteShown() {
    if (!window.tokendynoProbe || painting || !head) return;
    const shown = series.map(columns => columns.t.length);
    requestAnimationFrame(() => setTimeout(() => window.tokendynoProbe.shows(shown), 0));
  }

  function toggle(event) {
    const name = event.data[event.curveNumber].meta.legend;
    if (!hidden.delete(name)) hidden.add(name);
    repaint();
    return false;
  }

  // There is something to draw.
  async function begin() {
    if (begun) return;
    begun = true;
    await plotly();
    ready = true;
    setInterval(() => { if (element.isConnected) paint(false); }, 33);
    paint(true);
  }

  // After the first paint, since a figure takes no listeners before.
  function listen() {
    if (heard) return;
    heard = true;
    plot.on('plotly_relayout', relayout);
    plot.on('plotly_legendclick', toggle);
    plot.on('plotly_legenddoubleclick', () => false);
    tools.outliers.addEventListener('click', () => { inFull = !inFull; repaint(); });
    for (const button of tools.axes.querySelectorAll('button')) {
      button.addEventListener('click', () => switchTo(/** @type {Live.Axis} */ (button.dataset.axis)));
    }
    tools.whole.addEventListener('click', () => { zoom = null; resets++; repaint(); });
  }

  const touch = () => { dirty = true; paint(false); };
  onTheme(touch);
  new ResizeObserver(touch).observe(element);
  return {
    reset, grow, pointAt: pointer.pointAt,
    take(newHead, newSeries) { head = newHead; series = newSeries; dirty = true; },
    end() { ended = true; dirty = true; paint(true); },
    async picture(name) { await plotly(); return Plotly.downloadImage(plot, { format: 'png', filename: name, scale: 2, width: plot.clientWidth, height: plot.clientHeight }); },
    get zoom() { return zoom && (axis === 'token' ? zoom : translated(zoom, 'token', series)); },
    // Draw only these columns, on the axes of the whole run; null: all.
    only(columns) {
      if (part === columns) return;
      const further = part && columns && columns.every((arm, a) => arm.t.length >= part[a].t.length);
      part = columns;
      dirty = true;
      if (further && fresh.follow(columns)) notBefore = Math.min(notBefore, soonest);
      paint(!further);
    },
    // After a paint of t ms the charts rest for t * newRest ms, within limits; what comes beyond an axis ends a rest of
    // `least` ms. The fastest of the latest paints counts: the others waited for a core.
    pace(newRest, least, most) { rest = newRest; leastMs = least; mostMs = most; },
  };
}
