// Draws the charts that ui/live/charts declares: one figure with a plot for each, since one figure paints in two
// thirds of the time of three. `uirevision` keeps a user's zoom while values stream in.

// A chart that is narrower than TIGHT_PX has its legend below its title, not beside it.
const NARROW_PX = 760, NARROW_HEIGHT = 250, TIGHT_PX = 420;
// The charts of a wide page take about a quarter of the window, so that texts and charts share one screen.
const wideHeight = () => Math.round(Math.min(420, Math.max(200, 0.26 * window.innerHeight)));
const FIGURE_OPTIONS = {
  responsive: true, displaylogo: false, showTips: false, showSendToCloud: false,
  modeBarButtonsToRemove: ['select2d', 'lasso2d', 'zoomIn2d', 'zoomOut2d', 'autoScale2d'],
  toImageButtonOptions: { filename: 'tokendyno', scale: 2 },
};

function makeCharts(plot, charts, outliers, moments) {
  let run = '', head = null, series = [], units = [], hidden = new Set(), ended = false, revision = 0;
  let windows = charts.map(() => null), inFull = false;
  let dirty = true, painting = false, notBefore = 0, rest = 0.6, minRestMs = 0, maxRestMs = 400;
  const paintMs = [];

  function reset(newRun) {
    run = newRun; head = null; series = []; units = []; hidden = new Set(); ended = false; dirty = true;
    windows = charts.map(() => null); inFull = false;
  }

  // A user zoomed one chart, or went back: all charts follow.
  function relayout(event) {
    charts.forEach((chart, i) => {
      const name = 'xaxis' + axisSuffix(i), range = event[name + '.range'] || [event[name + '.range[0]'], event[name + '.range[1]']];
      if (event[name + '.autorange']) windows = charts.map(() => null);
      else if (head && range[0] !== undefined) windows = linkedWindows(charts, i, range.map(Number), { head, series });
    });
    dirty = true;
    paint(true);
  }

  // The top of a chart's vertical axis where outliers would flatten the rest, in the chart's unit; null for all else.
  function topOf(chart, i) {
    if (!head || inFull || chart.unit !== 'ms') return null;
    const [line] = measuredLines(chart), top = outlierTop(series.map(columns => columns[line.column]), firstIndex(line, head));
    return top === null ? null : top * line.scale * units[i].scale;
  }

  function traces() {
    const view = {
      head, series, ended, hidden, windows,
      ink: css('--body-text-color'), neutral: css('--body-text-color-subdued'),
    };
    units = charts.map((chart, i) => head ? chartUnit(chart, view, windows[i] && units[i]) : null);
    const tops = charts.map(topOf);
    outliers.hidden = !inFull && tops.every(top => top === null);
    return chartTraces(charts, { ...view, units, tops });
  }

  function layout() {
    const stacked = element.clientWidth < NARROW_PX, n = charts.length, gap = stacked ? 0.13 : 0.05;
    const size = (1 - gap * (n - 1)) / n, tight = element.clientWidth * (stacked ? 1 : size) < TIGHT_PX, text = css('--body-text-color'), grid = css('--border-color-primary');
    const figure = {
      uirevision: run, datarevision: ++revision, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      font: { color: text, size: 11, family: css('--font') || 'sans-serif' }, height: stacked ? NARROW_HEIGHT * n : wideHeight(),
      margin: { t: tight ? 50 : 30, b: 34, l: 44, r: 8, autoexpand: false }, hovermode: 'x unified', dragmode: 'zoom',
      modebar: { bgcolor: 'rgba(0,0,0,0)', color: css('--body-text-color-subdued'), activecolor: text },
      hoverlabel: { bgcolor: css('--background-fill-primary'), bordercolor: grid, font: { color: text } }, annotations: [],
    };
    charts.forEach((chart, i) => {
      const from = i * (size + gap), x = stacked ? [0, 1] : [from, from + size], y = stacked ? [1 - from - size, 1 - from] : [0, 1];
      const unit = chart.unit === 'bytes' ? units[i] && units[i].unit : chart.unit;
      const wording = (head && head.unit === 'forward' && chart.encoder) || chart;
      const title = withoutMarkup(wording.title || (head ? head.memory_label : 'memory'));
      const axis = { gridcolor: grid, zeroline: false, linecolor: grid, ticks: '', automargin: false, showticklabels: !!head && !wording.note };
      figure['xaxis' + axisSuffix(i)] = {
        ...axis, domain: x, anchor: 'y' + axisSuffix(i), ...(windows[i] ? { range: [...windows[i]], autorange: false } : {}), title: { text: wording.x_title, standoff: 2 }, nticks: 6,
        unifiedhovertitle: { text: wording.hover || chart.hover }, hoverformat: chart.x_title === 'seconds' ? '.2f' : ',d',
      };
      figure['yaxis' + axisSuffix(i)] = {
        ...axis, domain: y, anchor: 'x' + axisSuffix(i), rangemode: chart.from_zero ? 'tozero' : 'normal', nticks: 6, tickformat: ',~r',
        ...(topOf(chart, i) === null ? {} : { range: [0, topOf(chart, i)], autorange: false }),
      };
      if (head) figure.annotations.push(...curveLabels(chart, i, { head, windows, units }, text));
      figure.annotations.push({
        text: '<b>' + title[0].toUpperCase() + title.slice(1) + '</b>' + (unit ? ', ' + unit : ''), showarrow: false, xref: 'paper', yref: 'paper',
        x: x[0], y: y[1], xanchor: 'left', yanchor: 'bottom', yshift: tight ? 26 : 4, xshift: -4, font: { size: 12 },
      });
      if (wording.note) figure.annotations.push({
        text: withoutMarkup(wording.note), showarrow: false, xanchor: 'center', xref: 'paper', yref: 'paper', x: (x[0] + x[1]) / 2, y: (y[0] + y[1]) / 2,
      });
      const legend = { orientation: 'h', x: x[tight ? 0 : 1], y: y[1], xanchor: tight ? 'left' : 'right', yanchor: 'bottom', bgcolor: 'rgba(0,0,0,0)', font: { size: 11 }, itemwidth: 30 };
      if (!i) figure.legend = legend;
      else if (chart.lines.some(line => line.kind)) figure.legend2 = legend;
    });
    return figure;
  }

  async function paint(force) {
    if (!dirty || painting || document.hidden || !element.offsetParent) return;
    if (!force && performance.now() < notBefore) return;
    painting = true; dirty = false;
    const begin = performance.now(), shown = series.map(columns => columns.t.length);
    try {
      const drawn = traces();
      await Plotly.react(plot, drawn, layout(), FIGURE_OPTIONS);
    } finally {
      painting = false;
    }
    requestAnimationFrame(() => setTimeout(() => {
      paintMs.push(performance.now() - begin);
      if (paintMs.length > 5) paintMs.shift();
      notBefore = performance.now() + Math.max(minRestMs, Math.min(maxRestMs, Math.min(...paintMs) * rest));
      if (window.tokendynoProbe) window.tokendynoProbe.painted(shown, paintMs[paintMs.length - 1]);
    }, 0));
  }

  function toggle(event) {
    const name = event.data[event.curveNumber].meta.legend;
    if (!hidden.delete(name)) hidden.add(name);
    dirty = true;
    paint(true);
    return false;
  }

  // Lines over the charts at a moment of the run, one for each arm; null: none. They are no part of the figure, which
  // would be painted anew for each of them.
  function pointAt(at) {
    const shown = [];
    if (at !== null && head && plot._fullLayout) charts.forEach((chart, i) => series.forEach((columns, a) => {
      const place = momentOn(chart, columns, head.arms[a], at), axis = plot._fullLayout['xaxis' + axisSuffix(i)], y = plot._fullLayout['yaxis' + axisSuffix(i)];
      if (place === null || !axis || place < axis.range[0] || place > axis.range[1]) return;
      const line = el('i', 'td-moment arm-' + head.arms[a].name.toLowerCase());
      Object.assign(line.style, { left: axis._offset + axis.l2p(place) + 'px', top: y._offset + 'px', height: y._length + 'px' });
      shown.push(line);
    }));
    moments.replaceChildren(...shown);
  }

  async function start() {
    await Plotly.newPlot(plot, traces(), layout(), FIGURE_OPTIONS);
    plot.on('plotly_relayout', relayout);
    plot.on('plotly_legendclick', toggle);
    plot.on('plotly_legenddoubleclick', () => false);
    outliers.addEventListener('click', () => {
      inFull = !inFull;
      outliers.setAttribute('aria-pressed', String(inFull));
      setText(outliers, inFull ? 'Cut outliers off' : 'Show outliers in full');
      dirty = true;
      paint(true);
    });
    setInterval(() => { if (element.isConnected) paint(false); }, 33);
  }

  return {
    start, reset,
    take(newHead, newSeries) { head = newHead; series = newSeries; dirty = true; },
    end() { ended = true; dirty = true; paint(true); },
    picture(name) { return Plotly.downloadImage(plot, { format: 'png', filename: name, scale: 2, width: plot.clientWidth, height: plot.clientHeight }); },
    pointAt,
    touch() { dirty = true; paint(false); },
    // After a paint of t ms the charts rest for t * newRest ms, within limits. The fastest of the latest paints
    // counts: the others waited for a core.
    pace(newRest, minMs, maxMs) { rest = newRest; minRestMs = minMs; maxRestMs = maxMs; },
  };
}
