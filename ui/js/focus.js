// The keyboard's place is never lost. When what had the focus is disabled, removed or hidden (Run while a run goes on, a
// chip that was taken off), or a list was left with Enter, the focus goes to what is nearest, instead of to nothing.
const pressable = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
const usable = (control) => control.isConnected && !control.disabled && !control.closest('[inert], [hidden]') && control.checkVisibility({ visibilityProperty: true });
let last = null, around = [], before = 0, waited = 0;

// Lists open when they get the focus: the one that was just left stays shut.
const shut = (list) => {
  list.focus({ preventScroll: true });
  list.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
};
const near = () => {
  for (const box of around) {
    if (!box.isConnected || box === document.body) continue;
    const controls = [...box.querySelectorAll(pressable)].filter(usable);
    if (controls.length) return controls[Math.min(before, controls.length - 1)];
  }
  return null;
};
// What is disabled keeps the focus until the next frame, and its partner (Stop for Run) may come a moment later.
// Asked at every change of the page, so what is cheap is asked first.
const lost = () => {
  if (!last) return false;
  const gone = document.activeElement === last ? last.disabled : document.activeElement === document.body && !usable(last);
  return gone && !document.querySelector('dialog[open]');
};
// A list is drawn anew once something was picked from it, on a busy machine for seconds: the one of its name is waited for.
const listed = () => last?.getAttribute?.('role') === 'combobox';
const namesake = () => [...document.querySelectorAll('[role="combobox"]')].find((list) => list.ariaLabel === last.ariaLabel && usable(list));
let due = 0;
const restore = () => {
  if (due || !lost()) return;
  due = setTimeout(() => {
    due = 0;
    if (lost()) {
      const list = listed() && namesake();
      if (list) shut(list);
      else if (listed() && ++waited < 10) restore();
      else near()?.focus({ preventScroll: true });
    } else if (document.activeElement === document.body && listed() && usable(last)) shut(last);
  }, listed() ? 400 : 60);
};
document.addEventListener('focusin', (event) => {
  last = event.target;
  [around, waited] = [[], 0];
  for (let box = last.parentElement; box; box = box.parentElement) around.push(box);
  // among its neighbours, which one it was: after a chip is gone the next one takes its place
  const row = around.find((box) => box.querySelectorAll(pressable).length > 1);
  if (row) around = around.slice(around.indexOf(row));
  before = row ? [...row.querySelectorAll(pressable)].filter(usable).indexOf(last) : 0;
});
// A list that was left by Tab stays open over the page, if it was not shut.
document.addEventListener('focusout', (event) => {
  const list = /** @type {HTMLElement} */ (event.target);
  if (list.getAttribute?.('role') !== 'combobox' || !event.relatedTarget) return;
  setTimeout(() => {
    if (list.getAttribute('aria-expanded') === 'true' && document.activeElement !== list) list.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  });
});
document.addEventListener('pointerdown', (event) => { if (!(/** @type {Element} */ (event.target).closest(pressable))) last = null; });
document.addEventListener('keydown', (event) => {
  const list = /** @type {HTMLElement} */ (event.target);
  if (!['Enter', 'Escape'].includes(event.key) || list.getAttribute?.('role') !== 'combobox') return;
  setTimeout(() => { if (document.activeElement === document.body && usable(list)) shut(list); });
}, true);
/** A pane of code scrolls, so the keyboard must reach it. @type {HTMLCollectionOf<HTMLElement>} */
const panes = /** @type {any} */ (document.getElementsByClassName('cm-scroller'));
const reachable = () => {
  for (const pane of panes) if (pane.tabIndex < 0) Object.assign(pane, { tabIndex: 0, role: 'group', ariaLabel: 'Python code' });
};
new MutationObserver(() => { restore(); reachable(); }).observe(document.body, {
  subtree: true, childList: true, attributes: true, attributeFilter: ['disabled', 'hidden', 'class', 'open', 'inert'],
});
