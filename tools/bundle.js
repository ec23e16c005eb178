// Writes ui/bundle/: one function body for each component, from its entry point. Gradio evaluates it with what it gives to
// a component (ui/js/component.d.ts) in scope; a report does the same.

import { rmSync } from 'node:fs';
import { build } from 'esbuild';

const ENTRIES = {
  address: 'ui/js/address.js',
  advise: 'ui/advise/js/advise.js',
  arm: 'ui/compare/js/arm.js',
  batching: 'ui/batching/js/panel.js',
  claims: 'ui/claims/js/result.js',
  fair: 'ui/compare/js/fair.js',
  fit: 'ui/fit/js/result.js',
  fit_amounts: 'ui/fit/js/amounts.js',
  frames: 'ui/js/frames.js',
  history: 'ui/history/js/page.js',
  live: 'ui/live/js/panel.js',
  page: 'ui/js/page.js',
  palette: 'ui/compare/js/palette.js',
  report: 'ui/report/js/start.js',
  setting_chips: 'ui/components/js/setting_chips.js',
  settled: 'ui/components/js/settled.js',
  sharding: 'ui/fit/js/sharding.js',
  stale_line: 'ui/components/js/stale_line.js',
  story: 'ui/stories/js/story.js',
  sweep: 'ui/worth/js/sweep.js',
  text_line: 'ui/components/js/text_line.js',
  worth: 'ui/worth/js/worth.js',
};

rmSync('ui/bundle', { recursive: true, force: true });
await build({
  entryPoints: ENTRIES, outdir: 'ui/bundle', bundle: true, format: 'iife', target: 'es2022', charset: 'utf8', logLevel: 'warning',
  minify: true,  // in one line: a limit would break strings, and Gradio looks for the names of events in quotes
});
