// What is said of the run that a panel shows, as long as it shows that run.

const show = () => {
  /** @type {Arm.Stale} */
  const { run, text } = props.value ? JSON.parse(props.value) : { run: '', text: '' };
  const panel = document.querySelector('#' + settings.panel + ' [data-run]');
  element.querySelector('.td-line-text').textContent = run && panel?.dataset.run === run ? text : '';
};
show();
watch('value', show);
window.addEventListener('tokendyno-run', show);
