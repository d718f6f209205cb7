// What HAProxy does with the origin of a page's script (CORS): it answers a preflight request itself, and other requests continue. Pure.

import { quote } from '../../../base/quote.ts';
import type { Cors } from '../../../model/routes.ts';
import { type CheckResult, passed, type Way } from './check.ts';

export function preflight({ client: { headers, method }, request }: Way): CheckResult | undefined {
  const cors = request?.rule?.cors;
  const origin = headers?.get('origin')?.at(-1);
  if (cors === undefined || origin === undefined) return undefined;
  const isAllowed = allowsOrigin(cors, origin);
  const words = `origin ${quote(origin)} is ${isAllowed ? '' : 'not '}allowed`;
  const isPreflight = method === 'OPTIONS' && headers?.has('access-control-request-method') === true;
  if (!isPreflight) return passed(isAllowed ? words : `${words}: a browser hides the answer from its page`);
  return { result: 'answered', detail: words, answer: 'status 204' };
}

/** As the rows of the map `origins` decide. */
function allowsOrigin({ origins, oneLabel }: Cors, origin: string): boolean {
  const [, scheme, host = ''] = /^([^:]*):\/\/(.*)$/.exec(origin) ?? [];
  return origins.some((each) => {
    if (each === '*' || each === origin) return true;
    const [, ofScheme, domain] = /^([a-z]+):\/\/\*\.(.+)$/.exec(each) ?? [];
    if (domain === undefined || ofScheme !== scheme || !host.endsWith(`.${domain}`)) return false;
    return oneLabel !== true || !host.slice(0, -domain.length - 1).includes('.');
  });
}
