import test from 'ava';
import { readJwks } from '../../../../agent/certificates/token-keys/jwks-reader.ts';
import { jwksOf, signer } from '../../../support/values/tokens.ts';

const URL = 'https://id.example.org/keys';
const JWKS = jwksOf(signer('a', 'ES256'));

/** Answers, and notes what it was asked. */
function answering(response: () => Response) {
  const asked: { readonly url: string; readonly redirect: string | undefined }[] = [];
  const from = async (url: unknown, options?: RequestInit): Promise<Response> => {
    asked.push({ url: String(url), redirect: options?.redirect });
    return response();
  };
  return { asked, from: from as typeof fetch };
}

test('readJwks() gives the text of the set, and follows no redirect', async (t) => {
  const { asked, from } = answering(() => new Response(JWKS));
  t.deepEqual(JSON.parse(await readJwks(URL, from)), JSON.parse(JWKS));
  t.deepEqual(asked, [{ url: URL, redirect: 'manual' }]);
});

for (const [what, response] of [
  ['a redirect', () => new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/' } })],
  ['an error', () => new Response(JWKS, { status: 500 })],
  ['no JSON', () => new Response('<html>')],
  ['no set', () => new Response('{"keys":7}')],
  ['too much', () => new Response(JSON.stringify({ keys: [], pad: 'x'.repeat(300_000) }))],
] as const)
  test(`readJwks() rejects ${what}`, async (t) => {
    await t.throwsAsync(readJwks(URL, answering(response).from));
  });
