// Plots that are drawn once. The numbers stand beside them as text, so plots are hidden from those who do not see them.

import { plotly } from '../../live/js/plotly.js';

const PLOT_HEIGHT = 260;
const cssOf = (node) => (name) => getComputedStyle(node).getPropertyValue(name).trim();
// Plotly renders some markup in texts, so its characters are dropped.
/** @param {string} text */
export const bare = (text) => text.replace(/[<>&]/g, ' ');

// Draws into a node, as wide as it is at any time. A change of the theme is for the caller to draw again.
/**
 * @param {HTMLElement} node @param {(css: (name: string) => string) => object[]} traces
 * @param {(css: (name: string) => string) => { [key: string]: any }} layout
 */
export async function drawPlot(node, traces, layout) {
  await new Promise(resolve => setTimeout(resolve));  // what stands beside it is there, so its width is known
  await plotly();
  if (!node.isConnected) return;
  const css = cssOf(node), subdued = css('--body-text-color-subdued'), grid = css('--border-color-primary');
  const { xaxis, yaxis, ...rest } = layout(css);
  const axis = { gridcolor: grid, linecolor: grid, zeroline: false, fixedrange: true, automargin: true, title: { font: { size: 11 } } };
  Plotly.react(node, traces(css), {
    height: PLOT_HEIGHT, margin: { t: 8, b: 38, l: 52, r: 12 }, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    font: { color: subdued, size: 11, family: css('--font') || 'sans-serif' }, showlegend: false, dragmode: false,
    hoverlabel: { font: { size: 12 } }, xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  }, { displayModeBar: false, showTips: false });
  new ResizeObserver(() => { if (node.clientWidth) Plotly.Plots.resize(node); }).observe(node);
}
