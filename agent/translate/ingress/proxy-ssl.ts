// TLS to members by annotations of Ingresses: the schema, and what one Ingress asks for. Pure.

import { CIPHERS } from '../../base/ciphers.ts';
import type { TlsVersions } from '../../model/load-balancer.ts';
import type { AskedTls } from '../../model/pool-uses.ts';
import { HOSTS, matching, number, oneOf, rule, SECRET } from '../routes/annotation-values.ts';
import type { OptionsOf } from '../routes/route-annotations.ts';
import { isServiceWithTls } from './external-auth.ts';
import type { AuthUrl } from './external-auth-annotations.ts';

const VERSION = /^TLSv1\.([23])$/;

function versions(text: string): TlsVersions | undefined {
  const found = text.split(/\s+/).map((each) => VERSION.exec(each)?.[1]);
  if (found.includes(undefined)) return undefined;
  return { min: found.includes('2') ? '1.2' : '1.3', max: found.includes('3') ? '1.3' : '1.2' };
}

/** HAProxy refuses its whole file for a list that OpenSSL does not know. */
function ciphers(text: string): readonly string[] | undefined {
  if (text === 'DEFAULT') return [];
  const known: readonly string[] = CIPHERS;
  const names = text.split(':');
  return names.every((each) => known.includes(each)) ? names : undefined;
}

export const PROXY_SSL_ANNOTATIONS = {
  'proxy-ssl-secret': rule(
    matching(SECRET),
    'NAMESPACE/NAME of a Secret with ca.crt, or with tls.crt and tls.key',
    "Members that ask for a certificate get that of this Secret, which is in the Ingress' namespace; `backend-protocol` must be HTTPS or GRPCS, or `auth-url` name a Service by https. While the Secret cannot be used, requests get 503.",
  ),
  'proxy-ssl-verify': rule(
    oneOf('on', 'off'),
    'on or off',
    'Members need a certificate of an authority in `ca.crt` of `proxy-ssl-secret`, with the name `proxy-ssl-name`: both are needed. A BackendTLSPolicy of the Service has precedence. Like the others of the kind it holds for a Service that `auth-url` names by https, too. Default: off.',
  ),
  'proxy-ssl-verify-depth': rule(
    number(0, 99),
    'a number, at most 99',
    'How many intermediate certificates may stand between a certificate of a member and that of the authority. Default: any number, in ingress-nginx 1.',
  ),
  'proxy-ssl-name': rule(
    (text) => matching(HOSTS)(text.toLowerCase()),
    'a host name',
    'The name in certificates of members, which are also asked for it (SNI), whatever `proxy-ssl-server-name` says.',
  ),
  'proxy-ssl-protocols': rule(
    versions,
    'TLSv1.2, TLSv1.3 or both',
    'The versions of TLS to members. Default: those that OpenSSL has.',
  ),
  'proxy-ssl-ciphers': rule(
    ciphers,
    'DEFAULT, or [ciphers](annotations.md#tls-ciphers) with colons between them',
    'The ciphers to members. Default: those that OpenSSL has.',
  ),
} as const;

type ProxySslOptions = OptionsOf<typeof PROXY_SSL_ANNOTATIONS> & {
  readonly 'backend-protocol'?: string;
  readonly 'auth-url'?: AuthUrl;
};

export interface ReadProxySsl {
  /** undefined: members are as `backend-protocol` says. */
  readonly asked: AskedTls | undefined;
  /** Members have no TLS: it is for the Service that `auth-url` names. */
  readonly isForQuestionsOnly: boolean;
  /** Why no client is let in, a sentence; '' if it can be asked for. */
  readonly fault: string;
}

export function proxySslOf(options: ProxySslOptions, namespace: string): ReadProxySsl {
  const {
    'proxy-ssl-secret': given,
    'proxy-ssl-verify': verify,
    'proxy-ssl-verify-depth': depth,
    'proxy-ssl-name': serverName = '',
    'proxy-ssl-protocols': range,
    'proxy-ssl-ciphers': list = [],
    'backend-protocol': protocol = 'HTTP',
    'auth-url': authUrl,
  } = options;
  const isVerified = verify === 'on';
  const hasTlsMembers = protocol === 'HTTPS' || protocol === 'GRPCS';
  const isTls = hasTlsMembers || (authUrl !== undefined && isServiceWithTls(authUrl));
  const protects = given !== undefined || isVerified || range !== undefined || list.length > 0;
  if (!protects && !(isTls && serverName !== ''))
    return { asked: undefined, isForQuestionsOnly: false, fault: '' };
  if (!isTls) return refused('annotation "backend-protocol" is not HTTPS or GRPCS');
  const secret = given === undefined || given.includes('/') ? (given ?? '') : `${namespace}/${given}`;
  if (secret !== '' && !secret.startsWith(`${namespace}/`))
    return refused(`Secret "${secret}" (proxy-ssl-secret) is of another namespace`);
  if (isVerified && secret === '') return refused('annotation "proxy-ssl-verify" needs "proxy-ssl-secret"');
  if (isVerified && serverName === '') return refused('annotation "proxy-ssl-verify" needs "proxy-ssl-name"');
  return {
    asked: {
      secret,
      isVerified,
      serverName,
      ...(isVerified && depth !== undefined && { depth }),
      ...(range && { versions: range }),
      ...(list.length > 0 && { ciphers: list }),
    },
    isForQuestionsOnly: !hasTlsMembers,
    fault: '',
  };
}

function refused(why: string): ReadProxySsl {
  return {
    asked: undefined,
    isForQuestionsOnly: false,
    fault: `Cannot use TLS to members as it is meant: ${why}; its requests get status 403`,
  };
}
