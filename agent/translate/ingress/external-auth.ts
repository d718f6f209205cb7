// Which service an Ingress has asked about its requests: by its own annotations, or by those of its class. A Service of the cluster
// is its pool; another host is one of the class's own routes, which external-auth-routes.ts finds. Pure.

import { quote } from '../../base/quote.ts';
import type { Service } from '../../kubernetes/objects.ts';
import { poolKey, poolListener } from '../../model/names.ts';
import type { AskedTls, PoolUse } from '../../model/pool-uses.ts';
import type { ExternalAuth } from '../../model/routes.ts';
import { OWN_PREFIX } from '../../protection/judge-names.ts';
import { askedProfile, HTTP_PROFILE, TLS_PROFILE, withAskedTls } from '../pool/pool-profile.ts';
import type { OptionsOf } from '../routes/route-annotations.ts';
import { DEFAULT_CACHE } from './auth-cache.ts';
import { type AuthUrl, EXTERNAL_AUTH_ANNOTATIONS, signInUrl } from './external-auth-annotations.ts';

type AuthOptions = OptionsOf<typeof EXTERNAL_AUTH_ANNOTATIONS>;

/** What an IngressClass says. */
export interface ClassAuth {
  /** `closed`: it has one that cannot be used. */
  readonly global: AuthOptions | 'closed' | undefined;
  /** Namespaces whose Services Ingresses of all namespaces may ask; `*` for any. */
  readonly namespaces: ReadonlySet<string>;
  readonly faults: readonly string[];
  /** Equal texts have equal values. */
  readonly text: string;
}

/** What an Ingress, or its class, asks. */
export interface AskedService {
  readonly externalAuth: ExternalAuth;
  /** The route to find, whose pool it is; undefined if the pool is known. */
  readonly route: AuthUrl | undefined;
  /** The class asks, which may ask any service. */
  readonly isOfClass: boolean;
}

export interface ReadExternalAuth {
  /** undefined: none is asked. */
  readonly asked: AskedService | undefined;
  readonly use: PoolUse | undefined;
  /** `namespace/name` of the Service; '' for none. */
  readonly service: string;
  /** Why no client is let in, a sentence; '' if it can be asked. */
  readonly fault: string;
}

const GLOBAL = 'global-';
/** On an IngressClass: namespaces whose Services Ingresses of other namespaces may ask. */
const NAMESPACES = 'auth-namespaces';
/** Names of the annotations of a class, without the prefix. */
export const CLASS_AUTH_ANNOTATIONS: readonly string[] = [
  NAMESPACES,
  ...Object.keys(EXTERNAL_AUTH_ANNOTATIONS).map((name) => GLOBAL + name),
];

export const NO_CLASS_AUTH: ClassAuth = { global: undefined, namespaces: new Set(), faults: [], text: '' };

export function classAuth(annotations: Readonly<Record<string, string>>): ClassAuth {
  const faults: string[] = [];
  const options: Record<string, unknown> = {};
  let isClosed = false;
  const given: Record<string, string> = {};
  for (const [name, { parse, allowed }] of Object.entries(EXTERNAL_AUTH_ANNOTATIONS)) {
    const full = `${OWN_PREFIX}${GLOBAL}${name}`;
    const text = annotations[full];
    if (text === undefined) continue;
    given[full] = text;
    options[name] = parse(text.trim());
    if (options[name] !== undefined) continue;
    isClosed = true;
    faults.push(
      `Annotation "${full}" is ignored: ${quote(text)} is not ${allowed}; requests of its Ingresses get status 403`,
    );
  }
  const namespaces = (annotations[OWN_PREFIX + NAMESPACES] ?? '').split(',').map((each) => each.trim());
  for (const each of namespaces)
    if (each !== '' && each !== '*' && !/^[a-z0-9-]{1,63}$/.test(each))
      faults.push(
        `Annotation "${OWN_PREFIX}${NAMESPACES}" is used in part: ${quote(each)} is not a namespace`,
      );
  const isAsked = Object.keys(options).length > 0;
  if (isAsked && !isClosed && options['auth-url'] === undefined) {
    isClosed = true;
    faults.push(
      `Cannot ask an authorization server: annotation "${OWN_PREFIX}${GLOBAL}auth-url" is missing; requests of its Ingresses get status 403`,
    );
  }
  return {
    global: isClosed ? 'closed' : isAsked ? (options as AuthOptions) : undefined,
    namespaces: new Set(namespaces.filter(Boolean)),
    faults,
    text: JSON.stringify([given, namespaces]),
  };
}

export interface IngressAuthOptions {
  readonly options: AuthOptions & { readonly 'enable-global-auth'?: boolean };
  readonly namespace: string;
  readonly ofClass: ClassAuth;
  readonly findService: (key: string) => Service | undefined;
  /** TLS to its members: as in ingress-nginx, a Service that its own annotation names is asked with the same. */
  readonly askedTls: AskedTls | undefined;
}

