// What the status page of an amphora says, as text: the headline, the lines of the amphora and of a load balancer, statuses
// with their signs. Pure.

/** @import { AmphoraPageLoadBalancer, AmphoraPageMembers, AmphoraPageRow, AmphoraPageSummary } from '../amphora-page-model.ts' */

import { count, countOf, membersOf, moment } from './words.js';

/** @typedef {'good' | 'fair' | 'poor' | 'idle'} Tone */
/** @typedef {{ readonly term: string, readonly tone: Tone, readonly lines: readonly string[] }} Fact */

/**
 * @param {AmphoraPageSummary} summary
 * @returns {{ readonly tone: Tone, readonly text: string }}
 */
export function headline({ fault, listeners, loadBalancers, members, heartbeat }) {
  if (fault !== '') return { tone: 'poor', text: `✕ ${fault}` };
  if (listeners.all === 0 && loadBalancers.length === 0)
    return { tone: 'idle', text: '○ The controller has pushed nothing yet' };
  if (listeners.unserved > 0) {
    const text = countOf(listeners.unserved, 'listener is not served', 'listeners are not served');
    return { tone: 'poor', text: `✕ ${text}` };
  }
  if (loadBalancers.some(({ isBehind }) => isBehind))
    return { tone: 'fair', text: '! Served, but the last uploaded text does not run' };
  if (members.down > 0) {
    const text = countOf(members.down, 'member fails its check', 'members fail their checks');
    return { tone: 'fair', text: `! ${text}` };
  }
  if (heartbeat.lastAt === '') return { tone: 'fair', text: '! Served, but no heartbeat was sent yet' };
  return { tone: 'good', text: '● All is well' };
}

/** @param {AmphoraPageSummary} summary */
export function subline({ listeners: { all, unserved }, members }) {
  return `${count(all - unserved)} of ${countOf(all, 'listener')} served; members ready: ${membersIn(members)}.`;
}

/**
 * @param {AmphoraPageSummary} summary
 * @returns {readonly Fact[]}
 */
export function amphoraFacts({ amphora: { id, topology, address }, heartbeat }) {
  const { controllers, sent, lastAt, lastTo, fault } = heartbeat;
  const last = lastAt === '' ? 'None sent yet' : `Last one ${moment(lastAt)} to ${lastTo}`;
  return [
    {
      term: 'Amphora',
      tone: 'idle',
      lines: [id, topology, address === '' ? 'The API does not listen yet' : `API at ${address}`],
    },
    {
      term: 'Heartbeats',
      tone: fault !== '' ? 'poor' : lastAt === '' ? 'fair' : 'good',
      lines: [
        last,
        ...(fault === '' ? [] : [fault]),
        `${count(sent)} sent since the agent's start`,
        controllers.length === 0 ? 'no controller' : `controllers: ${controllers.join(', ')}`,
      ],
    },
  ];
}

/**
 * @param {AmphoraPageLoadBalancer} loadBalancer
 * @returns {readonly Fact[]}
 */
export function loadBalancerFacts({ id, listeners, isRunning, text, since, isBehind, lastReload, fault }) {
  return [
    { term: 'Load balancer', tone: 'idle', lines: [id, countOf(listeners, 'listener')] },
    {
      term: 'HAProxy',
      tone: isRunning ? 'good' : 'poor',
      lines: isRunning ? [`Runs this text since ${moment(since)}`, `MD5 ${text}`] : ['Does not run'],
    },
    {
      term: 'Last upload',
      tone: fault !== '' ? 'poor' : isBehind ? 'fair' : 'good',
      lines: [isBehind ? 'Does not run' : 'Runs', ...(fault === '' ? [] : [fault])],
    },
    { term: 'Last reload', tone: 'idle', lines: [lastReload || 'None'] },
  ];
}

/** @param {AmphoraPageRow} row */
export function listenerTitle({ type, place }) {
  return `${type} ${place}`.trim();
}

/** @param {AmphoraPageRow} row */
export function listenerLine({ id, loadBalancer, engine, connections, members }) {
  const parts = [
    id,
    loadBalancer === '' ? '' : `of load balancer ${loadBalancer}`,
    `by ${engine === 'kernel' ? 'the kernel' : 'HAProxy'}`,
    `members ready: ${membersIn(members)}`,
    // The kernel does not count them.
    engine === 'kernel' ? '' : countOf(connections, 'connection'),
  ];
  return parts.filter(Boolean).join(', ');
}

/** @param {AmphoraPageMembers} members */
function membersIn({ ready, down, all }) {
  return membersOf({ ready, down, members: all });
}

/**
 * @param {string} status Of the heartbeat.
 * @returns {{ readonly tone: Tone, readonly text: string }}
 */
export function statusWords(status) {
  if (status === '') return { tone: 'poor', text: '✕ not served' };
  if (/^(OPEN|UP)/.test(status)) return { tone: 'good', text: `● ${status}` };
  if (/^(DOWN|FULL)/.test(status)) return { tone: 'poor', text: `✕ ${status}` };
  return status.startsWith('DRAIN')
    ? { tone: 'fair', text: `◐ ${status}` }
    : { tone: 'idle', text: `○ ${status}` };
}
