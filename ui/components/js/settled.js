// Fires "settled" once for all controls of a page that change at about the same time: also where they did before this was
// there, since a room is built when it is entered.

const AFTER_MS = 40;

let waits = 0;
const look = () => {
  if (!window.tokendynoChanged?.delete(settings.page)) return;
  clearTimeout(waits);
  waits = setTimeout(() => trigger('settled'), AFTER_MS);
};
document.addEventListener('tokendyno-changed', look);
look();
