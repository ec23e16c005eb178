// The charts: one figure with a plot for each declared panel (ui/charts), since one figure paints in two thirds of
// the time of three. `uirevision` keeps a user's zoom while values stream in; what is hidden by the legend is kept here.

const ARM_LINES = [{ color: '#4269d0', dash: 'solid' }, { color: '#ff725c', dash: '5px,2.5px' }];
const MOST_POINTS = 400, NARROW_PX = 760, WIDE_HEIGHT = 286, NARROW_HEIGHT = 250;
const FIGURE_OPTIONS = {
  responsive: true, displaylogo: false, showTips: false, showSendToCloud: false,
  modeBarButtonsToRemove: ['select2d', 'lasso2d', 'zoomIn2d', 'zoomOut2d', 'autoScale2d'],
  toImageButtonOptions: { filename: 'tokendyno', scale: 2 },
};

function makeCharts(plot, panels) {
  let run = '', head = null, lanes = [], revision = 0, hidden = new Set(), units = [];
  let dirty = true, painting = false, notBefore = 0, rest = 0.6, leastMs = 0, mostMs = 400, ended = false;
  const took = [];

  function reset(newRun) {
    run = newRun; head = null; lanes = []; units = panels.map(() => null); hidden = new Set(); ended = false; dirty = true;
  }

  // A panel's words: an encoder has passes, not tokens, and no cache.
  const wordsOf = panel => (head && head.unit === 'forward' && panel.encoder) || panel;
  const firstOf = trace => (head && head.unit === 'forward' ? 0 : trace.first);

  // Plotly reads a little markup in its texts.
  const plain = text => text.replace(/[<>&]/g, '');
  const narrow = () => element.clientWidth < NARROW_PX;
  const suffix = i => (i ? i + 1 : '');
  const axisOf = i => plot._fullLayout && plot._fullLayout['xaxis' + suffix(i)];

  // The visible part of a panel's horizontal axis, null while it is not zoomed.
  function windowOf(i) {
    const axis = axisOf(i);
    return axis && axis.autorange === false ? axis.range.map(Number) : null;
  }

  // x of the places of one lane.
  function placeToX(trace, l) {
    if (trace.at === 'second') return place => lanes[l].st[place];
    const offset = trace.at === 'length' ? head.arms[l].prompt_tokens : 0;
    return place => offset + place;
  }

  // Places of the lanes `which` that are drawn together for a panel's measured traces.
  function visiblePlaces(i, traces, which) {
    const { at } = traces[0], first = firstOf(traces[0]), view = windowOf(i);
    const columns = which.flatMap(l => traces.map(trace => lanes[l][trace.column]));
    let begin = first, end = Math.max(0, ...columns.map(column => column.length));
    if (view) {
      const offset = at === 'length' ? head.arms[which[0]].prompt_tokens : 0;
      const low = at === 'second' ? lowerBound(lanes[which[0]].st, view[0]) : Math.floor(view[0]) - offset;
      const high = at === 'second' ? lowerBound(lanes[which[0]].st, view[1]) : Math.ceil(view[1]) - offset;
      begin = Math.max(begin, low - 1);
      end = Math.min(end, high + 2);
    }
    return places(columns, begin, end, MOST_POINTS);
  }

  function largest(i) {
    let most = 0;
    for (const trace of panels[i].traces) lanes.forEach((lane, l) => {
      const curve = trace.predicted ? head.arms[l][trace.curve] : lane;
      if (curve) for (const value of curve[trace.column]) if (value > most) most = value;
    });
    return most;
  }

  function smallest(panel) {
    let least = Infinity;
    for (const trace of panel.traces) for (const lane of lanes) for (const value of lane[trace.column] || []) if (value < least) least = value;
    return least < Infinity ? least : 0;
  }

  // Bytes are shown in the unit that suits the largest value; it stays while a user looks at a part.
  function unitOf(i, most) {
    if (panels[i].unit !== 'bytes') return { unit: panels[i].unit, scale: 1 };
    if (!units[i] || !windowOf(i)) units[i] = byteUnit(most);
    return units[i];
  }

  // Kinds of layers that this model has: a trace of zeros is left out.
  function kindsOf(panel) {
    return [...new Set(panel.traces.map(trace => trace.kind))].filter(kind => kind && panel.traces.some(trace =>
      trace.kind === kind && head.arms.some((arm, l) => {
        const values = trace.predicted ? arm[trace.curve] && arm[trace.curve][trace.column] : lanes[l][trace.column];
        return values && values.length && values[values.length - 1] > 0;
      })));
  }

  function tracesOf(panel, i) {
    const axes = { xaxis: 'x' + suffix(i), yaxis: 'y' + suffix(i), type: 'scatter', mode: 'lines' };
    if (!head) return [{ ...axes, x: [0, 1], y: [0, 1], line: { width: 0 }, hoverinfo: 'skip', showlegend: false }];
    const most = largest(i), { unit, scale } = unitOf(i, most), kinds = kindsOf(panel), out = [];
    const measured = panel.traces.filter(trace => !trace.predicted);
    const all = lanes.map((_, l) => l), together = measured[0].at !== 'second';
    const shared = together ? visiblePlaces(i, measured, all) : null;
    const put = (trace, l, x, y) => {
      const arm = head.arms[l].name, style = ARM_LINES[l % 2];
      const label = plain([arm, trace.kind, trace.predicted ? trace.curve : ''].filter(Boolean).join(' '));
      const off = hidden.has(arm) || hidden.has(trace.kind) || (trace.predicted && hidden.has(trace.curve));
      out.push({
        ...axes, x, y, name: label, showlegend: false, visible: !off, meta: { panel: panel.key, arm, kind: trace.kind, predicted: trace.predicted },
        line: { width: trace.width, color: style.color, dash: trace.predicted ? '1px,3px' : style.dash },
        opacity: trace.predicted ? 0.9 : 1,
        hovertemplate: '%{y:,.3~r} ' + unit + '<extra>' + label + '</extra>',
      });
    };
    for (const trace of panel.traces) for (const l of all) {
      if (trace.kind && !kinds.includes(trace.kind)) continue;
      if (trace.predicted) {
        const curve = head.arms[l][trace.curve];
        if (curve) put(trace, l, curve.x, curve[trace.column].map(value => value * trace.scale * scale));
        continue;
      }
      const column = lanes[l][trace.column], toX = placeToX(trace, l), factor = trace.scale * scale;
      const at = (shared || visiblePlaces(i, measured, [l])).filter(place => place < column.length);
      put(trace, l, at.map(toX), at.map(place => column[place] * factor));
    }
    if (panel.marks) out.push(...markTraces(panel, axes, head, lanes, hidden, firstOf(measured[0])));
    out.push(extent(panel, axes, most * scale, scale));
    return out.concat(legendOf(panel, i, axes, kinds));
  }

  // An invisible line that holds the axes where the run will end: they do not creep while values stream in.
  function extent(panel, axes, most, scale) {
    const at = panel.traces[0].at, prompt = Math.max(0, ...head.arms.map(arm => arm.prompt_tokens));
    const tokens = ended ? Math.max(...lanes.map(lane => lane.t.length)) : head.max_new_tokens;
    const offset = at === 'length' ? prompt : 0;
    let x = [offset, offset + Math.max(1, tokens)];
    if (at === 'second') {
      const last = Math.max(0, ...lanes.map(lane => lane.st.length ? lane.st[lane.st.length - 1] : 0));
      const step = 10 ** Math.floor(Math.log10(Math.max(1, last)));
      x = [0, ended ? last : Math.ceil((last + step / 10) / step) * step];
    }
    const least = panel.from_zero ? 0 : smallest(panel) * scale, room = panel.min_span * most;
    const y = [least - room / 4, Math.max(most, least + 3 * room / 4)];
    return { ...axes, x, y, line: { width: 0 }, hoverinfo: 'skip', showlegend: false, meta: { panel: panel.key, extent: true } };
  }

  // Entries of a legend: the arms on the first panel, layer kinds where a panel has them.
  function legendOf(panel, i, axes, kinds) {
    const entry = (name, line, legend) => ({
      ...axes, x: [null], y: [null], name: plain(name), line, legend, showlegend: true, hoverinfo: 'skip',
      visible: hidden.has(name) ? 'legendonly' : true, meta: { legend: name },
    });
    const neutral = css('--body-text-color-subdued');
    const out = i ? [] : head.arms.map((arm, l) => entry(arm.name, { width: 2, ...ARM_LINES[l % 2] }, 'legend'));
    if (!i && head.arms.some(arm => arm.floor)) out.push(entry('floor', { width: 1.2, color: neutral, dash: '1px,3px' }, 'legend'));
    for (const kind of kinds) {
      const width = panel.traces.find(trace => trace.kind === kind && !trace.predicted).width;
      out.push(entry(kind, { width, color: neutral }, 'legend2'));
    }
    if (head.arms.some(arm => arm.predicted) && kinds.length) out.push(entry('predicted', { width: 1.2, color: neutral, dash: '1px,3px' }, 'legend2'));
    return out;
  }

  function layout() {
    const stacked = narrow(), n = panels.length, text = css('--body-text-color'), grid = css('--border-color-primary');
    const paper = css('--background-fill-primary'), gap = stacked ? 0.11 : 0.05, size = (1 - gap * (n - 1)) / n;
    const figure = {
      uirevision: run, datarevision: ++revision, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      font: { color: text, size: 11, family: css('--font') || 'sans-serif' }, height: stacked ? NARROW_HEIGHT * n : WIDE_HEIGHT,
      margin: { t: 30, b: 34, l: 44, r: 8, autoexpand: false }, hovermode: 'x unified', dragmode: 'zoom',
      modebar: { bgcolor: 'rgba(0,0,0,0)', color: css('--body-text-color-subdued'), activecolor: text },
      hoverlabel: { bgcolor: paper, bordercolor: grid, font: { color: text } }, annotations: [],
    };
    panels.forEach((panel, i) => {
      const from = i * (size + gap), x = stacked ? [0, 1] : [from, from + size], y = stacked ? [1 - from - size, 1 - from] : [0, 1];
      const unit = panel.unit === 'bytes' ? units[i] && units[i].unit : panel.unit;
      const said = wordsOf(panel), title = plain(said.title || (head ? head.memory_label : 'memory'));
      const line = { gridcolor: grid, zeroline: false, linecolor: grid, ticks: '', automargin: false, showticklabels: !!head && !said.note };
      figure['xaxis' + suffix(i)] = {
        ...line, domain: x, anchor: 'y' + suffix(i), title: { text: said.x_title, standoff: 2 }, nticks: 6,
        unifiedhovertitle: { text: said.hover || panel.hover }, hoverformat: panel.x_title === 'seconds' ? '.2f' : ',d',
      };
      figure['yaxis' + suffix(i)] = {
        ...line, domain: y, anchor: 'x' + suffix(i), rangemode: panel.from_zero ? 'tozero' : 'normal', nticks: 6, tickformat: ',~r',
      };
      figure.annotations.push({
        text: '<b>' + title[0].toUpperCase() + title.slice(1) + '</b>' + (unit ? ', ' + unit : ''), showarrow: false, xref: 'paper', yref: 'paper',
        x: x[0], y: y[1], xanchor: 'left', yanchor: 'bottom', yshift: 4, xshift: -4, font: { size: 12 },
      });
      if (said.note) figure.annotations.push({
        text: plain(said.note), showarrow: false, xanchor: 'center', xref: 'paper', yref: 'paper', x: (x[0] + x[1]) / 2, y: (y[0] + y[1]) / 2,
      });
      const legend = { orientation: 'h', x: x[1], y: y[1], xanchor: 'right', yanchor: 'bottom', bgcolor: 'rgba(0,0,0,0)', font: { size: 11 }, itemwidth: 30 };
      if (!i) figure.legend = legend;
      else if (panel.traces.some(trace => trace.kind)) figure.legend2 = stacked ? { ...legend, y: y[0] + 0.005 } : legend;
    });
    return figure;
  }

  async function paint(force) {
    if (!dirty || painting || document.hidden || !element.offsetParent) return;
    if (!force && performance.now() < notBefore) return;
    painting = true; dirty = false;
    const begin = performance.now(), shown = lanes.map(lane => lane.t.length);
    try {
      const traces = panels.flatMap(tracesOf);
      await Plotly.react(plot, traces, layout(), FIGURE_OPTIONS);
    } finally {
      painting = false;
    }
    requestAnimationFrame(() => setTimeout(() => {
      took.push(performance.now() - begin);
      if (took.length > 5) took.shift();
      notBefore = performance.now() + Math.max(leastMs, Math.min(mostMs, Math.min(...took) * rest));
      if (window.tokendynoProbe) window.tokendynoProbe.painted(shown, took[took.length - 1]);
    }, 0));
  }

  function toggle(event) {
    const name = event.data[event.curveNumber].meta.legend;
    if (!hidden.delete(name)) hidden.add(name);
    dirty = true;
    paint(true);
    return false;
  }

  async function start() {
    await Plotly.newPlot(plot, panels.flatMap(tracesOf), layout(), FIGURE_OPTIONS);
    plot.on('plotly_relayout', () => { dirty = true; paint(true); });
    plot.on('plotly_legendclick', toggle);
    plot.on('plotly_legenddoubleclick', () => false);
    setInterval(() => { if (element.isConnected) paint(false); }, 33);
  }

  return {
    start, reset,
    take(newHead, newLanes) { head = newHead; lanes = newLanes; dirty = true; },
    end() { ended = true; dirty = true; paint(true); },
    touch() { dirty = true; paint(false); },
    // A paint that takes t ms is followed by t * rest ms of rest, within limits. Of the latest paints the quickest
    // counts: the others waited for a core.
    pace(newRest, least, most) { rest = newRest; leastMs = least; mostMs = most; },
  };
}
