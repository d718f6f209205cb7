// The upper part of the page: this host and its peer, traffic, problems.

/** @import { PageInstance, PageLoad, PageProblem, PageProblems, PageSummary, Verdict } from '../page-model.ts' */

import { chart } from './charts.js';
import { byId, element, keyed, setText } from './elements.js';
import { count, countOf, moment, percent, showRouterState } from './words.js';

/** Of the charts; the agent keeps as many values. */
const SECONDS = 120;

const ROLES = {
  master: 'Master',
  backup: 'Backup',
  fault: 'Fault',
  unknown: 'Unknown',
  alone: 'Alone',
};

/** @param {PageSummary} summary */
export function showHost(summary) {
  const { host, version, startedAt, problems, problemCount } = summary;
  setText(byId('host'), host);
  document.title = `${headline(summary).text} · ${host} · Headgate`;
  const { tone, text } = headline(summary);
  byId('banner').dataset.tone = tone;
  setText(byId('headline'), text);
  setText(byId('subline'), subline(summary));
  byId('which').hidden = outOf(summary.counts) + summary.members.down === 0;
  showFacts(summary);
  showRouters(summary.instances);
  showProblems(problems, problemCount);
  setText(byId('about'), `Headgate ${version} on ${host}, since ${moment(startedAt)}`);
}

/**
 * @param {PageSummary} summary
 * @returns {{ readonly tone: string, readonly text: string }}
 */
function headline({ fault, counts, members, problemCount, haproxy, ...pair }) {
  if (fault !== '') return { tone: 'poor', text: `✕ ${fault}` };
  if (!haproxy.serving) return { tone: 'poor', text: '✕ HAProxy does not serve' };
  if (pair.role === 'fault')
    return { tone: 'poor', text: '✕ VRRP has a fault: this host cannot hold the VIPs' };
  const out = outOf(counts);
  if (out > 0)
    return {
      tone: 'fair',
      text: `! ${countOf(out, 'load balancer is', 'load balancers are')} not fully served`,
    };
  if (members.down > 0) {
    const down = countOf(members.down, 'member fails its check', 'members fail their checks');
    return { tone: 'fair', text: `! ${down}` };
  }
  if (problemCount > 0)
    return { tone: 'fair', text: `! Served, with ${countOf(problemCount, 'problem')} to fix` };
  const text = failover(pair);
  if (text !== '') return { tone: 'fair', text: `! ${text}` };
  return { tone: 'good', text: '● All is well' };
}

/**
 * What prevents a failover; '' for nothing.
 *
 * @param {Pick<PageSummary, 'role' | 'maintenance' | 'lowered' | 'peer'>} pair
 */
function failover({ role, maintenance, lowered, peer }) {
  if (maintenance) return 'In maintenance';
  if (lowered.length > 0) return `Served, but this host has a lower priority: ${lowered.join(', ')}`;
  if (role === 'unknown') return 'Served, but the state of VRRP is unknown';
  if (peer !== undefined && !peer.isHeard) return 'Served, but the peer sends no reports';
  if (peer !== undefined && peer.notReady !== '')
    return `Served, but the peer cannot take over: ${peer.notReady}`;
  return '';
}

/** @param {PageSummary['counts']} counts */
function outOf(counts) {
  return UNSERVED.reduce((sum, verdict) => sum + counts[verdict], 0);
}

/** @type {readonly Verdict[]} The worst first. */
const UNSERVED = ['not served', 'members down', 'served in part', 'no ready member'];

/** @param {PageSummary} summary */
function subline({ counts, members, role, lowered, maintenance }) {
  const words = [
    `${countOf(counts.served, 'load balancer')} served with ${countOf(members.ready, 'ready member')}`,
  ];
  if (role !== 'alone') words.push(`this host is ${ROLES[role].toLowerCase()}`);
  if (maintenance) words.push('in maintenance');
  if (lowered.length > 0) words.push(`lower priority: ${lowered.join(', ')}`);
  return `${words.join('; ')}.`;
}

/** @typedef {{ readonly term: string, readonly value: string, readonly more: readonly string[] }} Fact */

