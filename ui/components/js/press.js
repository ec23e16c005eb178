// A redraw between the press of a button and its release would take the button away, and the click with it. While
// something in a box is pressed, its redraw waits for the release.
/** @param {HTMLElement} box @param {() => void} draw */
export const afterPress = (box, draw) => {
  let pressed = false, due = false;
  const press = () => { pressed = true; };
  const release = () => {
    if (!pressed) return;
    pressed = false;
    setTimeout(() => { if (due && !pressed) { due = false; draw(); } });  // the click comes first
  };
  box.addEventListener('pointerdown', (event) => { if (event.button === 0) press(); });
  box.addEventListener('keydown', (event) => { if (event.key === ' ') press(); });
  for (const name of ['pointerup', 'pointercancel', 'keyup', 'blur']) window.addEventListener(name, release);
  return () => { if (pressed) due = true; else draw(); };
};
