// One figure of a claim: the claimed range as a band, the measured interval as a bar with its middle. The text beside it
// says the same.
function claimChart(parent, figure) {
  if (figure.value === null || !window.Plotly) return;
  const plot = add(parent, 'div', 'td-claim-chart');
  plot.setAttribute('aria-hidden', 'true');
  const css = (name) => getComputedStyle(element).getPropertyValue(name).trim();
  const ends = [figure.low ?? figure.value, figure.high ?? figure.value];
  const claimed = [figure.claimed_low, figure.claimed_high];
  const known = [...ends, ...claimed.filter((end) => end !== null), figure.unit === 'x' ? 1 : 0];
  const least = Math.min(...known), most = Math.max(...known), room = (most - least || Math.abs(most) || 1) * 0.08;
  const range = [least - room, most + room];
  const ink = css('--body-text-color'), subdued = css('--body-text-color-subdued');
  const band = claimed.some((end) => end !== null) ? [{
    type: 'rect', xref: 'x', yref: 'paper', x0: claimed[0] ?? range[0], x1: claimed[1] ?? range[1], y0: 0, y1: 1,
    fillcolor: subdued, opacity: 0.25, line: { width: 0 }, layer: 'below',
  }] : [];
  const none = figure.unit === 'x' ? 1 : 0;  // no effect
  const zero = { type: 'line', xref: 'x', yref: 'paper', x0: none, x1: none, y0: 0, y1: 1, line: { color: subdued, width: 1, dash: 'dot' } };
  const measured = {
    type: 'bar', orientation: 'h', y: [''], x: [Math.max(ends[1] - ends[0], (range[1] - range[0]) / 250)], base: [ends[0]],
    width: [0.5], marker: { color: ink }, hoverinfo: 'skip',
  };
  const sign = { '%': '%', x: 'x' }[figure.unit] ?? ' ' + figure.unit;
  Plotly.newPlot(plot, [measured], {
    height: 58, margin: { t: 4, b: 22, l: 4, r: 12, autoexpand: false }, shapes: [...band, zero], showlegend: false,
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', hovermode: false, dragmode: false,
    font: { color: subdued, size: 11, family: css('--font') || 'sans-serif' },
    xaxis: { range, fixedrange: true, gridcolor: css('--border-color-primary'), zeroline: false, nticks: 6, ticksuffix: sign },
    yaxis: { visible: false, fixedrange: true },
  }, { responsive: true, displayModeBar: false, staticPlot: true, showTips: false });
}
