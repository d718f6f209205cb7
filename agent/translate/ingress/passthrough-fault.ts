// What of an Ingress cannot be had beside `ssl-passthrough`, because it needs to see requests. Pure.

import { quote } from '../../base/quote.ts';
import { NGINX_PREFIX, OWN_PREFIX, protection } from '../../protection/judge-names.ts';

/** They hold for connections, too, or for what is not served here. */
const GOES_WITH_IT = new Set(['ssl-passthrough', 'force-ssl-redirect', 'backend-protocol']);

/** Why the Ingress cannot have its TLS passed through: what protects, and needs to see requests; '' if it can. */
export function passthroughFault(annotations: Readonly<Record<string, string>>): string {
  for (const [full, value] of Object.entries(annotations)) {
    const prefix = [OWN_PREFIX, NGINX_PREFIX].find((each) => full.startsWith(each));
    const name = full.slice(prefix?.length ?? full.length);
    const meant = protection(name);
    // What Headgate does not have closes by its name, or may be missing.
    if (
      meant === undefined ||
      meant.kinds.length === 0 ||
      GOES_WITH_IT.has(name) ||
      meant.closes !== 'requests'
    )
      continue;
    if (meant.asks?.(value) !== false)
      return `Cannot pass TLS through: annotation ${quote(full)} protects by ${meant.by}, which needs TLS to end here; its requests get status 403`;
  }
  return '';
}