/** @param {PageSummary} summary */
function showFacts(summary) {
  keyed(
    byId('facts'),
    factsOf(summary),
    ({ term }) => term,
    ({ term }) => element('div', {}, element('dt', {}, term)),
    (card, { value, more }) => {
      const lines = [value, ...more];
      while (card.children.length > lines.length + 1) card.lastElementChild?.remove();
      for (const [at, text] of lines.entries())
        setText(card.children[at + 1] ?? card.appendChild(element('dd')), text);
    },
  );
}

/**
 * @param {PageSummary} summary
 * @returns {readonly Fact[]}
 */
function factsOf({ role, instances, peer, haproxy, counts, members, vips, cluster, pools, morePools }) {
  /** @type {Fact[]} */
  const facts = [
    {
      term: 'Role of this host',
      value: ROLES[role],
      more: role === 'alone' ? ['VRRP is not configured'] : [mastered(instances)],
    },
  ];
  if (peer !== undefined) {
    const value = !peer.isHeard
      ? '✕ No reports'
      : peer.notReady === ''
        ? '● Ready to take over'
        : '! Not ready';
    const more = [peer.address, peer.notReady, peer.isHeard ? `Headgate ${peer.version}` : ''];
    if (peer.lowered.length > 0) more.push(`lower priority: ${peer.lowered.join(', ')}`);
    facts.push({ term: 'Peer', value, more: more.filter(Boolean) });
  }
  const reload = haproxy.reloadPending;
  facts.push(
    {
      term: 'HAProxy',
      value: haproxy.serving ? '● Serves' : '✕ Does not serve',
      more: [haproxy.version, reload.length > 0 ? `reload is due: ${reload.join(', ')}` : ''].filter(Boolean),
    },
    {
      term: 'Load balancers',
      value: count(counts.served + outOf(counts)),
      more: [
        `${count(counts.served)} served`,
        ...UNSERVED.filter((verdict) => counts[verdict] > 0).map(
          (verdict) => `${count(counts[verdict])} ${verdict}`,
        ),
      ],
    },
    {
      term: 'VIPs',
      value: count(vips),
      more: [
        ...pools.map(({ name, family, free }) => `pool ${name}, IP${family}: ${free} free`),
        morePools > 0 ? countOf(morePools, 'more pool') : '',
      ].filter(Boolean),
    },
    {
      term: 'Members',
      value: count(members.all),
      more: [`${count(members.ready)} ready`, members.down > 0 ? `${count(members.down)} down` : ''].filter(
        Boolean,
      ),
    },
  );
  if (cluster !== undefined) {
    const { isSynced, fault, lastAnswer, isWriter, writer } = cluster;
    const state = isSynced ? '● Connected' : '! Reading all objects';
    facts.push({
      term: 'API server',
      value: fault === '' ? state : '✕ Does not answer',
      more: [
        lastAnswer === '' ? 'no answer yet' : `last answer ${moment(lastAnswer)}`,
        fault,
        `written to by ${isWriter ? 'this agent' : writer || 'none'}`,
      ].filter(Boolean),
    });
  }
  return facts;
}

/** @param {readonly PageInstance[]} instances */
function mastered(instances) {
  const masters = instances.filter(({ state }) => state === 'master').length;
  return `master of ${count(masters)} of ${countOf(instances.length, 'virtual router')}`;
}

/** @param {readonly PageInstance[]} instances */
function showRouters(instances) {
  byId('routers-card').hidden = instances.length === 0;
  keyed(byId('routers'), instances, ({ name }) => name, routerElement, updateRouter);
}

function routerElement() {
  return element(
    'tr',
    {},
    element('td', {}, element('span'), element('small')),
    element('td', {}, element('span'), element('small')),
    element('td', {}, element('span')),
    element('td', { class: 'number' }),
    element('td', { class: 'number wide' }),
  );
}

/**
 * @param {HTMLElement} row
 * @param {PageInstance} instance
 */
