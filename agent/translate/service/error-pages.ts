// The ConfigMap with pages by status that a Service, Gateway or IngressClass names. Without it, HAProxy's own pages are served. Pure.

import { quote } from '../../base/quote.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { ErrorPages, Problem } from '../../model/load-balancer.ts';
import type { CertificatesView } from './tls.ts';

export interface ReadErrorPages {
  /** undefined: HAProxy's own. */
  readonly pages: ErrorPages | undefined;
  readonly reads: readonly Dependency[];
  readonly problems: readonly Problem[];
}

/**
 * `named`: `pages`, or `web/pages`; '' for none. `object`: `Gateway default/edge`, whose ConfigMaps are in `namespace`; '' for an
 * IngressClass, which belongs to no namespace and to the operator.
 */
export function readErrorPages(
  named: string,
  object: string,
  namespace: string,
  certificates: CertificatesView,
): ReadErrorPages {
  if (named === '') return { pages: undefined, reads: [], problems: [] };
  const problem = (message: string): Problem => ({ object, reason: 'InvalidErrorPages', message });
  const [first = '', second] = named.split('/');
  const ofNamespace = second === undefined ? namespace : first;
  const refused = (why: string): ReadErrorPages => ({
    pages: undefined,
    reads: [],
    problems: [problem(`Cannot use annotation "headgate.io/error-pages": ${quote(named)} ${why}`)],
  });
  if (ofNamespace === '') return refused('has no namespace, and an IngressClass needs NAMESPACE/NAME');
  if (namespace !== '' && ofNamespace !== namespace) return refused(`is not of namespace "${namespace}"`);
  const key = `${ofNamespace}/${second ?? first}`;
  const name = `configmap ${key}` as const;
  const { content, fault, isMissing } = certificates.errorPages(name);
  // Who deletes the ConfigMap wants its pages no longer; one that is broken or not read yet keeps them.
  const usable = fault !== '' && isMissing ? undefined : content;
  const ends = usable === undefined ? '' : '; the pages that it had stay in use';
  const faults = fault === '' ? (usable?.faults ?? []) : [`${fault}${ends}`];
  return {
    pages: usable && { name, fingerprint: usable.fingerprint, statuses: usable.statuses },
    reads: [name],
    problems: faults.map((why) => problem(`Cannot use ConfigMap "${key}" for error pages: ${why}`)),
  };
}
