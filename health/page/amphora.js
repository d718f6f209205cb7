// The status page of an amphora: shows the agent's events.

/** @import { AmphoraPageList, AmphoraPagePool, AmphoraPageSummary } from '../amphora-page-model.ts' */
/** @import { Fact } from './amphora-words.js' */

import {
  amphoraFacts,
  headline,
  listenerLine,
  listenerTitle,
  loadBalancerFacts,
  statusWords,
  subline,
} from './amphora-words.js';
import { byId, element, keyed, setText } from './elements.js';
import { count, countOf, moment } from './words.js';

/** After a refused connection. */
const RECONNECT_DELAY_MS = 3_000;

const live = byId('live');

/** @type {EventSource | undefined} */
let source;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

function connect() {
  disconnect();
  // A hidden page receives nothing.
  if (document.hidden) return;
  const opened = new EventSource('/events');
  source = opened;
  opened.addEventListener('open', () => showConnection('live', 'Live'));
  opened.addEventListener('error', () => {
    showConnection('lost', `Connection lost at ${new Date().toLocaleTimeString('en-GB')}`);
    // The browser does not retry a refused connection.
    if (opened.readyState === EventSource.CLOSED) timer = setTimeout(connect, RECONNECT_DELAY_MS);
  });
  opened.addEventListener('summary', ({ data }) => showSummary(JSON.parse(data)));
  opened.addEventListener('list', ({ data }) => showListeners(JSON.parse(data)));
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

/** @param {AmphoraPageSummary} summary */
function showSummary(summary) {
  const { host, version, startedAt, loadBalancers } = summary;
  const { tone, text } = headline(summary);
  document.title = `${text} · ${host} · Headgate`;
  setText(byId('host'), host);
  byId('banner').dataset.tone = tone;
  setText(byId('headline'), text);
  setText(byId('subline'), subline(summary));
  showFacts(byId('vitals'), amphoraFacts(summary));
  byId('none').hidden = loadBalancers.length > 0;
  keyed(
    byId('load-balancers'),
    loadBalancers,
    ({ id }) => id,
    () => element('dl', { class: 'vitals card' }),
    (list, loadBalancer) => showFacts(list, loadBalancerFacts(loadBalancer)),
  );
  setText(byId('about'), `Headgate ${version}, an amphora of Octavia on ${host}, since ${moment(startedAt)}`);
}

/**
 * @param {HTMLElement} list
 * @param {readonly Fact[]} facts
 */
function showFacts(list, facts) {
  keyed(
    list,
    facts,
    ({ term }) => term,
    ({ term }) => element('div', {}, element('dt', {}, term)),
    (item, { tone, lines }) => {
      item.dataset.tone = tone;
      const shown = lines.map((text, at) => ({ text, at }));
      keyed(
        item,
        shown,
        ({ at }) => `${at}`,
        () => element('dd'),
        (line, { text }) => setText(line, text),
      );
    },
  );
}

/** @param {AmphoraPageList} list */
function showListeners({ rows, found }) {
  setText(byId('found'), count(found));
  const home = byId('listeners');
  home.hidden = rows.length === 0;
  keyed(
    home,
    rows,
    ({ id }) => id,
    ({ status, members }) => listenerElement(status === '' || members.down > 0 || rows.length === 1),
    (item, row) => {
      const [details] = item.children;
      const [summary, table, more] = details?.children ?? [];
      const [badge, title, line] = summary?.children ?? [];
      const body = table?.querySelector('tbody');
      item.toggleAttribute('data-grave', row.status === '');
      if (badge instanceof HTMLElement) showStatus(badge, row.status);
      if (title) setText(title, listenerTitle(row));
      if (line) setText(line, listenerLine(row));
      if (body) showPools(body, row.pools);
      if (more instanceof HTMLElement) showMore(more, row.morePools, 'pool', `headgate why ${row.id}`);
    },
  );
  showMore(byId('more-listeners'), found - rows.length, 'listener', 'headgate list');
}

/** @param {boolean} isOpen It has something to look at, or is the only one. */
function listenerElement(isOpen) {
  const summary = element(
    'summary',
    {},
    element('span', { class: 'state' }),
    ' ',
    element('span'),
    ' ',
    element('code'),
  );
  const heads = ['Pool', 'Member', 'Status'].map((text) => element('th', { scope: 'col' }, text));
  const table = element(
    'table',
    { 'aria-label': 'Pools and members' },
    element('thead', {}, element('tr', {}, ...heads)),
    element('tbody'),
  );
  const details = element('details', { open: isOpen ? '' : undefined }, summary, table);
  details.append(element('p', { class: 'hint' }));
  return element('li', {}, details);
}

/**
 * A line for each pool, and after it one for each of its members.
 * @param {HTMLElement} body
 * @param {readonly AmphoraPagePool[]} pools
 */
function showPools(body, pools) {
  const lines = pools.flatMap(({ id: pool, status, members, moreMembers }, at) => [
    { key: `${at}`, pool, member: moreMembers > 0 ? `${countOf(moreMembers, 'more member')}` : '', status },
    ...members.map((each) => ({ key: `${at} ${each.id}`, pool: '', member: each.id, status: each.status })),
  ]);
  keyed(
    body,
    lines,
    ({ key }) => key,
    () =>
      element('tr', {}, element('td'), element('td'), element('td', {}, element('span', { class: 'state' }))),
    (line, { pool, member, status }) => {
      const [first, second, third] = line.children;
      const badge = third?.firstElementChild;
      if (first) setText(first, pool);
      if (second) setText(second, member);
      if (badge instanceof HTMLElement) showStatus(badge, status);
    },
  );
}

/**
 * @param {HTMLElement} badge
 * @param {string} status
 */
function showStatus(badge, status) {
  const { tone, text } = statusWords(status);
  badge.dataset.tone = tone;
  setText(badge, text);
}

/**
 * @param {HTMLElement} hint
 * @param {number} left
 * @param {string} what
 * @param {string} command
 */
function showMore(hint, left, what, command) {
  hint.hidden = left <= 0;
  setText(hint, `And ${countOf(left, `more ${what}`)}: ${command} lists all of them.`);
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) disconnect();
  else connect();
});
connect();
