// The status page: asks the agent for what is looked at, and shows what it sends. What is looked at stands in the
// address, behind the #, so that a reload or a link shows the same.

import { byId, say } from './elements.js';
import { showHost, showLoad } from './host.js';
import { openDetail, sample, showDetail, showList } from './load-balancers.js';

/** Milliseconds after the last key of a search, and after a connection that was refused. */
const PAUSE = 200;
const AGAIN = 3_000;

const live = byId('live');
const search = /** @type {HTMLInputElement} */ (byId('search'));
const only = /** @type {HTMLInputElement} */ (byId('only'));

/** `search`, `only`, `page`, `open`, as the agent takes them. */
let asked = new URLSearchParams();
/** @type {EventSource | undefined} */
let source;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** @param {string} [answer] What is looked at; without it, as the address says. */
function look(answer = location.hash.slice(1)) {
  asked = new URLSearchParams(answer);
  if (document.activeElement !== search) search.value = asked.get('search') ?? '';
  only.checked = asked.get('only') === 'trouble';
  openDetail(asked.get('open') ?? '');
  connect();
}

/** @param {Readonly<Record<string, string>>} change '' takes something away. */
function ask(change) {
  for (const [name, value] of Object.entries(change)) {
    if (value === '') asked.delete(name);
    else asked.set(name, value);
  }
  history.replaceState(null, '', `#${asked}`);
  look();
}

function connect() {
  disconnect();
  if (document.hidden) return;
  const opened = new EventSource(`/events?${asked}`);
  source = opened;
  opened.addEventListener('open', () => tell('live', 'Live'));
  opened.addEventListener('error', () => {
    tell('lost', `Connection lost at ${new Date().toLocaleTimeString('en-GB')}`);
    // One that was refused does not come again by itself.
    if (opened.readyState === EventSource.CLOSED) timer = setTimeout(connect, AGAIN);
  });
  on('summary', showHost);
  on('load', showLoad);
  on('list', (list) => showList(list, toggle));
  on('detail', showDetail);

  /**
   * @param {string} name
   * @param {(value: any) => void} show
   */
  function on(name, show) {
    opened.addEventListener(name, ({ data }) => show(JSON.parse(data)));
  }
}

function disconnect() {
  clearTimeout(timer);
  source?.close();
  source = undefined;
}

/**
 * @param {'live' | 'lost'} state
 * @param {string} words
 */
function tell(state, words) {
  live.dataset.state = state;
  document.body.toggleAttribute('data-stale', state === 'lost');
  say(live, words);
}

/** @param {string} key */
function toggle(key) {
  ask({ open: asked.get('open') === key ? '' : key });
}

/** @param {number} by */
function turn(by) {
  ask({ page: String(Math.max(1, Number(asked.get('page') ?? 1) + by)) });
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;
search.addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => ask({ search: search.value.trim(), page: '' }), PAUSE);
});
only.addEventListener('change', () => ask({ only: only.checked ? 'trouble' : '', page: '' }));
byId('which').addEventListener('click', (event) => {
  event.preventDefault();
  ask({ only: 'trouble', search: '', page: '' });
  search.value = '';
  byId('load-balancers').focus();
});
byId('previous').addEventListener('click', () => turn(-1));
byId('next').addEventListener('click', () => turn(1));
addEventListener('hashchange', () => look());
// A page that nobody sees asks for nothing.
document.addEventListener('visibilitychange', () => (document.hidden ? disconnect() : connect()));
setInterval(sample, 1_000);
look();
