// The Events of a written status of a Gateway or ListenerSet: its addresses, and that it is served. Others get Events on their
// problems only, because a cluster may have thousands of routes. Pure: from before and after.

import { quote } from '../../base/quote.ts';
import { isMapping } from '../../base/validate.ts';
import type { ListenerStatus, ObjectStatus } from '../../model/object-status.ts';
import type { CurrentObject } from '../current-object.ts';
import type { EventText } from './service-events.ts';

/** Only what the write changed, so that a restart of the agent repeats none. */
export function objectEvents(
  before: Pick<CurrentObject, 'status'>,
  after: ObjectStatus,
): readonly EventText[] {
  if (after.kind !== 'Gateway' && after.kind !== 'ListenerSet') return [];
  const old: unknown = JSON.parse(before.status);
  const status = isMapping(old) ? old : {};
  const events: EventText[] = [];
  if (after.kind === 'Gateway') {
    const was = mappings(status.addresses).map(({ value }) => String(value));
    const is = after.addresses;
    if (is.length > 0 && is.join() !== was.join())
      events.push(normal('Allocated', 'Allocate', `The Gateway has the addresses ${is.join(', ')}`));
    if (is.length === 0 && was.length > 0)
      events.push(
        normal('Released', 'Allocate', `The Gateway no longer has the addresses ${was.join(', ')}`),
      );
  }
  const wasServed = mappings(status.conditions).some(isProgrammed);
  if (!wasServed && after.conditions.some(isProgrammed))
    events.push(
      normal('Programmed', 'Program', `The ${after.kind} is served${exceptionsOf(after.listeners)}`),
    );
  return events;
}

/** The most names in one Event. */
const MAX_NAMES = 5;

/** The end of a sentence; '' if all listeners are served. */
function exceptionsOf(listeners: readonly ListenerStatus[]): string {
  const names = listeners
    .filter(({ conditions }) => !conditions.some(isProgrammed))
    .map(({ name }) => quote(name));
  if (names.length === 0) return '';
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return `, but not its ${names.length === 1 ? 'listener' : 'listeners'} ${names.slice(0, MAX_NAMES).join(', ')}${more}`;
}

function isProgrammed({ type, status }: { readonly type?: unknown; readonly status?: unknown }): boolean {
  return type === 'Programmed' && status === 'True';
}

function mappings(json: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(json) ? json.filter(isMapping) : [];
}

function normal(reason: string, action: string, note: string): EventText {
  return { type: 'Normal', reason, action, note };
}
