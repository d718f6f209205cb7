// The upper part of the page: the headline, the virtual routers and the traffic of all load balancers.

/** @import { PageInstance, PageLoad, PageSummary } from '../page-model.ts' */

import { chart } from './charts.js';
import { byId, element, keyed, link, setText } from './elements.js';
import { showFacts } from './facts.js';
import { showProblems } from './problems.js';
import { count, countOf, moment, outOf, percent, ROLES, showRouterState } from './words.js';

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
  showDashboard(summary.dashboard);
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
  const drawn = chart(series.title, series.words, series.scale);
  byId('charts').append(drawn.figure);
  return { ...series, drawn };
});

/** @param {PageLoad} load */
export function showLoad(load) {
  for (const { of, drawn } of charts) drawn.draw(load[of]);
}

/** @param {string} url '' for none. */
function showDashboard(url) {
  const place = byId('dashboard');
  place.hidden = url === '';
  const shown = place.querySelector('a');
  if (shown?.getAttribute('href') === url) return;
  shown?.remove();
  if (url !== '') place.append(link(url, 'Dashboard'));
}