function updateRouter(row, { name, state, since, priority, anchors, vips, peerState }) {
  const [router, here, there, held, standing] = row.children;
  const [title, anchor] = router?.children ?? [];
  const [badge, from] = here?.children ?? [];
  const peer = there?.firstElementChild;
  if (title) setText(title, name);
  if (anchor) setText(anchor, anchors.join(', '));
  if (badge instanceof HTMLElement) showRouterState(badge, state);
  if (from) setText(from, since === '' ? '' : `since ${moment(since)}`);
  if (peer instanceof HTMLElement) showRouterState(peer, peerState);
  if (held) setText(held, count(vips));
  if (standing) setText(standing, count(priority));
}

/**
 * `scale`: the least value at the top of a chart, so that small values look small.
 * @type {readonly { readonly of: keyof PageLoad, readonly title: string, readonly words: (value: number) => string, readonly scale: number }[]}
 */
const SERIES = [
  { of: 'connectionRate', title: 'New connections per second', words: count, scale: 1 },
  { of: 'connections', title: 'Open connections', words: count, scale: 1 },
  { of: 'busy', title: 'HAProxy busy', words: percent, scale: 100 },
];

const charts = SERIES.map((series) => {
  const drawn = chart(SECONDS, series.scale);
  const now = element('b', {}, '–');
  const most = element('span');
  const caption = element('figcaption', {}, series.title, now, most);
  byId('charts').append(element('figure', {}, caption, drawn.svg));
  return { ...series, drawn, now, most };
});

/** @param {PageLoad} load */
export function showLoad(load) {
  for (const { of, title, words, drawn, now, most } of charts) {
    const values = load[of];
    const [last, top] = [words(values.at(-1) ?? 0), words(Math.max(0, ...values))];
    setText(now, last);
    setText(most, `at most ${top}`);
    drawn.draw(values, `${title}: ${last} now, at most ${top} in the last two minutes`);
  }
}

/** Reasons that stand open; the others are folded. */
const MAX_OPEN = 5;

/**
 * A reason is folded as soon as more than one problem has it.
 * @param {readonly PageProblems[]} groups
 * @param {number} all
 */
function showProblems(groups, all) {
  byId('problems-section').hidden = all === 0;
  setText(byId('problem-count'), count(all));
  keyed(
    byId('problems'),
    groups.map((group, at) => ({ ...group, at })),
    ({ reason }) => reason,
    ({ count: number, at }) => reasonElement(number === 1 && at < MAX_OPEN),
    (item, { reason, count: number, shown }) => {
      const [details] = item.children;
      const [summary, list, more] = details?.children ?? [];
      const [code, title] = summary?.children ?? [];
      if (code) setText(code, reason);
      if (title) setText(title, number === 1 ? '' : ` ${count(number)} times`);
      if (list instanceof HTMLElement) showOfReason(list, shown);
      if (more instanceof HTMLElement) {
        more.hidden = number === shown.length;
        setText(more, `And ${count(number - shown.length)} more: headgate status lists all of them.`);
      }
    },
  );
  const left = all - groups.reduce((sum, group) => sum + group.count, 0);
  byId('more-problems').hidden = left === 0;
  setText(byId('more-problems'), `And ${count(left)} of other reasons: headgate status lists all of them.`);
}

/** @param {boolean} isOpen */
function reasonElement(isOpen) {
  const summary = element('summary', {}, element('code'), element('span'));
  const more = element('p', { class: 'hint' });
  const details = element('details', { open: isOpen ? '' : undefined }, summary, element('ul'), more);
  return element('li', {}, details);
}

/**
 * @param {HTMLElement} list
 * @param {readonly PageProblem[]} problems
 */
function showOfReason(list, problems) {
  keyed(
    list,
    // Two problems may have the same text.
    problems.map((problem, at) => ({ ...problem, at })),
    ({ at, key }) => `${at} ${key}`,
    ({ key }) => {
      const href = key === '' ? undefined : `#${new URLSearchParams({ open: key })}`;
      return element('li', {}, element(href === undefined ? 'strong' : 'a', { href }), element('p'));
    },
    (item, { object, message }) => {
      const [name, paragraph] = item.children;
      if (name) setText(name, object);
      if (paragraph) setText(paragraph, message);
    },
  );
}
