"""The verdicts of the rules on an arm, each with a button for its fix, and its predicted memory beside what is free."""

import gradio as gr
import msgspec

from backend import units
from backend.arms.check import Checked
from backend.optimizations import all_axes

_SHOW = """
const labels = { note: 'Note', fallback: '\u25b2 Fallback', blocked: '\u2715 Blocked' };
const add = (parent, tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
};
const show = () => {
  const box = element.querySelector('.td-verdicts');
  box.replaceChildren();
  if (!props.value) return;
  const found = JSON.parse(props.value);
  if (found.memory) {
    const line = add(box, 'p', 'td-memory' + (found.share > 1 ? ' over' : ''));
    const gauge = add(line, 'i', 'td-gauge');
    add(gauge, 'i').style.width = Math.min(100, 100 * found.share) + '%';
    add(line, 'span', '', found.memory).title = found.parts;
  }
  for (const one of found.verdicts) {
    const line = add(box, 'p', 'td-verdict ' + one.level);
    add(line, 'span', '', (labels[one.level] || one.level) + ': ' + one.reason);
    if (one.fix_text) {
      const button = add(line, 'button', 'td-fix', one.fix_text);
      button.type = 'button';
      button.addEventListener('click', () => trigger('fix', { choices: one.fix }));
    }
    if (one.source) {
      const source = add(line, 'details', 'td-source');
      add(source, 'summary', '', 'source');
      const link = /^https:/.test(one.source) && /^\\S+$/.test(one.source);
      const where = add(source, link ? 'a' : 'span', '', one.source);
      if (link) Object.assign(where, { href: one.source, target: '_blank', rel: 'noopener noreferrer' });
    }
  }
};
show();
watch('value', show);
"""


class VerdictLine(msgspec.Struct):
    """One verdict as it is shown. `fix`: axis -> choice, sent back when its button is pressed."""

    level: str
    reason: str
    source: str
    fix: dict[str, str]
    fix_text: str


class Verdicts(msgspec.Struct):
    """The value of the component. `share`: predicted memory as a fraction of what is free."""

    memory: str
    parts: str
    share: float
    verdicts: list[VerdictLine]


def verdict_box(elem_id: str) -> gr.HTML:
    """The component; its value is what `describe` returns. A press of a fix fires the event "fix" with `choices`."""
    return gr.HTML(
        value="",
        html_template='<div class="td-verdicts" aria-live="polite"></div>',
        js_on_load=_SHOW,
        apply_default_css=False,
        elem_id=elem_id,
    )


def describe(checked: Checked, room_bytes: int) -> str:
    """A checked arm as the component's value."""
    memory = checked.memory
    parts = ", ".join(
        f"{name} {_size(size)}"
        for name, size in (
            ("weights", memory.weights), ("KV cache", memory.kv), ("workspace", memory.workspace),
            ("runtime", memory.runtime_bytes),
        )
    )  # fmt: skip
    text = f"Predicted memory {_size(memory.total)} of {_size(room_bytes)} free"
    lines = [
        VerdictLine(verdict.level, verdict.reason, verdict.source, verdict.fix, _fix_text(verdict.fix))
        for verdict in checked.verdicts
        if verdict.level != "ok"
    ]
    return msgspec.json.encode(Verdicts(text, parts, memory.total / max(1, room_bytes), lines)).decode()


def _fix_text(fix: dict[str, str]) -> str:
    titles = {axis.name: axis.title for axis in all_axes()}
    return "Set " + ", ".join(f"{titles.get(axis, axis)} to {choice}" for axis, choice in fix.items()) if fix else ""


def _size(size_bytes: int) -> str:
    return " ".join(units.bytes_text(size_bytes))
