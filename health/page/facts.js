// The cards of the page: this host, its peer, and what it serves.

/** @import { PageDisk, PageInstance, PageKernel, PageSummary } from '../page-model.ts' */

import { byId, element, keyed, setText } from './elements.js';
import { count, countOf, large, moment, outOf, ROLES, UNSERVED } from './words.js';

/** @typedef {{ readonly term: string, readonly value: string, readonly more: readonly string[] }} Fact */

/** @param {PageSummary} summary */
export function showFacts(summary) {
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
function factsOf({
  role,
  instances,
  peer,
  haproxy,
  counts,
  members,
  vips,
  cluster,
  pools,
  morePools,
  ...rest
}) {
  const { kernel, disk } = rest;
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
    ...(kernel === undefined ? [] : [kernelFact(kernel)]),
    {
      term: 'Load balancers',
      value: count(counts.served + outOf(counts)),
      more: [
        `served: ${count(counts.served)}`,
        ...UNSERVED.filter((verdict) => counts[verdict] > 0).map(
          (verdict) => `${verdict}: ${count(counts[verdict])}`,
        ),
      ],
    },
    {
      term: 'VIPs',
      value: count(vips),
      more: [
        ...pools.map(({ name, family, free }) => `pool ${name}, IP${family}: ${large(free)} free`),
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
  facts.push(diskFact(disk));
  return facts;
}

/**
 * @param {PageKernel} kernel
 * @returns {Fact}
 */
function kernelFact({ loadBalancers, fault, sync }) {
  const copies = sync === 'on' ? 'flows are copied to the peer' : `flows are not copied: ${sync}`;
  return {
    term: 'Kernel',
    value: fault === '' ? '● Forwards' : '✕ Does not forward all',
    more: [fault, `ports of ${countOf(loadBalancers, 'load balancer')}`, sync === 'off' ? '' : copies].filter(
      Boolean,
    ),
  };
}

/**
 * @param {PageDisk} disk
 * @returns {Fact}
 */
function diskFact({ folder, writtenAt, faults }) {
  return {
    term: 'State on disk',
    value: faults.length === 0 ? '● Up to date' : '✕ Cannot be written',
    more: [
      ...faults.map(({ file, why }) => `${file}: ${why}`),
      writtenAt === '' ? 'not written since the start' : `last written ${moment(writtenAt)}`,
      folder,
    ],
  };
}

/** @param {readonly PageInstance[]} instances */
function mastered(instances) {
  const masters = instances.filter(({ state }) => state === 'master').length;
  return `master of ${count(masters)} of ${countOf(instances.length, 'virtual router')}`;
}
