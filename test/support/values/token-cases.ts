// Tokens that let in, and tokens that must not, for HAProxy and for what `why` says of them.

import type { RouteJwt } from '../../../agent/model/routes.ts';
import { goodClaims, ISSUER, part, signer, tokenOf } from './tokens.ts';

export const RSA = signer('rsa', 'RS256');
export const EC = signer('ec', 'ES256');

export const JWT: RouteJwt = {
  keys: 'configmap default/keys',
  issuer: ISSUER,
  audiences: ['shop'],
  from: { kind: 'bearer', name: 'authorization' },
  leeway: 30,
  required: [],
  headers: [],
};

export interface TokenCase {
  readonly what: string;
  readonly token: string;
  /** '' if it lets in; else what `why` says of it. */
  readonly fault: string;
  /** What the route wants besides. */
  readonly changes: Partial<RouteJwt>;
}

/** Behind each other in time: only the seconds of `now` count. */
export function tokenCases(now: number): readonly TokenCase[] {
  return [...good(now), ...forged(now), ...unfit(now)];
}

function good(now: number): readonly TokenCase[] {
  const claims = goodClaims(now);
  const seconds = Math.floor(now / 1000);
  const wanted = [
    { claim: 'groups', values: ['admin', 'ops'] },
    { claim: '/realm/roles', values: ['1'] },
    { claim: '/realm/a~1b', values: ['true'] },
    { claim: 'scope', values: ['b'] },
    { claim: 'sub', values: [] },
  ];
  const given = { groups: ['x', 'ops'], realm: { roles: [1], 'a/b': true }, scope: 'a b', name: 'Zoë \\"😀' };
  return (
    [
      ['RS256', tokenOf(RSA, claims)],
      ['ES256', tokenOf(EC, claims)],
      ['several audiences', tokenOf(EC, { ...claims, aud: ['other', 'shop'] })],
      ['no audience, if none is wanted', tokenOf(EC, { ...claims, aud: undefined }), { audiences: [] }],
      ['an end within the leeway', tokenOf(EC, { ...claims, exp: seconds - 15 })],
      ['a begin within the leeway', tokenOf(EC, { ...claims, nbf: seconds + 15 })],
      ['blanks in its JSON', tokenOf(EC, JSON.stringify(claims, null, 2))],
      ['characters that are escaped', tokenOf(EC, JSON.stringify(claims).replace('"shop"', '"\\u0073hop"'))],
      ['claims that are wanted', tokenOf(EC, { ...claims, ...given }), { required: wanted }],
    ] as const
  ).map(([what, token, changes = {}]) => ({ what, token, changes, fault: '' }));
}

function forged(now: number): readonly TokenCase[] {
  const claims = goodClaims(now);
  const [head = '', body = '', signature = ''] = tokenOf(RSA, claims).split('.');
  const none = part({ alg: 'none', kid: 'rsa' });
  return (
    [
      ['no signature', `${none}.${body}.`, 'is not a signed token (JWS)'],
      ['the algorithm none', `${none}.${body}.${signature}`, 'is signed by another algorithm than RS256'],
      ['HMAC by the public key', tokenOf(RSA, claims, { alg: 'HS256' }), 'is signed by another algorithm'],
      [
        'another algorithm',
        tokenOf({ ...RSA, algorithm: 'RS512' }, claims),
        'is signed by another algorithm',
      ],
      [
        'the algorithm of the other key',
        tokenOf(RSA, claims, { alg: 'ES256' }),
        'is signed by another algor',
      ],
      ['the name of the other key', tokenOf(RSA, claims, { kid: 'ec' }), 'is signed by another algorithm'],
      ['an algorithm that is no text', tokenOf(RSA, claims, { alg: ['RS256'] }), 'is signed by another'],
      ['an unknown key', tokenOf({ ...RSA, kid: 'x' }, claims), 'names a key that is not among them'],
      ['no name of its key', tokenOf(RSA, claims, { kid: undefined }), 'names a key that is not among them'],
      ['a name that is no text', tokenOf(RSA, claims, { kid: 7 }), 'names a key that is not among them'],
      ['names of two keys', tokenOf(RSA, claims, { kid: 'rsa|RS256' }), 'names a key that is not among them'],
      ['a key of its own', tokenOf(RSA, claims, { kid: 'x', jwk: {}, jku: 'https://evil/' }), 'names a key'],
      ['the key of another', tokenOf({ ...signer('rsa', 'RS256') }, claims), 'has a wrong signature'],
      ['other claims', `${head}.${part({ ...claims, sub: 'root' })}.${signature}`, 'has a wrong signature'],
      ['a short signature', `${head}.${body}.AAAA`, 'has a wrong signature'],
      ['a critical field', tokenOf(RSA, claims, { crit: ['b64'], b64: false }), 'has critical fields'],
      ['a fourth part', `${head}.${body}.${signature}.x`, 'is not a signed token (JWS)'],
      ['two parts', `${head}.${body}`, 'is not a signed token (JWS)'],
      ['no parts', 'x', 'is not a signed token (JWS)'],
      ['base64 of another kind', `${head}.${body}.${signature}==`, 'is not a signed token (JWS)'],
      ['a header that is not JSON', `${part('{')}.${body}.${signature}`, 'has a header that is not JSON'],
    ] as const
  ).map(([what, token, fault]) => ({ what, token, fault, changes: {} }));
}

