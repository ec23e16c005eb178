// A figure over what varies: a line for each combination of the rest, with 95% intervals.

import { css } from './dom.js';
import { drawPlot, withoutMarkup } from './plot.js';

const COLOURS = ['#4269d0', '#ff725c', '#3ca951', '#a463f2', '#9c6b4e'], DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash'];

/** The ends of the vertical axis, and for each line the places whose interval goes on above it: one wide interval leaves the lines
 * readable. @param {Claims.LineChart['lines']} lines */
export function heightOf(lines) {
  const tops = (key) => Math.max(...lines.flatMap(line => line[key].filter(value => value !== null)), 0);
  const top = 1.05 * Math.min(Math.max(tops('high'), tops('values')), 2 * tops('values')) || 1;
  const cut = lines.map(line => line.high.flatMap((high, n) => high !== null && high > top ? [n] : []));
  return { range: [1.05 * Math.min(0, ...lines.flatMap(line => [...line.values, ...line.low])), top], cut };
}

/** @param {HTMLElement} plot @param {{ places: string[], numbers: boolean, horizontal: string }} view @param {Claims.LineChart} chart */
export function drawLines(plot, view, chart) {
  const at = view.places.map(place => view.numbers ? Number(place.replaceAll(',', '')) : withoutMarkup(place));
  const { range, cut } = heightOf(chart.lines);
  const colour = (i) => chart.lines.length > 1 ? COLOURS[i % COLOURS.length] : css('--body-text-color');
  drawPlot(plot, () => chart.lines.flatMap((line, i) => {
    const ends = at.flatMap((x, n) => line.low[n] === null ? [] : [[x, line.low[n]], [x, line.high[n]], [null, null]]);
    return [
      { x: ends.map(([x]) => x), y: ends.map(([, y]) => y), mode: 'lines', line: { color: colour(i), width: 6 }, opacity: 0.4, hoverinfo: 'skip', showlegend: false },
      {
        x: at, y: line.values, mode: 'lines+markers', name: withoutMarkup(line.title), line: { color: colour(i), width: 1.5, dash: DASHES[i % DASHES.length] },
        marker: { size: 6 }, customdata: line.texts.map((text) => (line.title ? withoutMarkup(line.title) + ': ' : '') + text), hovertemplate: '%{customdata}<extra></extra>',
      },
      {
        x: cut[i].map(n => at[n]), y: cut[i].map(() => range[1]), mode: 'markers', marker: { symbol: 'triangle-up', size: 9, color: colour(i) }, cliponaxis: false, showlegend: false,
        text: cut[i].map(n => withoutMarkup(line.texts[n])), hovertemplate: 'The interval goes on: %{text}<extra></extra>',
      },
    ];
  }), {
    xaxis: {
      title: { text: withoutMarkup(view.horizontal), font: { size: 11 } }, ...(view.numbers ? { type: 'log', tickvals: at, ticktext: view.places } : { type: 'category' }),
    },
    yaxis: { title: { text: chart.unit, font: { size: 11 } }, range }, showlegend: chart.lines.length > 1,
    legend: { orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0 }, margin: { t: chart.lines.length > 1 ? 28 : 8, b: 38, l: 52, r: 12 },
  });
}
