// What this host needs to serve: one line for each part that is well, more for one that is not.

/** @import { PageDisk, PageInstance, PageKernel, PageSummary } from '../page-model.ts' */

import { announcedInWords } from './bgp.js';
import { byId, element, keyed, setText } from './elements.js';
import { count, countOf, large, minute, ROLES } from './words.js';

/** @typedef {'good' | 'fair' | 'poor' | 'idle'} Tone */
/** @typedef {{ readonly term: string, readonly tone: Tone, readonly value: string, readonly more: readonly string[] }} Vital */

/** @param {PageSummary} summary */
export function showVitals(summary) {
  setText(byId('host-title'), titleOf(summary));
  keyed(
    byId('vitals'),
    vitalsOf(summary),
    ({ term }) => term,
    ({ term }) => element('div', {}, element('dt', {}, term)),
    (item, { tone, value, more }) => {
      item.dataset.tone = tone;
      const lines = [value, ...more];
      while (item.children.length > lines.length + 1) item.lastElementChild?.remove();
      for (const [at, text] of lines.entries())
        setText(item.children[at + 1] ?? item.appendChild(element('dd')), text);
    },
  );
}

/** @param {PageSummary} summary */
function titleOf({ peer, bgp }) {
  if (peer !== undefined) return 'This host and its peer';
  return bgp === undefined || bgp.hosts.length === 0 ? 'This host' : 'This host and the others';
}

/**
 * @param {PageSummary} summary
 * @returns {readonly Vital[]}
 */
function vitalsOf({ role, instances, peer, bgp, haproxy, vips, cluster, pools, morePools, kernel, disk }) {
  /** @type {Vital[]} */
  const vitals = [
    {
      term: 'HAProxy',
      tone: haproxy.serving ? 'good' : 'poor',
      value: haproxy.serving ? `Serves, ${haproxy.version}` : 'Does not serve',
      more: haproxy.reloadPending.length > 0 ? [`reload is due: ${haproxy.reloadPending.join(', ')}`] : [],
    },
  ];
  if (kernel !== undefined) vitals.push(kernelVital(kernel));
  if (bgp !== undefined) vitals.push({ term: 'BGP', ...announcedInWords(bgp) });
  else
    vitals.push({
      term: 'Role',
      tone: role === 'fault' ? 'poor' : role === 'unknown' ? 'fair' : role === 'alone' ? 'idle' : 'good',
      value: role === 'alone' ? 'Alone, without VRRP' : `${ROLES[role]}, ${mastered(instances)}`,
      more: [],
    });
  if (peer !== undefined) {
    const isReady = peer.isHeard && peer.notReady === '';
    vitals.push({
      term: 'Peer',
      tone: isReady ? 'good' : peer.isHeard ? 'fair' : 'poor',
      value: isReady
        ? `Ready to take over, ${peer.address}`
        : `${peer.isHeard ? 'Not ready' : 'Sends no reports'}, ${peer.address}`,
      more: [
        peer.notReady,
        peer.lowered.length > 0 ? `lower priority: ${peer.lowered.join(', ')}` : '',
      ].filter(Boolean),
    });
  }
  if (cluster !== undefined) {
    const { isSynced, fault, lastAnswer, isWriter, writer } = cluster;
    const by = `written to by ${isWriter ? 'this agent' : writer || 'none'}`;
    const last = lastAnswer === '' ? 'no answer yet' : `last answer ${minute(lastAnswer)}`;
    const state = isSynced ? 'Connected' : 'Reading all objects';
    vitals.push({
      term: 'API server',
      tone: fault !== '' ? 'poor' : isSynced ? 'good' : 'fair',
      value: `${fault === '' ? state : 'Does not answer'}, ${fault === '' ? by : last}`,
      more: fault === '' ? [] : [fault],
    });
  }
  vitals.push({
    term: 'Addresses',
    tone: pools.some(({ free }) => free === '0') ? 'fair' : 'idle',
    value: `${countOf(vips, 'VIP')} in use`,
    more: [
      ...pools.map(({ name, family, free }) => `pool ${name}, IP${family}: ${large(free)} free`),
      morePools > 0 ? countOf(morePools, 'more pool') : '',
    ].filter(Boolean),
  });
  vitals.push(diskVital(disk));
  return vitals;
}

/**
 * @param {PageKernel} kernel
 * @returns {Vital}
 */
function kernelVital({ loadBalancers, fault, sync }) {
  const copies = sync === 'on' ? ', flows are copied to the peer' : '';
  const failing = sync === 'on' || sync === 'off' ? [] : [`flows are not copied: ${sync}`];
  return {
    term: 'Kernel',
    tone: fault !== '' ? 'poor' : failing.length > 0 ? 'fair' : 'good',
    value:
      fault === ''
        ? `Forwards ports of ${countOf(loadBalancers, 'load balancer')}${copies}`
        : 'Does not forward all',
    more: [fault, ...failing].filter(Boolean),
  };
}

/**
 * @param {PageDisk} disk
 * @returns {Vital}
 */
function diskVital({ folder, writtenAt, faults }) {
  const written = writtenAt === '' ? 'not written since the start' : `written ${minute(writtenAt)}`;
  return {
    term: 'State on disk',
    tone: faults.length === 0 ? 'good' : 'poor',
    value: faults.length === 0 ? `Up to date, ${written}` : `Cannot be written, in ${folder}`,
    more: faults.map(({ file, why }) => `${file}: ${why}`),
  };
}

/** @param {readonly PageInstance[]} instances */
function mastered(instances) {
  const masters = instances.filter(({ state }) => state === 'master').length;
  return `master of ${count(masters)} of ${countOf(instances.length, 'virtual router')}`;
}
