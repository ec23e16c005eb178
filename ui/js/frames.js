// Gradio's clock of a pending event asks for every frame of the screen, to show tenths of a second; the clock of its first
// status line is taken away while it runs, and then asks for as long as the page is open: 6% of a core, for nothing.
// Such a clock is given a frame ten times a second. What does not look like it is left alone.
(() => {
  const clock = /performance\.now\(\)-[^;]{1,40}\/1e3/, CLOCK_MS = 100, LONGEST = 200;
  const frame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (task) => {
    const code = Function.prototype.toString.call(task);
    if (code.length > LONGEST || !clock.test(code)) return frame(task);
    setTimeout(() => task(performance.now()), CLOCK_MS);
    return 0;
  };
})();
