// The verdict: one sentence on the whole run, and below it what the sentence is based on. While a run is under way the
// sentence says what is being done.
function makeVerdict(sentence, basis, digest) {
  function take(head, status) {
    setText(sentence, wording(head, status));
    sentence.classList.toggle('td-underway', !head.verdict.sentence);
    setText(basis, head.verdict.basis);
    digest.hidden = !head.digest;
    if (!head.digest) return;
    digest.className = 'td-digest ' + head.digest.status;
    setText(digest, head.digest.line);
  }

  function wording(head, status) {
    if (head.verdict.sentence) return head.verdict.sentence;
    if (status === 'queued') return 'Waiting for the runs before this one.';
    if (status !== 'running') return status === 'done' ? 'The run is complete.' : status === 'cancelled' ? 'Stopped before both arms were complete: no verdict.' : '';
    const working = head.arms.find(arm => arm.state === 'working');
    if (!working) return 'Starting.';
    const others = head.arms.filter(arm => arm.state === 'waiting').map(arm => arm.name);
    return 'Arm ' + working.name + ' is at work' + (others.length ? '; arm ' + others.join(' and ') + ' follows.' : '.');
  }

  function clear() {
    setText(sentence, '');
    setText(basis, '');
    digest.hidden = true;
  }
  return { take, clear };
}
