// The forms of names in the Gateway API, as rules: each value of an object passes one of them (apis/v1/shared_types.go). Pure.

import { intern } from '../../base/compact.ts';
import { label, type NameForm, subdomain } from '../../base/name-forms.ts';
import { listOf, object, textReader, textRule, type Valid, wholeNumber } from '../../base/validate.ts';
import { named, namedOrEmpty, time, uid } from '../object-names.ts';

export const GATEWAY_GROUP = 'gateway.networking.k8s.io';
export const GATEWAY_API_VERSION = `${GATEWAY_GROUP}/v1`;

export const metadataFields = {
  name: named(subdomain),
  namespace: namedOrEmpty(label).nullish(),
  uid: uid().nullish(),
  creationTimestamp: time().nullish(),
  deletionTimestamp: time().nullish(),
  generation: wholeNumber(0, Number.MAX_SAFE_INTEGER).nullish(),
};

export const metadata = object(metadataFields);

/** The identity of an object in a namespace. */
export function identityOf({
  namespace,
  name,
  uid: id,
  creationTimestamp,
  generation,
}: Valid<typeof metadata>) {
  const space = namespace || 'default';
  return {
    key: `${space}/${name}`,
    namespace: intern(space),
    name,
    uid: id ?? '',
    created: creationTimestamp ?? Number.POSITIVE_INFINITY,
    generation: generation ?? 0,
  };
}

const KIND = /^[a-zA-Z](?:[-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$/;
/** RFC 9110, token. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/;

export const group = () => namedOrEmpty(subdomain);
export const kind = () =>
  textReader(
    (text) => (KIND.test(text) ? intern(text) : undefined),
    'is not a kind (A-Z, a-z, 0-9 and "-", at most 63 characters)',
  );
export const namespace = () => namedOrEmpty(label).or('');
export const objectName = () => named(subdomain);
/** The name of a listener, a rule, or a port. */
export const sectionName = () => namedOrEmpty(subdomain).or('');
export const port = () => wholeNumber(1, 65535);
/** 0 if it is not written. */
export const maybePort = () => wholeNumber(0, 65535).or(0);

const HOST_NAME = 'is not a host name in lower case (a-z, 0-9, "-" and ".")';
const hostForm: NameForm = {
  check: (text) => text.length <= 253 && subdomain.check(text.replace(/^\*\./, '')),
  not: `${HOST_NAME}, or one with "*." in front`,
};

/** '' if it is not written. */
export const hostname = () => namedOrEmpty(hostForm).or('');
export const hostnames = (most: number) => atMost(listOf(named(hostForm)), most).or([]);
export const preciseHostname = () => namedOrEmpty({ check: subdomain.check, not: HOST_NAME }).or('');

export const headerName = () =>
  textRule(
    (text) => text.length <= 256 && TOKEN.test(text),
    "is not the name of a header (at most 256 letters, digits and !#$%&'*+-.^_`|~)",
  );

/** The value of a header or a parameter: anything that prints, and tabs. */
export const fieldValue = (most: number) =>
  textRule(
    (text) => text.length >= 1 && text.length <= most && /^[\t\x20-\x7e\u0080-\uffff]*$/.test(text),
    `is not a text of 1 to ${most} characters without control characters`,
  );

const DURATION = /^(?:\d{1,5}(?:h|m|s|ms)){1,4}$/;
const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** Milliseconds (GEP-2257). */
export const duration = () =>
  textReader((text) => {
    if (!DURATION.test(text)) return undefined;
    let milliseconds = 0;
    for (const [, count, unit] of text.matchAll(/(\d+)(ms|h|m|s)/g))
      milliseconds += Number(count) * (UNIT_MS[unit ?? ''] ?? 0);
    return milliseconds;
  }, 'is not a duration as in "10s" or "1m30s"');

export function atMost<T>(rule: ReturnType<typeof listOf<T>>, most: number): ReturnType<typeof listOf<T>> {
  return rule.refine((list, refuse) => {
    if (list.length > most) refuse([], `has ${list.length} items, at most ${most} are allowed`);
  });
}

/** A reference to an object; `defaults` as the API has them for the field. */
export const reference = (defaults: { readonly group: string; readonly kind: string }) =>
  object({
    group: group().or(defaults.group),
    kind: kind().or(defaults.kind),
    namespace: namespace(),
    name: objectName(),
  });

export const groupKind = object({ group: group().or(GATEWAY_GROUP), kind: kind() });
