// Pulling by cursor: asks the server what lies past what is there, about twelve times a second. Several pulls may travel at
// once, since on a slow line one after the other would wait for the line; a pull that hangs is given up after a
// while, and a cut line is tried again ever more slowly, in words. Nothing is asked while the tab is hidden.

const MOST_IN_FLIGHT = 3;
const HUNG_MS = 8000;

// ask(): a promise of the parsed reply. take(reply): uses it, answers "more" (ask again now), "wait" or "over".
// trouble(text): says what is wrong, '' when all is well.
function makePuller(ask, take, trouble) {
  let periodMs = 80, inFlight = 0, failures = 0, notBefore = 0, running = false, generation = 0;

  function withDeadline(promise) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no answer')), HUNG_MS);
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
        const reply = await withDeadline(ask());
        if (mine !== generation) return;
        if (failures) { failures = 0; notBefore = 0; trouble(''); }
        next = take(reply);
      }
      if (next === 'over') running = false;
    } catch (error) {
      if (mine !== generation) return;
      failures++;
      const pauseMs = Math.min(10000, 250 * 2 ** failures);
      notBefore = performance.now() + pauseMs;
      trouble('The server does not answer. Trying again in ' + seconds(pauseMs / 1000) + '; nothing is lost.');
    } finally {
      inFlight--;
    }
  }

  function tick() {
    if (!element.isConnected) return;
    const most = failures ? 1 : MOST_IN_FLIGHT;
    if (running && !document.hidden && inFlight < most && performance.now() >= notBefore) pull();
    setTimeout(tick, periodMs);
  }
  setTimeout(tick, 0);

  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && element.isConnected && running && inFlight === 0) { notBefore = 0; pull(); }
  });

  return {
    begin() { generation++; failures = 0; notBefore = 0; running = true; trouble(''); if (!document.hidden) pull(); },
    stop() { generation++; running = false; },
    every(ms) { periodMs = ms; },
    get running() { return running; },
  };
}
