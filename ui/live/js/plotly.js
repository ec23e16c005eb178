// plotly.js, loaded once for the whole page and only when something is to be drawn: evaluating its 4.8 MB takes longer
// than everything else that a first visit waits for.

const PLOTLY_RETRY_MS = 1000;

// Resolves once `Plotly` can be used. A server that does not answer is asked again, as for every pull.
export function plotly() {
  if (window.Plotly) return Promise.resolve();
  return window.tokendynoPlotly ??= new Promise(resolve => {
    const load = () => {
      const script = document.createElement('script');
      script.src = settings.plotly;
      script.addEventListener('load', () => resolve());
      script.addEventListener('error', () => { script.remove(); setTimeout(load, PLOTLY_RETRY_MS); });
      document.head.append(script);
    };
    load();
  });
}
