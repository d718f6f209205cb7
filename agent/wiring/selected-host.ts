// Whether an object is for a host, by the host's name or its labels. Pure.

import { matches, type Selector } from '../kubernetes/label-selector.ts';

export interface SelectedHost {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Without names and without a selector an object is for all hosts. */
export function isSelected(
  { hosts, hostSelector }: { readonly hosts: readonly string[]; readonly hostSelector: Selector },
  { name, labels }: SelectedHost,
): boolean {
  const { matchLabels, matchExpressions } = hostSelector;
  const hasSelector = Object.keys(matchLabels).length > 0 || matchExpressions.length > 0;
  if (hosts.length === 0 && !hasSelector) return true;
  return hosts.includes(name) || (hasSelector && matches(hostSelector, labels));
}
