// What the whole page needs, whichever of its parts is shown.

import './focus.js';
import { isKeyOfPage } from '../components/js/dom.js';

// A script is saved under the name that stands above it; Gradio would call every one of them file.py.
document.addEventListener('click', (event) => {
  const target = /** @type {Element} */ (event.target);
  /** @type {HTMLAnchorElement} */
  const link = target.closest?.('.td-code a[download]');
  const name = link?.closest('.td-code').querySelector('[data-testid="block-label"]')?.textContent.match(/\S+\.py\s*$/);
  if (name) link.download = name[0].trim();
}, true);

// A finished run to be copied: as Markdown, as a picture, as the command that repeats it. The server writes all three.
document.addEventListener('click', async (event) => {
  const button = /** @type {HTMLElement} */ (/** @type {Element} */ (event.target).closest?.('.td-copy-as'));
  const panel = /** @type {HTMLElement} */ (button?.closest('[data-run]'));
  if (!panel) return;
  const { as } = button.dataset, kind = as === 'png' ? 'image/png' : 'text/plain';
  const href = 'files/' + encodeURIComponent(panel.dataset.run) + '.' + as;
  /** @param {string} text */
  const say = (text) => { panel.querySelector('.td-copied-as').textContent = text; };
  let refused = '';
  const blob = async () => {
    const reply = await fetch(href);
    if (!reply.ok) throw new Error(refused = (await reply.json()).detail);
    return new Blob([await reply.arrayBuffer()], { type: kind });
  };
  try {
    await navigator.clipboard.write([new ClipboardItem({ [kind]: blob() })]);
    say(button.textContent + ' copied');
  } catch {
    if (refused) { say(refused); return; }
    const link = document.createElement('a');  // no clipboard without HTTPS, or it is not allowed
    link.href = href;
    link.download = '';
    link.click();
    say(button.textContent + ' saved as a file, since this page may not copy');
  }
  setTimeout(() => say(''), 5000);
});

// Keys of the whole page: / searches what can be added to an arm, Escape stops the run that goes on. A slide has its own.

/** @param {string} selector @returns {HTMLButtonElement | undefined} */
const shown = (selector) => [.../** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll(selector))].find((button) => button.checkVisibility() && !button.disabled);

document.addEventListener('keydown', (event) => {
  if (!['/', 'Escape'].includes(event.key) || !isKeyOfPage(event) || document.querySelector('dialog[open]')) return;
  const button = event.key === '/' ? shown('#verdicts-a [data-press="add"]') : shown('#stop, #batch-stop');
  if (!button) return;
  event.preventDefault();
  button.click();
});
