// A script is saved under the name that stands above it; Gradio would call every one of them file.py.
document.addEventListener('click', (event) => {
  const target = /** @type {Element} */ (event.target);
  /** @type {HTMLAnchorElement} */
  const link = target.closest?.('.td-code a[download]');
  const name = link?.closest('.td-code').querySelector('[data-testid="block-label"]')?.textContent.match(/\S+\.py\s*$/);
  if (name) link.download = name[0].trim();
}, true);
