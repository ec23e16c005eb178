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
  const made = async () => {
    const reply = await fetch(href);
    if (!reply.ok) throw new Error(refused = (await reply.json()).detail);
    return new Blob([await reply.arrayBuffer()], { type: kind });
  };
  try {
    await navigator.clipboard.write([new ClipboardItem({ [kind]: made() })]);
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
