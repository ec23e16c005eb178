// A line of plain text: it reaches the document as a text node, never as HTML.

const show = () => {
  element.querySelector('.td-line-text').textContent = props.value || '';
};
show();
watch('value', show);