const NOTHING: ReadExternalAuth = { asked: undefined, use: undefined, service: '', fault: '' };

/** The name of the annotation leads an author to its place, whatever its prefix. */
function closed(why: string, name = 'auth-url', service = ''): ReadExternalAuth {
  const fault = `Cannot ask an authorization server (${name}): ${why}; its requests get status 403`;
  return { ...NOTHING, service, fault };
}

export function ingressAuth({
  options,
  namespace,
  ofClass,
  findService,
  askedTls,
}: IngressAuthOptions): ReadExternalAuth {
  const { 'auth-url': own, 'enable-global-auth': wantsGlobal } = options;
  const { global } = ofClass;
  if (own !== undefined) return asking(options, own, false, { namespace, ofClass, findService, askedTls });
  if (wantsGlobal !== false && global !== undefined) {
    if (global === 'closed' || global['auth-url'] === undefined)
      return closed('the annotations of its class that name one cannot be used');
    return asking(global, global['auth-url'], true, {
      namespace,
      ofClass,
      findService,
      askedTls: undefined,
    });
  }
  if (wantsGlobal === true)
    return closed(`its class has no annotation "${OWN_PREFIX}global-auth-url" for "enable-global-auth"`);
  if (options['auth-signin'] !== undefined) return closed('annotation "auth-signin" needs "auth-url"');
  return NOTHING;
}

/** As pods write them. */
const SERVICE = /^([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})\.svc(?:\.[a-z0-9.-]+)?$/;

/** A Service that is asked with TLS. */
export function isServiceWithTls({ scheme, host }: AuthUrl): boolean {
  return scheme === 'https' && SERVICE.test(host);
}

function asking(
  options: AuthOptions,
  url: AuthUrl,
  isOfClass: boolean,
  { namespace, ofClass, findService, askedTls }: Omit<IngressAuthOptions, 'options'>,
): ReadExternalAuth {
  const [, name, ofNamespace] = SERVICE.exec(url.host) ?? [];
  const externalAuth = askedFor(options, url);
  if (name === undefined || ofNamespace === undefined)
    return { ...NOTHING, asked: { externalAuth, route: url, isOfClass } };
  const key = `${ofNamespace}/${name}`;
  const none = (why: string, missing = ''): ReadExternalAuth =>
    closed(why, isOfClass ? 'global-auth-url' : 'auth-url', missing);
  const mayAsk = ofNamespace === namespace || isOfClass || consents(ofClass, ofNamespace);
  if (!mayAsk)
    return none(
      `Service "${key}" is of another namespace, and annotation "${OWN_PREFIX}${NAMESPACES}" of the class does not name it`,
    );
  const service = findService(key);
  if (service === undefined) return none(`Service "${key}" does not exist`, key);
  if (service.type === 'ExternalName')
    return none(`Service "${key}" is of type ExternalName, which has no endpoints`, key);
  if (!service.ports.some(({ port, protocol }) => protocol === 'TCP' && port === url.port))
    return none(`Service "${key}" has no TCP port ${url.port}`, key);
  const isTls = url.scheme === 'https';
  const tls = isTls ? askedTls : undefined;
  const profile = askedProfile(withAskedTls(tls, isTls ? TLS_PROFILE : HTTP_PROFILE));
  const pool = poolKey(ofNamespace, name, profile);
  const listener = poolListener(pool, url.port);
  return {
    asked: { externalAuth: { ...externalAuth, pool: listener }, route: undefined, isOfClass },
    use: { pool, port: url.port, ...(tls && { tls }) },
    service: key,
    fault: '',
  };
}

function consents({ namespaces }: ClassAuth, namespace: string): boolean {
  return namespaces.has('*') || namespaces.has(namespace);
}

function askedFor(options: AuthOptions, { host, path }: AuthUrl): ExternalAuth {
  const signIn = options['auth-signin'];
  return {
    pool: '',
    method: options['auth-method'] ?? 'GET',
    host,
    path,
    isPrefix: false,
    letsIn: '2xx',
    requestHeaders: undefined,
    responseHeaders: options['auth-response-headers'] ?? [],
    refusal: {
      signIn: signIn === undefined ? '' : signInUrl(signIn, options['auth-signin-redirect-param']),
      redirect: options['auth-request-redirect'] ?? '$request_uri',
      passesRedirects: false,
      alwaysSetsCookies: options['auth-always-set-cookie'] === true,
    },
    ...(options['auth-cache-key'] && {
      cache: { ...options['auth-cache-key'], seconds: options['auth-cache-duration'] ?? DEFAULT_CACHE },
    }),
  };
}
