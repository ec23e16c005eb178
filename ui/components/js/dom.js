// Elements, tables and number formats. Text reaches the document through text nodes only: generated text, model names and
// error messages are untrusted and may contain markup.

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {string} [className] @param {string} [text]
 */
export function el(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

/**
 * A new element at the end of its parent.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {Node & ParentNode} parent @param {K} tag @param {string} [className] @param {string} [text]
 */
export function add(parent, tag, className, text) {
  const node = el(tag, className, text);
  parent.append(node);
  return node;
}

/**
 * A button. `label`: what a screen reader says, where that is more than its text.
 * @param {string} className @param {string} text @param {string} label @param {() => void} act
 */
export function button(className, text, label, act) {
  const node = el('button', className, text);
  node.type = 'button';
  if (label) node.setAttribute('aria-label', label);
  node.addEventListener('click', act);
  return node;
}

// Write only what changed: a needless write costs a layout, on a machine that may be measuring itself.
/** @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** @template {HTMLElement} [T=HTMLElement] @param {string} selector @returns {T} */
export function find(selector) {
  return element.querySelector(selector);
}

/** The value of a CSS variable. @param {string} name @param {Element} [node] */
export function css(name, node = element) {
  return getComputedStyle(node).getPropertyValue(name).trim();
}

/** An arm's name as a badge, in its colour. @param {string} name */
export function badge(name) {
  return el('span', 'td-arm', name);
}

// --- tables: a cell is a text, or nodes ---

/** @typedef {string | Node | (string | Node)[]} Cell */

/** A head of one row. @param {Cell[]} cells */
export function tableHead(cells) {
  const head = el('thead'), row = add(head, 'tr');
  for (const content of cells) {
    const cell = add(row, 'th');
    cell.scope = 'col';
    cell.append(...[content].flat());
  }
  return head;
}

/** The head of a table with a column for each arm. @param {string} first @param {{ name: string }[]} arms */
export function armsHead(first, arms) {
  const head = tableHead([first, ...arms.map(arm => badge(arm.name))]);
  arms.forEach((arm, i) => { head.rows[0].cells[i + 1].className = 'arm-' + arm.name.toLowerCase(); });
  return head;
}

/** A row: its name, then its cells. @param {Cell} name @param {Cell[]} cells @param {string} [className] */
export function tableRow(name, cells, className) {
  const row = el('tr', className), first = add(row, 'th');
  first.scope = 'row';
  first.append(...[name].flat());
  for (const content of cells) add(row, 'td').append(...[content].flat());
  return row;
}

/** @param {Node[]} rows */
export function tableBody(rows) {
  const body = el('tbody');
  body.append(...rows);
  return body;
}

/** A table that moves in its box where that is too narrow. @param {string} className @param {string} label @param {Node[]} parts */
export function scrolled(className, label, parts) {
  const box = el('div', className), table = add(box, 'table');
  Object.assign(box, { tabIndex: 0, role: 'region', ariaLabel: label });
  table.append(...parts);
  return { box, table };
}

// --- drawing again ---

/**
 * Draws into a box what is taken, whenever it differs from what is shown. A section without anything is hidden.
 * @template {any[]} T
 * @param {HTMLElement} box @param {(...what: T) => void} draw
 */
export function redrawn(box, draw) {
  let shown = '';
  const empty = () => {
    box.replaceChildren();
    if (box.tagName === 'SECTION') box.hidden = true;
  };
  return {
    /** @param {T} what */
    take(...what) {
      const now = JSON.stringify(what);
      if (now === shown) return;
      shown = now;
      empty();
      draw(...what);
      if (box.childNodes.length) box.hidden = false;
    },
    clear() { shown = ''; empty(); },
  };
}

// A redraw between the press of a button and its release would take the button away, and the click with it. While
// something in a box is pressed, its redraw waits for the release.
/** @param {HTMLElement} box @param {() => void} draw */
export function afterPress(box, draw) {
  let pressed = false, waits = false;
  const press = () => { pressed = true; };
  const release = () => {
    if (!pressed) return;
    pressed = false;
    setTimeout(() => { if (waits && !pressed) { waits = false; draw(); } });  // the click comes first
  };
  box.addEventListener('pointerdown', event => { if (event.button === 0) press(); });
  box.addEventListener('keydown', event => { if (event.key === ' ') press(); });
  for (const name of ['pointerup', 'pointercancel', 'keyup', 'blur']) window.addEventListener(name, release);
  return () => { if (pressed) waits = true; else draw(); };
}

// The theme is a class of the body, and charts are drawn in its inks: what was drawn is drawn again when it changes.
/** @param {() => void} draw */
export function onTheme(draw) {
  new MutationObserver(() => draw()).observe(document.body, { attributes: true, attributeFilter: ['class'] });
}

// --- keyboard ---

/** What has the focus inside a box; null where it is elsewhere. @param {Element} box @returns {HTMLElement | null} */
export function focusWithin(box) {
  const focused = document.activeElement;
  return focused instanceof HTMLElement && box.contains(focused) ? focused : null;
}

/** Keys of the page: not those that somebody types into a field, nor those of a shortcut of the browser. @param {KeyboardEvent} event */
export function isKeyOfPage(event) {
  const at = /** @type {HTMLElement} */ (event.composedPath()[0]);
  const alone = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing && !event.defaultPrevented;
  const field = at instanceof HTMLInputElement ? !['range', 'checkbox', 'radio', 'button'].includes(at.type) : false;
  return alone && !field && !at.closest?.('textarea, select, [contenteditable="true"], [role="combobox"], [role="listbox"]');
}

// --- numbers ---

/** @param {number} value */
export function count(value) {
  return value.toLocaleString('en-US');
}

/** "1 run", "2 runs". @param {number} value @param {string} noun */
export function plural(value, noun) {
  return count(value) + ' ' + noun + (value === 1 ? '' : 's');
}

/** @param {number} value */
export function seconds(value) {
  if (value >= 100) return Math.round(value) + ' s';
  return value.toFixed(value >= 10 ? 1 : 2) + ' s';
}

/** With at most four digits. @param {number} value */
export function figure(value) {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 4 });
}

/** The unit that suits a size. @param {number} bytes */
export function byteUnit(bytes) {
  if (bytes >= 4 * 2 ** 30) return { unit: 'GiB', scale: 1 / 2 ** 30 };
  if (bytes >= 2 * 2 ** 20) return { unit: 'MiB', scale: 1 / 2 ** 20 };
  return { unit: 'KiB', scale: 1 / 1024 };
}
