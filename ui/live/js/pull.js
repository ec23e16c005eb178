// Polls the server for what lies past the cursor, about sixteen times a second, less often where the server is busy (it
// says how often, and never less than once a second). Several pulls may be in flight, since a slow line would otherwise
// limit their rate; until the first answer, which may be a whole run, and where each waits for news, there is one. A pull
// without an answer times out; failures are shown and retried with exponential backoff. Nothing is pulled while the tab
// is hidden.

import { seconds } from '../../components/js/dom.js';

const MAX_IN_FLIGHT = 3, TIMEOUT_MS = 8000;

// ask(): a promise of the parsed reply. take(reply): uses it, returns "more" (ask again now), "wait" or "over".
// report(text): shows a connection problem, '' when there is none.
/** @param {() => Promise<any>} ask @param {(reply: any) => 'more' | 'wait' | 'over'} take @param {(text: string) => void} report */
export function makePuller(ask, take, report) {
  let periodMs = 60, leastMs = 0, follows = false, inFlight = 0, failures = 0, notBefore = 0, generation = 0;
  let running = false, answered = false;

  function withTimeout(promise) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no answer')), TIMEOUT_MS);
      promise.then(
        value => { clearTimeout(timer); resolve(value); },
        error => { clearTimeout(timer); reject(error); });
    });
  }

  async function pull() {
    const mine = generation;
    inFlight++;
    try {
      let next = 'more';
      while (next === 'more') {
        const reply = await withTimeout(ask());
        if (mine !== generation) return;
        answered = true;
        if (failures) { failures = 0; notBefore = 0; report(''); }
        next = take(reply);
      }
      if (next === 'over') running = false;
    } catch {
      if (mine !== generation || !running) return;  // another pull in flight brought the end
      failures++;
      const pauseMs = Math.min(10000, 250 * 2 ** failures);
      notBefore = performance.now() + pauseMs;
      report('The server does not answer. Retrying in ' + seconds(pauseMs / 1000) + '; nothing is lost.');
    } finally {
      inFlight--;
    }
  }

  async function tick() {
    if (!element.isConnected) return;
    const most = failures || !answered || follows ? 1 : MAX_IN_FLIGHT;
    const ready = running && !document.hidden && inFlight < most && performance.now() >= notBefore, pulled = ready && pull();
    if (follows) await pulled;
    setTimeout(tick, Math.max(periodMs, leastMs));
  }
  setTimeout(tick, 0);

  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && element.isConnected && running && inFlight === 0) { notBefore = 0; pull(); }
  });

  function begin() {
    generation++; failures = 0; notBefore = 0; answered = false; running = true;
    report('');
    if (!document.hidden) pull();
  }

  return {
    begin,
    stop() { generation++; running = false; },
    // The pause between two pulls; of those that `wait` for news it begins with the answer.
    every(ms, wait = false) { periodMs = ms; follows = wait; },
    atLeast(ms) { leastMs = ms; },
  };
}
