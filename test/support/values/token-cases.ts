// Tokens that let in, and tokens that must not, for HAProxy and for what `why` says of them.

import { createHmac } from 'node:crypto';
import type { RouteJwt } from '../../../agent/model/routes.ts';
import { goodClaims, ISSUER, part, pemOf, signer, tokenOf } from './tokens.ts';

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
  return [
    ...good(now),
    ...forged(now),
    ...forgedHeaders(now),
    ...forgedSignatures(now),
    ...unfit(now),
    ...notJson(now),
    ...unfitHeaders(now),
  ];
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
  const text = (rest: string) => `${JSON.stringify(claims).slice(0, -1)},${rest}}`;
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
      ['an end with a fraction', tokenOf(EC, { ...claims, exp: seconds + 0.5 })],
      [
        'an end in another spelling',
        tokenOf(EC, JSON.stringify({ ...claims, exp: 0 }).replace(':0}', ':9e9}')),
      ],
      [
        'numbers by their text',
        tokenOf(EC, text('"n":1.50,"m":1e3')),
        {
          required: [
            { claim: 'n', values: ['1.50'] },
            { claim: 'm', values: ['1e3'] },
          ],
        },
      ],
      [
        'an element of a list',
        tokenOf(EC, { ...claims, groups: ['a', { id: 'b' }] }),
        { required: [{ claim: '/groups/1/id', values: ['b'] }] },
      ],
      [
        'a claim that a control character of Latin-1 has',
        tokenOf(EC, { ...claims, name: 'a\u0085b' }),
        NAME_TO_MEMBER,
      ],
      [
        'fields of the header that say nothing',
        tokenOf(EC, claims, { jku: 'https://evil/', x5c: ['a'], cty: 'a' }),
      ],
      ['as many levels as may be', tokenOf(EC, { ...claims, deep: nested(14) })],
      ['claims that are wanted', tokenOf(EC, { ...claims, ...given }), { required: wanted }],
    ] as const
  ).map(([what, token, changes = {}]) => ({ what, token, changes, fault: '' }));
}

const NAME_TO_MEMBER = { headers: [{ name: 'X-Name', claim: 'name' }] };

/** A list in a list, so many levels. */
function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)];
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

function forgedHeaders(now: number): readonly TokenCase[] {
  const claims = goodClaims(now);
  const kids = [
    '../../../etc/passwd',
    "' or 1=1 --",
    'ec\0',
    ' ec',
    'EC',
    'ёс',
    '*',
    'a'.repeat(1_000),
    'e%63',
  ];
  const algorithms = ['none', 'None', 'NONE', '', 'es256', 'ES256 ', 'ES384', 'HS256', 'PS256', 'EdDSA'];
  const algorithm = 'is signed by another algorithm than ES256';
  return (
    [
      ...kids.map((kid) => [`kid ${kid.slice(0, 20)}`, tokenOf(EC, claims, { kid }), 'names a key that']),
      ...algorithms.map((alg) => [`alg ${alg}`, tokenOf(EC, claims, { alg }), algorithm]),
      ['no alg', tokenOf(EC, claims, { alg: undefined }), algorithm],
      ['two names of keys', tokenOf(EC, claims, '{"alg":"ES256","kid":"x","kid":"ec"}'), 'has a header that'],
      ['two algorithms', tokenOf(EC, claims, '{"alg":"none","alg":"ES256","kid":"ec"}'), 'has a header that'],
      [
        'two algorithms, one escaped',
        tokenOf(EC, claims, '{"alg":"none","\\u0061lg":"ES256","kid":"ec"}'),
        'has a header that is not JSON',
      ],
      ['critical fields that are null', tokenOf(EC, claims, { crit: null }), 'has critical fields'],
      ['a deep header', tokenOf(EC, claims, { deep: nested(16) }), 'has a header that is not JSON'],
      ['a long header', tokenOf(EC, claims, { deep: 'a'.repeat(2_000) }), 'has a header of more than 2048'],
      [
        'a mark before its header',
        tokenOf(EC, claims, '\ufeff{"alg":"ES256","kid":"ec"}'),
        'has a header that',
      ],
      [
        'a header that is not UTF-8',
        tokenOf(EC, claims, Buffer.from('{"alg":"ES256","kid":"ec","x":"\xff"}', 'latin1')),
        'has a header that is not JSON',
      ],
    ] as const
  ).map(([what = '', token = '', fault = '']) => ({ what, token, fault, changes: {} }));
}

