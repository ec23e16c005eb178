// DOM helpers and number formats. Text reaches the document through textContent only: generated text, model names and
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

// The first row of a table with a column for each arm.
/** @param {string} first @param {{ name: string }[]} arms */
export function armsRow(first, arms) {
  const row = el('tr', '');
  row.append(el('th', '', first), ...arms.map(arm => {
    const cell = el('th', 'arm-' + arm.name.toLowerCase());
    cell.append(el('span', 'td-arm', arm.name));
    return cell;
  }));
  for (const cell of row.querySelectorAll('th')) cell.scope = 'col';
  return row;
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

/** @param {string} name */
export function css(name) {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

/** @param {number} value */
export function count(value) {
  return value.toLocaleString('en-US');
}

/** @param {number} value */
export function seconds(value) {
  if (value >= 100) return Math.round(value) + ' s';
  return value.toFixed(value >= 10 ? 1 : 2) + ' s';
}

// The unit that suits a size in bytes.
/** @param {number} bytes */
export function byteUnit(bytes) {
  if (bytes >= 4 * 2 ** 30) return { unit: 'GiB', scale: 1 / 2 ** 30 };
  if (bytes >= 2 * 2 ** 20) return { unit: 'MiB', scale: 1 / 2 ** 20 };
  return { unit: 'KiB', scale: 1 / 1024 };
}
