// Keys of the page: not those that somebody types into a field, nor those of a shortcut of the browser.
/** @param {KeyboardEvent} event */
export const isKeyOfPage = (event) => {
  const at = /** @type {HTMLElement} */ (event.composedPath()[0]);
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing && !event.defaultPrevented;
  const field = at instanceof HTMLInputElement ? !['range', 'checkbox', 'radio', 'button'].includes(at.type) : false;
  return plain && !field && !at.closest?.('textarea, select, [contenteditable="true"], [role="combobox"], [role="listbox"]');
};
