// A new element at the end of its parent. Text reaches the document through textContent only.
/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {Node & ParentNode} parent @param {K} tag @param {string} [className] @param {string} [text]
 */
export const add = (parent, tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
};
