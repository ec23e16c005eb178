// Words of the field are explained where they stand: a heading that the glossary knows is a button, whose sentence opens
// on hover, focus and tap. Escape, leaving and pressing elsewhere close it.

import { button, el } from '../../components/js/dom.js';

const LEAVING_MS = 200, GAP_PX = 6, EDGE_PX = 8;

/** @type {HTMLElement | null} */
let tip = null, opener = null;
let closing = 0;

// An element with that text, explained if the glossary knows it.
/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {string} className @param {string} text
 */
export function titled(tag, className, text) {
  /** @type {Live.Term | undefined} */
  const term = settings.terms.find(({ titles }) => titles.some(name => text === name || text.startsWith(name + ',')));
  if (!term) return el(tag, className, text);
  const open = () => show(word, term.meaning), leave = () => { closing = setTimeout(hide, LEAVING_MS); };
  const node = el(tag, className), word = button('td-term', text, '', open);
  word.addEventListener('pointerenter', event => { if (event.pointerType === 'mouse') open(); });
  word.addEventListener('pointerleave', event => { if (event.pointerType === 'mouse') leave(); });
  word.addEventListener('focus', open);
  word.addEventListener('blur', leave);
  node.append(word);
  return node;
}

/** @param {HTMLElement} word @param {string} meaning */
function show(word, meaning) {
  tip ??= make();
  clearTimeout(closing);
  if (opener && opener !== word) hide();
  opener = word;
  tip.textContent = meaning;
  word.setAttribute('aria-describedby', tip.id);
  if (!tip.matches(':popover-open')) tip.showPopover();
  place();
}

// Below its word, or above it where there is no room.
function place() {
  if (!opener) return;
  const at = opener.getBoundingClientRect(), { width, height } = tip.getBoundingClientRect();
  const below = at.bottom + GAP_PX + height <= window.innerHeight;
  tip.style.left = Math.max(EDGE_PX, Math.min(at.left, window.innerWidth - width - EDGE_PX)) + 'px';
  tip.style.top = (below ? at.bottom + GAP_PX : at.top - GAP_PX - height) + 'px';
}

function hide() {
  clearTimeout(closing);
  opener?.removeAttribute('aria-describedby');
  opener = null;
  if (tip?.matches(':popover-open')) tip.hidePopover();
}

function make() {
  const box = el('div', 'td-meaning');
  box.id = 'td-meaning-' + (element.id || element.closest('[id]').id);
  box.popover = 'manual';
  box.setAttribute('role', 'tooltip');
  box.addEventListener('pointerenter', () => clearTimeout(closing));
  box.addEventListener('pointerleave', () => { closing = setTimeout(hide, LEAVING_MS); });
  element.append(box);
  document.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || !opener) return;
    event.preventDefault();  // it closes this, and stops no run
    hide();
  }, true);
  document.addEventListener('pointerdown', event => {
    const at = /** @type {Node} */ (event.target);
    if (opener && !opener.contains(at) && !box.contains(at)) hide();
  });
  window.addEventListener('scroll', place, { passive: true, capture: true });
  return box;
}
