// The sessions with routers, and the hosts that serve the same VIPs: two tables, hidden on a host without BGP.

/** @import { PageBgp, PageBgpHost, PageSession } from '../page-model.ts' */

import { byId, keyed, setText, stateRow } from './elements.js';
import { count, countOf, moment, showTone } from './words.js';

/** @param {PageBgp | undefined} bgp */
export function showBgp(bgp) {
  const { sessions, hosts } = bgp ?? { sessions: [], hosts: [] };
  byId('sessions-card').hidden = sessions.length === 0;
  byId('hosts-card').hidden = hosts.length === 0;
  keyed(
    byId('sessions'),
    sessions,
    ({ peer }) => peer,
    () => stateRow(),
    updateSession,
  );
  keyed(
    byId('hosts'),
    hosts,
    ({ name }) => name,
    () => stateRow(),
    updateHost,
  );
}

/**
 * @param {HTMLElement} row
 * @param {PageSession} session
 */
function updateSession(row, { peer, address, asn, isUp, since, why, routes, bfd }) {
  const tone = isUp ? 'good' : 'poor';
  show(row, {
    title: [peer, `${address}, AS ${asn}`],
    state: [tone, isUp ? '● established' : '✕ down', isUp ? since && `since ${moment(since)}` : why],
    bfd: bfd.toLowerCase(),
    last: count(routes),
  });
}

/**
 * @param {HTMLElement} row
 * @param {PageBgpHost} host
 */
function updateHost(row, { name, address, isSelf, fault, bfd, version, lowered, hasSame }) {
  const isLowered = lowered.length > 0;
  const tone = fault !== '' ? 'poor' : isLowered || !hasSame ? 'fair' : 'good';
  const words = isLowered ? '! last choice' : hasSame ? '● serves' : '! catches up';
  show(row, {
    title: [isSelf ? `${name} (this host)` : name, address],
    state: [tone, fault !== '' ? '✕ not connected' : words, fault || lowered.join(', ')],
    bfd,
    last: version,
  });
}

/**
 * @param {HTMLElement} row
 * @param {{
 *   readonly title: readonly [name: string, more: string],
 *   readonly state: readonly [tone: string, words: string, more: string],
 *   readonly bfd: string,
 *   readonly last: string,
 * }} parts
 */
function show(row, { title, state: [tone, words, more], bfd, last }) {
  const [first, second, third, fourth] = row.children;
  for (const [at, text] of title.entries()) {
    const place = first?.children[at];
    if (place) setText(place, text);
  }
  const [badge, small] = second?.children ?? [];
  if (badge instanceof HTMLElement) showTone(badge, tone, words);
  if (small) setText(small, more);
  const place = third?.firstElementChild;
  if (place) setText(place, bfd === '' ? '–' : bfd);
  if (fourth) setText(fourth, last);
}

/**
 * Whether routers lead clients here, as a sentence.
 *
 * @param {PageBgp} bgp
 * @returns {{ readonly tone: 'good' | 'fair' | 'poor', readonly value: string, readonly more: readonly string[] }}
 */
export function announcedInWords({ asn, vips, unreached, sessions }) {
  const up = sessions.filter(({ isUp }) => isUp).length;
  return {
    tone: up === 0 ? 'poor' : up < sessions.length || unreached > 0 ? 'fair' : 'good',
    value: `AS ${asn}, ${countOf(vips.first + vips.last, 'VIP')} to ${up} of ${countOf(sessions.length, 'router')}`,
    more: [
      vips.last > 0 ? `${countOf(vips.last, 'VIP')} as the last choice` : '',
      vips.withheld > 0 ? `${countOf(vips.withheld, 'VIP')} withheld` : '',
      unreached > 0 ? `${countOf(unreached, 'VIP')} that no router has` : '',
    ].filter(Boolean),
  };
}
