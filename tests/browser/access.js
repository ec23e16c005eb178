// What may keep someone from using a page. Each function returns one line for each finding.

const name = (e) => {
  const classes = e.className?.baseVal ?? e.className;
  return `${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''}${classes ? '.' + String(classes).trim().split(/\s+/).join('.') : ''}`;
};
const seen = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
const HIDDEN = '[inert], [aria-hidden=true], .visually-hidden, .td-hidden';

// axe-core's findings of these tags and impacts.
const violations = async (tags, impacts) => {
  const found = await axe.run(document, { runOnly: { type: 'tag', values: tags }, resultTypes: ['violations'] });
  return found.violations.filter((one) => impacts.includes(one.impact)).flatMap((one) => one.nodes.map((node) => {
    const why = [...node.any, ...node.all, ...node.none][0]?.message ?? '';
    return `${one.impact} ${one.id}: ${node.target.join(' ')} ${why.slice(0, 120)}`;
  }));
};

// What can be pressed and is smaller than `least` pixels in one direction. WCAG 2.5.8 excepts a link in a sentence. A box
// to tick counts with its label, which ticks it too.
const smallTargets = (least) => {
  const what = 'a[href], button, input, select, textarea, summary, [role=button], [role=tab], [role=option], [role=slider], [tabindex="0"]';
  const dialog = document.querySelector('dialog[open]');
  const pressable = (e) => seen(e) && !e.disabled && !e.closest(HIDDEN) && getComputedStyle(e).pointerEvents !== 'none' && (!dialog || dialog.contains(e));
  const inSentence = (e) => e.tagName === 'A' && getComputedStyle(e).display === 'inline' && e.parentElement.textContent.trim().length > e.textContent.trim().length;
  return [...document.querySelectorAll(what)].filter((e) => pressable(e) && !inSentence(e)).flatMap((e) => {
    const own = e.getBoundingClientRect(), label = ['checkbox', 'radio'].includes(e.type) ? e.closest('label')?.getBoundingClientRect() : null;
    const width = Math.max(own.width, label?.width ?? 0), height = Math.max(own.height, label?.height ?? 0);
    if (!width || !height || (width >= least - 0.5 && height >= least - 0.5)) return [];
    return [`${name(e)} "${(e.getAttribute('aria-label') || e.textContent).trim().slice(0, 30)}" ${width.toFixed(1)}x${height.toFixed(1)}`];
  });
};

// What moves now, and what would move when it changes.
const moving = () => {
  const running = document.getAnimations().filter((one) => one.playState === 'running').map((one) => `runs on ${name(one.effect.target)}`);
  const longest = (text) => Math.max(...text.split(',').map(parseFloat));
  const would = [...document.querySelectorAll('*')].filter((e) => {
    const style = getComputedStyle(e);
    const animated = style.animationName !== 'none' && longest(style.animationDuration) > 0.001;
    return seen(e) && (animated || longest(style.transitionDuration) > 0.001 || style.scrollBehavior === 'smooth');
  });
  return [...running, ...would.map((e) => `would move: ${name(e)}`)];
};

// Texts that lie over each other or beyond the edge of their chart, and a page that is wider than its window. An open list
// lies over the page by intent.
const overlaps = () => {
  const cut = (box, e) => {
    for (let up = e; up && up !== document.body; up = up.parentElement) {
      const style = getComputedStyle(up), edge = up.getBoundingClientRect();
      if (style.overflowX === 'visible' && style.overflowY === 'visible' && style.clipPath === 'none') continue;
      box = {
        left: Math.max(box.left, edge.left), right: Math.min(box.right, edge.right),
        top: Math.max(box.top, edge.top), bottom: Math.min(box.bottom, edge.bottom),
      };
    }
    return box;
  };
  const found = [], walk = document.createTreeWalker(document.querySelector('dialog[open]') || document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || !seen(e) || e.closest(`script, style, [role=listbox], ${HIDDEN}`)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const box = cut(line, e);
      if (box.right - box.left > 1 && box.bottom - box.top > 1) found.push({ e, box, text: node.data.trim().slice(0, 30) });
    }
  }
  const inset = 4; // two lines of text may touch
  const meet = (a, b) => a.left + inset < b.right && b.left + inset < a.right && a.top + inset < b.bottom && b.top + inset < a.bottom;
  const clash = [];
  found.forEach((one, i) => found.slice(i + 1).forEach((other) => {
    if (one.e === other.e || !meet(one.box, other.box)) return;
    clash.push(`"${one.text}" (${name(one.e)}) and "${other.text}" (${name(other.e)}) at ${Math.round(one.box.left)},${Math.round(one.box.top)}`);
  }));
  const beyond = [...document.querySelectorAll('.main-svg text')].filter(seen).flatMap((e) => {
    const box = e.getBoundingClientRect(), edge = e.closest('.main-svg').getBoundingClientRect();
    const fits = box.left > edge.left - 1 && box.right < edge.right + 1 && box.top > edge.top - 1 && box.bottom < edge.bottom + 1;
    return fits ? [] : [`"${e.textContent}" is cut: ${[box.left - edge.left, box.right - edge.right, box.top - edge.top, box.bottom - edge.bottom].map(Math.round)} px from the edges of its chart`];
  });
  const width = document.documentElement.scrollWidth, window_ = document.documentElement.clientWidth;
  return [...beyond, ...(width > window_ ? [`the page is ${width} px wide in a window of ${window_}`] : []), ...clash];
};

// What has the focus, in a word.
const focused = () => {
  const e = document.activeElement;
  return e === document.body ? 'nothing' : e.closest('button')?.id || e.dataset.press || e.getAttribute('aria-label') || e.textContent.trim().slice(0, 40);
};
