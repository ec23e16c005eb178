// When waiting pays: seconds since each arm's imports were done, over tokens. The lines cross where the arm that starts later
// gets ahead; the sentence under the verdict says it in words.

import { onTheme } from '../../components/js/theme.js';
import { css, el } from './dom.js';
import { plotly } from './plotly.js';
import { lineOf, withoutMarkup } from './chart_data.js';

/** @param {HTMLElement} box */
export function makeCrossing(box) {
  let shown = '', drawn = null;

  /** @param {Partial<Live.Head>} head */
  function take(head) {
    const now = JSON.stringify(head.crossing ?? null);
    if (now === shown) return;
    shown = now;
    drawn = head.crossing ? head : null;
    box.hidden = !drawn;
    if (!drawn) { box.replaceChildren(); return; }
    const title = el('h3', '', 'When does waiting pay?');
    title.append(el('span', 'td-part-hint', 'seconds since the imports were done, over ' + (head.unit === 'forward' ? 'forward passes' : 'tokens written')));
    const plot = el('div', 'td-crossing-plot');
    plot.setAttribute('aria-hidden', 'true');
    box.replaceChildren(title, plot);
    draw();
  }

  function draw() {
    if (!drawn) return;
    const { arms, crossing: { starts_s, steps_s, tokens, label } } = drawn, plot = box.querySelector('.td-crossing-plot');
    const text = css('--body-text-color'), grid = css('--border-color-primary'), last = 2 * tokens;
    const after = (a, count) => starts_s[a] + count * steps_s[a], top = Math.max(...arms.map((_, a) => after(a, last)));
    const traces = arms.map((arm, a) => ({
      type: 'scatter', mode: 'lines', name: 'Arm ' + withoutMarkup(arm.name), line: { width: 2, ...lineOf(arm, a) },
      x: [0, last], y: [after(a, 0), after(a, last)],
    }));
    const met = after(0, tokens), scale = { gridcolor: grid, linecolor: grid, zeroline: false, nticks: 6, fixedrange: true };
    traces.push({ type: 'scatter', mode: 'markers', x: [tokens], y: [met], marker: { size: 9, color: css('--body-background-fill'), line: { width: 2, color: text } }, showlegend: false });
    plotly().then(() => Plotly.react(plot, traces, {
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: { color: text, size: 11, family: css('--font') || 'sans-serif' },
      height: 220, margin: { t: 24, b: 38, l: 46, r: 8 }, hovermode: false, legend: { orientation: 'h', x: 1, xanchor: 'right', y: 1, yanchor: 'bottom' },
      xaxis: { ...scale, range: [0, last], tickformat: ',', title: { text: drawn.unit === 'forward' ? 'forward passes' : 'tokens', standoff: 4 } },
      yaxis: { ...scale, range: [0, 1.05 * top], ticksuffix: ' s' },
      annotations: [{ x: tokens, y: met, text: '<b>' + withoutMarkup(label) + '</b>', showarrow: false, yanchor: 'top', xanchor: 'left', xshift: 8, yshift: -6 }],
    }, { staticPlot: true, responsive: true, showSendToCloud: false }));
  }

  function clear() { take({}); }
  onTheme(draw);
  return { take, clear };
}
