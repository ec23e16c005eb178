// The leading axes of this kind of model and whatever was set are always shown. The rest is hidden by a style rule, so
// every control stays in the document: Tab and events reach it as soon as the button is pressed.

const button = element.querySelector('.td-more');
const rule = element.querySelector('style');
let open = false;
const show = () => {
  /** @type {Arm.Fold} */
  const { arm, folded } = JSON.parse(props.value);
  const hidden = folded.map((name) => `#axis-${arm}-${name}:not(:focus-within)`).join(', ');
  rule.textContent = open || !hidden ? '' : `${hidden} { display: none !important; }`;
  button.textContent = open ? 'Fewer options \u25b4' : `More options (${folded.length}) \u25be`;
  button.setAttribute('aria-expanded', String(open));
  button.hidden = !folded.length;
};
button.addEventListener('click', () => { open = !open; show(); });
show();
watch('value', show);
