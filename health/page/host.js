// The upper part of the page: the headline with what is not served, the traffic of all load balancers, and this host.

/** @import { PageBroken, PageInstance, PageLoad, PageSummary } from '../page-model.ts' */

import { showBgp } from './bgp.js';
import { chart, historyCharts } from './charts.js';
import { byId, element, keyed, link, setText, stateRow } from './elements.js';
import { showProblems } from './problems.js';
import { showVerdicts } from './verdicts.js';
import { showVitals } from './vitals.js';
import { count, countOf, moment, outOf, percent, ROLES, showRouterState, showVerdict } from './words.js';

/** @param {PageSummary} summary */
export function showHost(summary) {
  const { host, version, startedAt, counts, broken } = summary;
  setText(byId('host'), host);
  document.title = `${headline(summary).text} · ${host} · Headgate`;
  const { tone, text } = headline(summary);
  byId('banner').dataset.tone = tone;
  setText(byId('headline'), text);
  setText(byId('subline'), subline(summary));
  showBroken(broken);
  byId('which').hidden = outOf(counts) <= broken.length && summary.members.down === 0;
  showVerdicts(counts);
  showVitals(summary);
  showRouters(summary.instances);
  showBgp(summary.bgp);
  showProblems(summary);
  showDashboard(summary.dashboard);
  setText(byId('about'), `Headgate ${version} on ${host}, since ${moment(startedAt)}`);
}

/**
 * @param {PageSummary} summary
 * @returns {{ readonly tone: string, readonly text: string }}
 */
function headline({ fault, counts, members, problemCount, haproxy, cluster, ...pair }) {
  if (fault !== '') return { tone: 'poor', text: `✕ ${fault}` };
  if (!haproxy.serving) return { tone: 'poor', text: '✕ HAProxy does not serve' };
  if (pair.role === 'fault')
    return { tone: 'poor', text: '✕ VRRP has a fault: this host cannot hold the VIPs' };
  if (pair.bgp !== undefined && !pair.bgp.sessions.some(({ isUp }) => isUp))
    return { tone: 'poor', text: '✕ No router has routes of this host' };
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
  if (cluster !== undefined && cluster.fault !== '')
    return { tone: 'fair', text: '! Served from the last known objects: the API server does not answer' };
  if (problemCount > 0)
    return { tone: 'fair', text: `! Served, with ${countOf(problemCount, 'problem')} to fix` };
  const text = failover(pair);
  if (text !== '') return { tone: 'fair', text: `! ${text}` };
  return { tone: 'good', text: '● All is well' };
}

/**
 * What prevents a failover; '' for nothing.
 *
 * @param {Pick<PageSummary, 'role' | 'maintenance' | 'lowered' | 'peer' | 'bgp'>} pair
 */
function failover({ role, maintenance, lowered, peer, bgp }) {
  if (maintenance) return 'In maintenance';
  if (lowered.length > 0) {
    const how = bgp === undefined ? 'has a lower priority' : 'is the last choice of routers';
    return `Served, but this host ${how}: ${lowered.join(', ')}`;
  }
  const gone = bgp?.hosts.filter(({ fault }) => fault !== '') ?? [];
  if (gone.length > 0) return `Served, but not connected: ${gone.map(({ name }) => name).join(', ')}`;
  if (role === 'unknown') return 'Served, but the state of VRRP is unknown';
  if (peer !== undefined && !peer.isHeard) return 'Served, but the peer sends no reports';
  if (peer !== undefined && peer.notReady !== '')
    return `Served, but the peer cannot take over: ${peer.notReady}`;
  return '';
}

/** @param {PageSummary} summary */
function subline({ counts, members, role, lowered, maintenance, bgp, cluster }) {
  const words = [
    `${countOf(counts.served, 'load balancer')} served with ${countOf(members.ready, 'ready member')}`,
  ];
  if (role !== 'alone') words.push(`this host is ${ROLES[role].toLowerCase()}`);
  if (maintenance) words.push('in maintenance');
  if (lowered.length > 0)
    words.push(`${bgp === undefined ? 'lower priority' : 'last choice'}: ${lowered.join(', ')}`);
  if (cluster !== undefined && cluster.fault !== '') words.push('the API server does not answer');
  return `${words.join('; ')}.`;
}

/** @param {readonly PageBroken[]} broken */
function showBroken(broken) {
  keyed(
    byId('broken'),
    broken,
    ({ key }) => key,
    ({ key }) =>
      element(
        'li',
        {},
        element('span', { class: 'state' }),
        element('a', { href: `#${new URLSearchParams({ open: key })}` }, key),
        element('span', { class: 'why' }),
      ),
    (item, { verdict, why }) => {
      const [badge, , sentence] = item.children;
      if (badge instanceof HTMLElement) showVerdict(badge, verdict, true);
      if (sentence) setText(sentence, why);
    },
  );
}

/** @param {readonly PageInstance[]} instances */
function showRouters(instances) {
  byId('routers-card').hidden = instances.length === 0;
  keyed(byId('routers'), instances, ({ name }) => name, routerElement, updateRouter);
}

function routerElement() {
  return stateRow(element('td', { class: 'number wide' }));
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

const traffic = historyCharts();
const busy = chart(
  { title: 'HAProxy busy', words: percent, lines: [{ label: '', colour: '--accent' }] },
  undefined,
  100,
);
byId('charts').append(...traffic.figures, busy.figure);

/** @param {PageLoad} load */
export function showLoad(load) {
  traffic.draw(load);
  busy.draw([load.busy], 1);
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