function forgedSignatures(now: number): readonly TokenCase[] {
  const claims = goodClaims(now);
  const ofEc = tokenOf(EC, claims);
  const ofRsa = tokenOf(RSA, claims);
  const bytesOf = (token: string) => Buffer.from(token.split('.')[2] ?? '', 'base64url');
  const signed = (token: string, signature: Buffer) =>
    [...token.split('.').slice(0, 2), signature.toString('base64url')].join('.');
  const text = `${part({ alg: 'HS256', kid: 'rsa' })}.${part(claims)}`;
  const hmac = createHmac('sha256', pemOf(RSA)).update(text).digest('base64url');
  const order = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex');
  const wrong = 'has a wrong signature';
  return (
    [
      ['HMAC with the public key', `${text}.${hmac}`, 'is signed by another algorithm than RS256'],
      ['a signature of zeros', signed(ofEc, Buffer.alloc(64)), wrong],
      ['a signature of the order', signed(ofEc, Buffer.concat([order, order])), wrong],
      ['a signature of zeros with RSA', signed(ofRsa, Buffer.alloc(256)), wrong],
      ['a longer signature', signed(ofEc, Buffer.concat([bytesOf(ofEc), Buffer.alloc(1)])), wrong],
      ['a zero before its signature', signed(ofRsa, Buffer.concat([Buffer.alloc(1), bytesOf(ofRsa)])), wrong],
      ['half a signature', signed(ofEc, bytesOf(ofEc).subarray(0, 32)), wrong],
      ['a signature of no bytes', `${ofEc}AAA`, wrong],
      ['a signature of one character', `${ofEc.split('.').slice(0, 2).join('.')}.A`, wrong],
      ['a line break', ofEc.replace('.', '.\\n'), 'is not a signed token (JWS)'],
      ['base64 that is not for URLs', ofEc.replace(/.$/, '+'), 'is not a signed token (JWS)'],
      ['five parts', `${ofEc}.AAAA.AAAA`, 'is not a signed token (JWS)'],
      [
        'more than 8192 bytes',
        tokenOf(EC, { ...claims, pad: 'a'.repeat(6_000) }),
        'has more than 8192 bytes',
      ],
    ] as const
  ).map(([what, token, fault]) => ({ what, token, fault, changes: {} }));
}

function unfit(now: number): readonly TokenCase[] {
  const claims = goodClaims(now);
  const seconds = Math.floor(now / 1000);
  return (
    [
      ['no end', tokenOf(EC, { ...claims, exp: undefined }), 'does not say when it ends'],
      ['an end that is a text', tokenOf(EC, { ...claims, exp: '9999999999' }), 'does not say when it ends'],
      ['an end that is null', tokenOf(EC, { ...claims, exp: null }), 'does not say when it ends'],
      ['an end in a list', tokenOf(EC, { ...claims, exp: [seconds + 60] }), 'does not say when it ends'],
      ['an end before all', tokenOf(EC, { ...claims, exp: -1 }), 'has ended'],
      ['a begin that is null', tokenOf(EC, { ...claims, nbf: null }), 'has not begun'],
      ['a past end', tokenOf(EC, { ...claims, exp: seconds - 31 }), 'has ended'],
      ['a later begin', tokenOf(EC, { ...claims, nbf: seconds + 90 }), 'has not begun'],
      ['a begin that is a text', tokenOf(EC, { ...claims, nbf: '0' }), 'has not begun'],
      ['another issuer', tokenOf(EC, { ...claims, iss: `${ISSUER}/` }), 'is of another issuer'],
      ['no issuer', tokenOf(EC, { ...claims, iss: undefined }), 'is of another issuer'],
      ['several issuers', tokenOf(EC, { ...claims, iss: [ISSUER] }), 'is of another issuer'],
      ['another audience', tokenOf(EC, { ...claims, aud: 'Shop' }), 'is for another audience'],
      ['no audience', tokenOf(EC, { ...claims, aud: undefined }), 'is for another audience'],
      ['no audience of several', tokenOf(EC, { ...claims, aud: [] }), 'is for another audience'],
      ['an audience two levels down', tokenOf(EC, { ...claims, aud: [['shop']] }), 'is for another audience'],
      ['an audience with a zero', tokenOf(EC, { ...claims, aud: 'shop\0' }), 'is for another audience'],
      ['audiences in one text', tokenOf(EC, { ...claims, aud: 'shop other' }), 'is for another audience'],
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
      ...['__proto__', 'constructor', '/aud/length', '/aud/-1', '/aud/0/0'].map(
        (claim) =>
          [
            `no claim ${claim}`,
            tokenOf(EC, { ...claims, aud: ['shop'] }),
            `lacks what the route wants of claim "${claim}"`,
            { required: [{ claim, values: [] }] },
          ] as const,
      ),
      [
        'words that only look like several',
        tokenOf(EC, { ...claims, scope: 'a\u00a0b' }),
        'lacks what the route wants of claim "scope"',
        { required: [{ claim: 'scope', values: ['b'] }] },
      ],
    ] as const
  ).map(([what, token, fault, changes = {}]) => ({ what, token, fault, changes }));
}

