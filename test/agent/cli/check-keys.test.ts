// What `headgate check` says of URLs with keys of tokens; the answers of servers are the test's.

import test from 'ava';
import { keyFindings } from '../../../agent/cli/check-keys.ts';
import { jwksOf, signer } from '../../support/values/tokens.ts';

const KEYS = jwksOf(signer('one', 'ES256'));
const BASE = 'https://id.example.org/';

type Answer = Response | Error;

async function found(
  allowed: readonly string[],
  named: readonly string[],
  answers: Readonly<Record<string, Answer>>,
): Promise<readonly string[]> {
  const fetchFrom = async (url: unknown) => {
    const answer = answers[String(url)] ?? new Response('', { status: 404 });
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const findings = await keyFindings(allowed, named, fetchFrom as typeof fetch);
  return findings.map(
    ({ what, ok, isWarning, detail }) => `${ok ? (isWarning ? 'warn' : 'ok') : 'BAD'} ${what}: ${detail}`,
  );
}

const failed = (code: string, message: string) =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) });

const MEANWHILE = 'until it can, routes keep the keys that they had, and answer 403 if they had none';

test('keyFindings() names the keys of a URL, and says of one above others that it answers', async (t) => {
  const url = `${BASE}jwks`;
  t.deepEqual(await found([url], [], { [url]: new Response(KEYS) }), [
    `ok ${url}: it answers, is trusted, and has "one" (ES256)`,
  ]);
  t.deepEqual(await found([BASE], [url], { [url]: new Response(KEYS) }), [
    `ok ${BASE}: it answers and is trusted; it has no keys itself (it answers with status 404), and URLs beneath it may have them`,
    `ok ${url}: it answers, is trusted, and has "one" (ES256)`,
  ]);
});

test('keyFindings() warns of a URL that is away, not trusted, or without keys, and says what happens', async (t) => {
  const [away, foreign, empty] = ['away', 'foreign', 'empty'].map((name) => BASE + name) as [
    string,
    string,
    string,
  ];
  const lines = await found([BASE], [away, foreign, empty], {
    [BASE]: failed('ENOTFOUND', 'getaddrinfo ENOTFOUND id.example.org'),
    [away]: failed('ECONNREFUSED', 'connect ECONNREFUSED 192.0.2.1:443'),
    [foreign]: failed('SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain'),
    [empty]: new Response('{"keys":[]}'),
  });
  t.deepEqual(lines, [
    `warn ${BASE}: it cannot be read: fetch failed: getaddrinfo ENOTFOUND id.example.org; ${MEANWHILE}`,
    `warn ${away}: it cannot be read: fetch failed: connect ECONNREFUSED 192.0.2.1:443; ${MEANWHILE}`,
    `warn ${foreign}: it cannot be read: fetch failed: self-signed certificate in certificate chain: set NODE_EXTRA_CA_CERTS to a file with its authority, for the agent and for this command; ${MEANWHILE}`,
    `warn ${empty}: it answers and is trusted, but has no key that can be used: it has no key for signatures; ${MEANWHILE}`,
  ]);
});

test('keyFindings() reads no URL that is not of https, or that the setting does not allow', async (t) => {
  t.deepEqual(
    await found(['http://id.example.org/'], ['http://id.example.org/x', 'https://else.example.org/'], {}),
    ['BAD http://id.example.org/: no keys are read from a URL that is not of https: correct "jwksUrls"'],
  );
});
