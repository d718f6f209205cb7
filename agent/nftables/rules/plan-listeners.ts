// The changes from the listeners that the kernel has to those that it should have. Pure.

import { sameValue } from '../../base/same-value.ts';
import type { KernelListener, ListenerChange } from './kernel-listener.ts';

export function planListeners(
  before: readonly KernelListener[],
  after: readonly KernelListener[],
): readonly ListenerChange[] {
  const changes: ListenerChange[] = [];
  for (const now of after) {
    const was = before.find(({ name }) => name === now.name);
    if (was !== now && !sameValue(was, now)) changes.push({ before: was, after: now });
  }
  for (const was of before)
    if (!after.some(({ name }) => name === was.name)) changes.push({ before: was, after: undefined });
  return changes;
}
