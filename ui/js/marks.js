// Marks: what may explain a latency. A shape in neutral ink at its token on the latency chart, filled for the first
// arm and hollow for the second, and the same in words below the charts.

const MARK_SHAPES = {
  compile: ['diamond', '\u25C6'], recompile: ['diamond', '\u25C6'], graph_skip: ['x', '\u2715'], window: ['triangle-down', '\u25BC'],
  cache: ['square', '\u25A0'], gc: ['circle', '\u25CF'], throttle: ['star', '\u2605'], foreign: ['cross', '\u271A'],
};
const HOVER_WIDTH = 56, MOST_SAID = 3;

// Guards hold signs that Plotly would read as markup: as entities they are drawn as they are.
function drawn(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

// The hover box breaks no lines by itself.
function wrapped(text) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.length - 1;
    if (lines[last] && lines[last].length + word.length >= HOVER_WIDTH) lines.push(word);
    else lines[last] += (lines[last] ? ' ' : '') + word;
  }
  return lines.join('<br>');
}

// One trace for each arm that has marks. Each stands on its token's value, so that it rides on the spike it explains.
function markTraces(panel, axes, head, lanes, hidden, first) {
  const trace = panel.traces.find(one => !one.predicted), ink = css('--body-text-color'), out = [];
  head.arms.forEach((arm, l) => {
    const column = lanes[l][trace.column], places = new Map();
    for (const mark of arm.marks) {
      if (mark.token < first || mark.token >= column.length) continue;
      if (!places.has(mark.token)) places.set(mark.token, { shape: MARK_SHAPES[mark.kind][0], texts: [] });
      places.get(mark.token).texts.push(wrapped(drawn(mark.text)));
    }
    if (!places.size) return;
    const at = [...places.keys()], found = [...places.values()];
    out.push({
      ...axes, mode: 'markers', x: at, y: at.map(token => column[token] * trace.scale), text: found.map(one => one.texts.join('<br>')),
      marker: { symbol: found.map(one => one.shape + (l % 2 ? '-open' : '')), size: 9, color: ink, line: { width: 1.2, color: ink } },
      hovertemplate: '%{text}<extra>' + drawn(arm.name) + '</extra>', showlegend: false, visible: !hidden.has(arm.name),
      meta: { panel: panel.key, marks: arm.name },
    });
  });
  return out;
}

// The line below the charts names the first few of each arm; its title has them all.
function takeMarks(box, arms, unit) {
  const now = JSON.stringify(arms.map(arm => arm.marks));
  if (box.dataset.shown === now) return;
  box.dataset.shown = now;
  const place = mark => (unit === 'forward' ? 'pass ' : 'token ') + count(mark.token) + ': ' + mark.text;
  box.title = arms.flatMap(arm => arm.marks.map(mark => arm.name + ' ' + place(mark))).join('\n');
  box.replaceChildren(...arms.filter(arm => arm.marks.length).map(arm => {
    const part = el('span', 'td-marked arm-' + arm.name.toLowerCase());
    part.append(el('span', 'td-arm', arm.name));
    const said = arm.marks.slice(0, MOST_SAID).map(mark => MARK_SHAPES[mark.kind][1] + ' ' + place(mark));
    const more = arm.marks.length - MOST_SAID;
    part.append(document.createTextNode(said.join(', ') + (more > 0 ? ' and ' + count(more) + ' more' : '')));
    return part;
  }));
}
