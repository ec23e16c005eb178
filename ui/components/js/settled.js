// Fires "settled" once for all controls that change at about the same time.

const AFTER_MS = 40;

let waits = 0;
document.addEventListener(settings.change, () => {
  clearTimeout(waits);
  waits = setTimeout(() => trigger('settled'), AFTER_MS);
});
