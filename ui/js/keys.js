// Keys of the whole page: / searches what can be added to an arm, Escape stops the run that goes on. A slide has its own.
import { isKeyOfPage } from '../components/js/dom.js';

/** @param {string} selector @returns {HTMLButtonElement | undefined} */
const shown = (selector) => [.../** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll(selector))].find((one) => one.checkVisibility() && !one.disabled);

document.addEventListener('keydown', (event) => {
  if (!['/', 'Escape'].includes(event.key) || !isKeyOfPage(event) || document.querySelector('dialog[open]')) return;
  const button = event.key === '/' ? shown('#verdicts-a [data-press="add"]') : shown('#stop, #batch-stop');
  if (!button) return;
  event.preventDefault();
  button.click();
});
