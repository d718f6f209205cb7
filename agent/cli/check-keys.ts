// What `headgate check` finds about the URLs with public keys of tokens: whether each answers, is trusted, and has keys that HAProxy
// can use. None is a reason not to start the agent, which reads them again and again.

import { messageOf } from '../base/errors.ts';
import { quote } from '../base/quote.ts';
import { readJwks } from '../certificates/token-keys/jwks-reader.ts';
import { isAllowed, isKeysName, MOST_URLS, urlOf } from '../certificates/token-keys/key-urls.ts';
import { checkJwks } from '../certificates/token-keys/token-keys.ts';
import { bad, type Finding, good, warning } from '../host/finding.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';

/** The URLs that routes name. */
export function keyUrlsOf(loadBalancers: readonly LoadBalancer[]): readonly string[] {
  const names = loadBalancers.flatMap(({ listeners }) =>
    listeners.flatMap(({ tokenKeys = [] }) => tokenKeys.map(({ name }) => name)),
  );
  return [...new Set(names)].filter(isKeysName).map(urlOf);
}

/** `allowed`: the setting `jwksUrls`; `named`: by routes. */
export async function keyFindings(
  allowed: readonly string[],
  named: readonly string[],
  fetchFrom: typeof fetch = fetch,
): Promise<readonly Finding[]> {
  const [clear, safe] = [
    allowed.filter((url) => !isAllowed(url, [url])),
    allowed.filter((url) => isAllowed(url, [url])),
  ];
  const ofRoutes = named.filter((url) => isAllowed(url, safe) && !safe.includes(url)).slice(0, MOST_URLS);
  return [
    ...clear.map((url) => bad(url, 'no keys are read from a URL that is not of https: correct "jwksUrls"')),
    ...(await Promise.all([
      ...safe.map((url) => finding(url, true, fetchFrom)),
      ...ofRoutes.map((url) => finding(url, false, fetchFrom)),
    ])),
  ];
}

/** `isBase`: routes may name a URL beneath it instead. */
async function finding(url: string, isBase: boolean, fetchFrom: typeof fetch): Promise<Finding> {
  let hasAnswered = false;
  const noting: typeof fetch = async (...request) => {
    const response = await fetchFrom(...request);
    hasAnswered = true;
    return response;
  };
  try {
    const { text } = await readJwks(url, noting);
    const keys = checkJwks(text);
    if (typeof keys === 'string') return withoutKeys(url, isBase, keys);
    const names = keys.keys.map(({ kid, algorithm }) => `${quote(kid)} (${algorithm})`).join(', ');
    return good(url, [`it answers, is trusted, and has ${names}`, ...keys.faults].join('; '));
  } catch (error) {
    return hasAnswered ? withoutKeys(url, isBase, messageOf(error)) : unread(url, error);
  }
}

function withoutKeys(url: string, isBase: boolean, why: string): Finding {
  if (isBase)
    return good(
      url,
      `it answers and is trusted; it has no keys itself (${why}), and URLs beneath it may have them`,
    );
  return warning(url, `it answers and is trusted, but has no key that can be used: ${why}; ${MEANWHILE}`);
}

function unread(url: string, error: unknown): Finding {
  const why = `it cannot be read: ${messageOf(error)}`;
  const remedy = isUntrusted(error)
    ? ': set NODE_EXTRA_CA_CERTS to a file with its authority, for the agent and for this command'
    : '';
  return warning(url, `${why}${remedy}; ${MEANWHILE}`);
}

const MEANWHILE = 'until it can, routes keep the keys that they had, and answer 403 if they had none';

/** The codes of OpenSSL and Node for certificates: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const CERTIFICATE = /CERT|LEAF_SIGNATURE|^INVALID_(CA|PURPOSE)$|HOSTNAME/;

function isUntrusted(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && CERTIFICATE.test(String(error.code))) || isUntrusted(error.cause);
}
