// The Claims page. Text reaches the document through textContent only.
const rows = element.querySelector('.td-claims-rows'), counts = element.querySelector('.td-claims-counts');
let wanted = '', chosen = null;

function draw() {
  if (!props.value) return;
  const found = JSON.parse(props.value);
  if (chosen === null) chosen = new URL(location.href).searchParams.get('name') || '';
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset : {};
  const name = focused.name, word = focused.word;
  counts.replaceChildren();
  for (const [one, count] of [['', found.claims.length], ...Object.entries(found.counts)]) {
    const button = add(counts, 'button', one && wordClass(one), count + ' ' + (one || 'claims'));
    button.type = 'button';
    button.dataset.word = one;
    button.setAttribute('aria-pressed', String(one === wanted));
    button.addEventListener('click', () => { wanted = one; draw(); });
  }
  drawClaims(rows, found, wanted, chosen, (next) => {
    chosen = next === chosen ? '' : next;
    window.tokendynoAddress?.tell('claims', ['name'], [chosen]);
    draw();
  });
  const again = name !== undefined ? [...rows.querySelectorAll('button')].find((one) => one.dataset.name === name)
    : word !== undefined ? [...counts.children].find((one) => one.dataset.word === word) : null;
  again?.focus();
}
onTheme(draw);
draw();
watch('value', draw);
