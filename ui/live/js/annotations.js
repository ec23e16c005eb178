// Annotations: what may explain a token's latency. A shape in neutral ink at its token on the latency chart, filled
// for the first arm and hollow for the second, and the same in words below the charts.

const ANNOTATION_SHAPES = {
  compile: ['diamond', '\u25C6'], recompile: ['diamond', '\u25C6'], graph_skip: ['x', '\u2715'], window: ['triangle-down', '\u25BC'],
  cache: ['square', '\u25A0'], gc: ['circle', '\u25CF'], throttle: ['star', '\u2605'], foreign: ['cross', '\u271A'],
};
const HOVER_CHARACTERS = 56, MAX_LISTED = 3;

// Dynamo guards hold characters that Plotly would read as markup: as entities they are drawn as they are.
function escapeMarkup(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

// The hover box does not wrap text by itself.
function wrapText(text) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.length - 1;
    if (lines[last] && lines[last].length + word.length >= HOVER_CHARACTERS) lines.push(word);
    else lines[last] += (lines[last] ? ' ' : '') + word;
  }
  return lines.join('<br>');
}

// One trace for each annotated arm; each annotation stands on its token's value, on the spike that it explains.
function annotationTraces(chart, axes, { head, series, hidden, ink }) {
  const line = measuredLines(chart)[0], first = firstIndex(line, head), out = [];
  head.arms.forEach((arm, a) => {
    const column = series[a][line.column], byToken = new Map();
    for (const { token, kind, text } of arm.marks) {
      if (token < first || token >= column.length) continue;
      if (!byToken.has(token)) byToken.set(token, { shape: ANNOTATION_SHAPES[kind][0], texts: [] });
      byToken.get(token).texts.push(wrapText(escapeMarkup(text)));
    }
    if (!byToken.size) return;
    const tokens = [...byToken.keys()], found = [...byToken.values()];
    out.push({
      ...axes, mode: 'markers', x: tokens, y: tokens.map(token => column[token] * line.scale), text: found.map(one => one.texts.join('<br>')),
      marker: { symbol: found.map(one => one.shape + (a % 2 ? '-open' : '')), size: 9, color: ink, line: { width: 1.2, color: ink } },
      hovertemplate: '%{text}<extra>' + escapeMarkup(arm.name) + '</extra>', showlegend: false, visible: !hidden.has(arm.name),
      meta: { chart: chart.key, annotations: arm.name },
    });
  });
  return out;
}

// The line below the charts lists the first few of each arm; its tooltip lists all.
function showAnnotations(box, arms, unit) {
  const now = JSON.stringify(arms.map(arm => arm.marks));
  if (box.dataset.shown === now) return;
  box.dataset.shown = now;
  const worded = one => (unit === 'forward' ? 'pass ' : 'token ') + count(one.token) + ': ' + one.text;
  box.title = arms.flatMap(arm => arm.marks.map(one => arm.name + ' ' + worded(one))).join('\n');
  box.replaceChildren(...arms.filter(arm => arm.marks.length).map(arm => {
    const part = el('span', 'td-annotation arm-' + arm.name.toLowerCase());
    part.append(el('span', 'td-arm', arm.name));
    const listed = arm.marks.slice(0, MAX_LISTED).map(one => ANNOTATION_SHAPES[one.kind][1] + ' ' + worded(one));
    const more = arm.marks.length - MAX_LISTED;
    part.append(document.createTextNode(listed.join(', ') + (more > 0 ? ' and ' + count(more) + ' more' : '')));
    return part;
  }));
}
