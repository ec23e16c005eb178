/** What has the focus inside a box; null where it is elsewhere. @param {Element} box @returns {HTMLElement | null} */
export function focusWithin(box) {
  const held = document.activeElement;
  return held instanceof HTMLElement && box.contains(held) ? held : null;
}
