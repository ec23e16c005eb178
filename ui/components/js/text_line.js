// A line of plain text: it reaches the document as a text node, never as HTML.

const show = () => {
  const line = settings.into && document.querySelector(settings.into) || element.querySelector('.td-line-text');
  line.textContent = props.value || '';
};
show();
watch('value', show);
