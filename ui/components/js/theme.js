// The theme is a class of the body, and charts are drawn in its inks: what was drawn is drawn again when it changes.
/** @param {() => void} draw */
export const onTheme = (draw) => {
  new MutationObserver(() => draw()).observe(document.body, { attributes: true, attributeFilter: ['class'] });
};