/** Claims that another reader could read in another way. */
function notJson(now: number): readonly TokenCase[] {
  const claims = goodClaims(now);
  const whole = JSON.stringify(claims);
  const inside = whole.slice(0, -1);
  const texts: Readonly<Record<string, string | Buffer>> = {
    'claims that are a list': '[]',
    'claims that are a text': '"a"',
    'claims that are cut': inside,
    'two claims of one name': `${inside},"sub":"root"}`,
    'two claims of one name, one escaped': `${inside},"\\u0073ub":"root"}`,
    'two names in a claim': `${inside},"a":{"b":1,"b":2}}`,
    'a comma at the end': `${inside},}`,
    'a comment': `${inside}/**/}`,
    'a number with a zero before it': `${inside},"a":01}`,
    'a number that is none': `${inside},"a":NaN}`,
    'a name without quotes': `${inside},a:1}`,
    'text behind them': `${whole}x`,
    'a zero behind them': `${whole}\0`,
    'a line break in a text': `${inside},"a":"\n"}`,
    'DEL in a text': `${inside},"a":"\x7f"}`,
    'half a character': `${inside},"a":"\\ud800"}`,
    'the halves of a character in the wrong order': `${inside},"a":"\\udc00\\ud800"}`,
    'an escape that is none': `${inside},"a":"\\x41"}`,
    'too many levels': `${inside},"a":${'['.repeat(17)}${']'.repeat(17)}}`,
    'more levels than a stack has': `${inside},"a":${'['.repeat(2_000)}${']'.repeat(2_000)}}`,
    'a mark before them': `\ufeff${whole}`,
    'bytes that are not UTF-8': Buffer.from(`${inside},"a":"\xc0\xaf"}`, 'latin1'),
    'half a character in UTF-8': Buffer.from(`${inside},"a":"\xed\xa0\x80"}`, 'latin1'),
  };
  return Object.entries(texts).map(([what, text]) => ({
    what,
    token: tokenOf(EC, text),
    fault: 'has claims that are not JSON',
    changes: {},
  }));
}

function unfitHeaders(now: number): readonly TokenCase[] {
  const claims = goodClaims(now);
  const unfit = ['a\0', 'a\tb', ' root', 'root ', ['root '], [' root'], [['a']], ['a', null]];
  return (
    [
      ...unfit.map(
        (name) =>
          [
            `the claim ${JSON.stringify(name)}`,
            tokenOf(EC, { ...claims, name }),
            'has a claim "name" that a header cannot have',
            NAME_TO_MEMBER,
          ] as const,
      ),
      [
        'a claim with DEL',
        tokenOf(EC, `${JSON.stringify(claims).slice(0, -1)},"name":"a\\u007f"}`),
        'has a claim "name" that a header cannot have',
        NAME_TO_MEMBER,
      ],
      [
        'claims without room in headers',
        tokenOf(EC, { ...claims, name: 'a'.repeat(4_000) }),
        'has claims of more than 8000 bytes for headers',
        { headers: ['X-A', 'X-B'].map((name) => ({ name, claim: 'name' })) },
      ],
      [
        'a claim that ends a header',
        tokenOf(EC, { ...claims, name: 'a\r\nX-Admin: 1' }),
        'has a claim "name" that a header cannot have',
        NAME_TO_MEMBER,
      ],
      [
        'a claim that looks like two',
        tokenOf(EC, { ...claims, name: ['user,admin'] }),
        'has a claim "name" that a header cannot have',
        NAME_TO_MEMBER,
      ],
      [
        'a claim that is a mapping',
        tokenOf(EC, { ...claims, name: { a: 1 } }),
        'has a claim "name" that a header cannot have',
        NAME_TO_MEMBER,
      ],
    ] as const
  ).map(([what, token, fault, changes = {}]) => ({ what, token, fault, changes }));
}
