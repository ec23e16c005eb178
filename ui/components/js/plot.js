// Plots that are drawn once, and plotly.js itself, loaded once for the whole page and only when something is to be drawn:
// evaluating its 4.8 MB takes longer than everything else that a first visit waits for.

import { add, css } from './dom.js';

const RETRY_MS = 1000, HEIGHT_PX = 260;

// Resolves once `Plotly` can be used. A server that does not answer is asked again, as for every pull.
export function plotly() {
  if (window.Plotly) return Promise.resolve();
  return window.tokendynoPlotly ??= new Promise(resolve => {
    const load = () => {
      const script = document.createElement('script');
      script.src = settings.plotly;
      script.addEventListener('load', () => resolve());
      script.addEventListener('error', () => { script.remove(); setTimeout(load, RETRY_MS); });
      document.head.append(script);
    };
    load();
  });
}

/** Plotly renders some markup in texts, so its characters are dropped. @param {string} text */
export function withoutMarkup(text) {
  return text.replace(/[<>&]/g, '');
}

/** What all figures have: no ground of their own, and the page's font. @param {number} size @param {string} ink */
export function look(size, ink) {
  return { paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: { color: css(ink), size, family: css('--font') || 'sans-serif' } };
}

/** A place for a plot with its title above. Its numbers stand beside it as text. @param {HTMLElement} parent @param {string} title */
export function plotIn(parent, title) {
  if (title) add(parent, 'figcaption', '', title);
  const plot = add(parent, 'div', 'td-plotted');
  plot.setAttribute('aria-hidden', 'true');
  return plot;
}

// Draws into a node, as wide as it is at any time. A change of the theme is for the caller to draw again.
/** @param {HTMLElement} node @param {() => object[]} traces @param {{ [key: string]: any }} layout @param {object} [options] */
export async function drawPlot(node, traces, layout, options) {
  await new Promise(resolve => setTimeout(resolve));  // what stands beside it is there, so its width is known
  await plotly();
  if (!node.isConnected) return;
  const grid = css('--border-color-primary');
  const axis = { gridcolor: grid, linecolor: grid, zeroline: false, fixedrange: true, automargin: true, title: { font: { size: 11 } } };
  const axes = Object.entries({ xaxis: {}, yaxis: {}, ...layout }).filter(([name]) => /^[xy]axis/.test(name));
  Plotly.react(node, traces(), {
    ...look(11, '--body-text-color-subdued'), height: HEIGHT_PX, margin: { t: 8, b: 38, l: 52, r: 12 }, showlegend: false, dragmode: false,
    hoverlabel: { font: { size: 12 } }, ...layout, ...Object.fromEntries(axes.map(([name, own]) => [name, { ...axis, ...own }])),
  }, { displayModeBar: false, showTips: false, showSendToCloud: false, ...options });
  if (node.dataset.follows) return;
  node.dataset.follows = 'width';
  new ResizeObserver(() => { if (node.clientWidth && node.isConnected) Plotly.Plots.resize(node); }).observe(node);
}
