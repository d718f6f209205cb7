// What each changed load balancer would take of HAProxy and the kernel: commands, a reload and why, or the landing. It asks the
// plans of the dataplane, as if HAProxy ran the state before.

import { counted } from '../../base/counted.ts';
import { AclIds } from '../../haproxy/config/acl-ids.ts';
import { inFileOrder } from '../../haproxy/config/config-text.ts';
import { planLoadBalancer } from '../../haproxy/plan.ts';
import { Running } from '../../haproxy/running.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import { type OwnerKind, objectOf, ownerOf } from '../../model/names.ts';
import { isForKernel } from '../../nftables/rules/kernel-listener.ts';
import type { ObjectChange } from '../../report/difference/object-changes.ts';

type State = Pick<DesiredState, 'loadBalancers'>;

export interface LoadBalancerChange extends ObjectChange {
  readonly change: 'comes' | 'goes' | 'changes';
  readonly kind: OwnerKind;
  readonly effort: 'none' | 'commands' | 'reload' | 'landing';
}

/** `lands`: the setting `landing`. */
export function loadBalancerChanges(
  before: State,
  after: State,
  lands: boolean,
): readonly LoadBalancerChange[] {
  const running = Running.booted(inFileOrder(new Map(before.loadBalancers)), new AclIds().idOf);
  const spares = running.spares.offer();
  const keys = [...new Set([...before.loadBalancers.keys(), ...after.loadBalancers.keys()])].sort(poolsFirst);
  return keys.flatMap((key): LoadBalancerChange[] => {
    const [was, is] = [before.loadBalancers.get(key), after.loadBalancers.get(key)];
    const change = was === undefined ? 'comes' : is === undefined ? 'goes' : 'changes';
    const plan = planLoadBalancer({ key, running, before: was, after: is, spares });
    for (const command of plan.commands) running.fold(command);
    const ofKernel = [was, is].some((each) => each?.listeners.some(isForKernel) === true);
    const isKernelChanged = ofKernel && JSON.stringify(was?.listeners) !== JSON.stringify(is?.listeners);
    if (was !== undefined && is !== undefined && plan.effort === 'none' && !isKernelChanged) return [];
    const { kind } = ownerOf(key);
    const landing = plan.reload !== undefined && lands && kind !== 'Pool' && is !== undefined;
    const parts = [
      plan.commands.length > 0 ? counted(plan.commands.length, 'command') : '',
      plan.reload === undefined ? '' : reloadWords(plan.reload, landing),
      plan.waits ? 'with the reload that brings its pools' : '',
      isKernelChanged ? 'rules of the kernel' : '',
    ].filter(Boolean);
    const effort =
      plan.reload !== undefined ? (landing ? 'landing' : 'reload') : parts.length > 0 ? 'commands' : 'none';
    const subject = objectOf(key);
    const isReached = is === undefined || kind === 'Pool' || is.vips.length > 0;
    const detail = parts.join(', ') || 'nothing for HAProxy';
    return [{ change, subject, kind, effort, detail: isReached ? detail : `${detail}: it has no address` }];
  });
}

/** Rows lead only to pools that are there. */
function poolsFirst(a: string, b: string): number {
  const [isPool, isOther] = [a, b].map((key) => ownerOf(key).kind === 'Pool');
  if (isPool !== isOther) return isPool ? -1 : 1;
  return a < b ? -1 : 1;
}

function reloadWords(reason: string, landing: boolean): string {
  return landing ? `served by the landing at once, later by one reload (${reason})` : `a reload (${reason})`;
}
