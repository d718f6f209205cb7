// The status page: asks the agent for content by a query, and shows the agent's events. The query is in the fragment of
// the address, so that a reload or a link shows the same content.

import { byId, setText } from './elements.js';
import { showHost, showLoad } from './host.js';
import { openDetail, showDetail, showList } from './load-balancers.js';
import { showNamespaces } from './namespaces.js';
import { onSorting, showSorting } from './sorting.js';
import { onVerdict, showOnly } from './verdicts.js';

/** After the last key of a search. */
const SEARCH_DELAY_MS = 200;
/** After a refused connection. */
const RECONNECT_DELAY_MS = 3_000;

const live = byId('live');
const search = /** @type {HTMLInputElement} */ (byId('search'));
const namespace = /** @type {HTMLSelectElement} */ (byId('namespace'));

/** Has `search`, `namespace`, `only`, `sort`, `page` and `open`. */
let query = new URLSearchParams();
/** @type {EventSource | undefined} */
let source;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** @param {boolean} [isByLink] The address has come from elsewhere. */
function load(isByLink = false) {
  query = new URLSearchParams(location.hash.slice(1));
  if (document.activeElement !== search) search.value = query.get('search') ?? '';
  showOnly(query.get('only') ?? '');
  showNamespaces([], query.get('namespace') ?? '');
  showSorting(query.get('sort') ?? '');
  openDetail(query.get('open') ?? '', isByLink);
  connect();
}

/** @param {Readonly<Record<string, string>>} change '' removes a parameter. */
function setQuery(change) {
  for (const [name, value] of Object.entries(change)) {
    if (value === '') query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(null, '', `#${query}`);
  load();
}

function connect() {
  disconnect();
  if (document.hidden) return;
  const opened = new EventSource(`/events?${query}`);
  source = opened;
  opened.addEventListener('open', () => showConnection('live', 'Live'));
  opened.addEventListener('error', () => {
    showConnection('lost', `Connection lost at ${new Date().toLocaleTimeString('en-GB')}`);
    // The browser does not retry a refused connection.
    if (opened.readyState === EventSource.CLOSED) timer = setTimeout(connect, RECONNECT_DELAY_MS);
  });
  on('summary', showHost);
  on('load', showLoad);
  on('list', (list) => showList(list, toggle));
  on('namespaces', (names) => showNamespaces(names, query.get('namespace') ?? ''));
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
 * @param {string} text
 */
function showConnection(state, text) {
  live.dataset.state = state;
  document.body.toggleAttribute('data-stale', state === 'lost');
  setText(live, text);
}

/** @param {string} key */
function toggle(key) {
  setQuery({ open: query.get('open') === key ? '' : key });
}

/** @param {number} by */
function turnPages(by) {
  setQuery({ page: String(Math.max(1, Number(query.get('page') ?? 1) + by)) });
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;
search.addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => setQuery({ search: search.value.trim(), page: '' }), SEARCH_DELAY_MS);
});
namespace.addEventListener('change', () => setQuery({ namespace: namespace.value, page: '' }));
onSorting((sort) => setQuery({ sort, page: '' }));
onVerdict((only) => setQuery({ only, page: '' }));
byId('which').addEventListener('click', (event) => {
  event.preventDefault();
  setQuery({ only: 'trouble', search: '', namespace: '', sort: '', page: '' });
  search.value = '';
  byId('load-balancers').focus();
});
byId('previous').addEventListener('click', () => turnPages(-1));
byId('next').addEventListener('click', () => turnPages(1));
addEventListener('hashchange', () => load(true));
// A hidden page receives nothing.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) disconnect();
  else connect();
});
load(true);