function unfit(now: number): readonly TokenCase[] {
  const claims = goodClaims(now);
  const seconds = Math.floor(now / 1000);
  const nameToMember = { headers: [{ name: 'X-Name', claim: 'name' }] };
  return (
    [
      ['claims that are a list', tokenOf(RSA, '[]'), 'has claims that are not JSON'],
      [
        'claims that are cut',
        tokenOf(RSA, JSON.stringify(claims).slice(0, -1)),
        'has claims that are not JSON',
      ],
      ['no end', tokenOf(EC, { ...claims, exp: undefined }), 'does not say when it ends'],
      ['an end that is a text', tokenOf(EC, { ...claims, exp: '9999999999' }), 'does not say when it ends'],
      ['a past end', tokenOf(EC, { ...claims, exp: seconds - 31 }), 'has ended'],
      ['a later begin', tokenOf(EC, { ...claims, nbf: seconds + 90 }), 'has not begun'],
      ['a begin that is a text', tokenOf(EC, { ...claims, nbf: '0' }), 'has not begun'],
      ['another issuer', tokenOf(EC, { ...claims, iss: `${ISSUER}/` }), 'is of another issuer'],
      ['no issuer', tokenOf(EC, { ...claims, iss: undefined }), 'is of another issuer'],
      ['several issuers', tokenOf(EC, { ...claims, iss: [ISSUER] }), 'is of another issuer'],
      ['another audience', tokenOf(EC, { ...claims, aud: 'Shop' }), 'is for another audience'],
      ['no audience', tokenOf(EC, { ...claims, aud: undefined }), 'is for another audience'],
      [
        'an audience in a mapping',
        tokenOf(EC, { ...claims, aud: { shop: 'shop' } }),
        'is for another audience',
      ],
      [
        'no such claim',
        tokenOf(EC, { ...claims, groups: ['user'] }),
        'lacks what the route wants of claim "groups"',
        { required: [{ claim: 'groups', values: ['admin'] }] },
      ],
      [
        'a claim that is null',
        tokenOf(EC, { ...claims, groups: null }),
        'lacks what the route wants of claim "groups"',
        { required: [{ claim: 'groups', values: [] }] },
      ],
      [
        'a claim whose name looks like a path',
        tokenOf(EC, { ...claims, 'realm.roles': 'admin', '/realm/roles': 'admin' }),
        'lacks what the route wants of claim "/realm/roles"',
        { required: [{ claim: '/realm/roles', values: ['admin'] }] },
      ],
      [
        'a claim that ends a header',
        tokenOf(EC, { ...claims, name: 'a\r\nX-Admin: 1' }),
        'has a claim "name" that a header cannot have',
        nameToMember,
      ],
      [
        'a claim that looks like two',
        tokenOf(EC, { ...claims, name: ['user,admin'] }),
        'has a claim "name" that a header cannot have',
        nameToMember,
      ],
      [
        'a claim that is a mapping',
        tokenOf(EC, { ...claims, name: { a: 1 } }),
        'has a claim "name" that a header cannot have',
        nameToMember,
      ],
    ] as const
  ).map(([what, token, fault, changes = {}]) => ({ what, token, fault, changes }));
}
