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
  const { text, maxAge } = await readJwks(URL, from);
  t.deepEqual([JSON.parse(text), maxAge], [JSON.parse(JWKS), undefined]);
  t.deepEqual(asked, [{ url: URL, redirect: 'manual' }]);
});

for (const [control, maxAge] of [
  ['public, max-age=15, stale-while-revalidate=15', 15],
  ['no-cache', 0],
  ['private,No-Store,max-age=600', 0],
  ['s-max-age=7, max-age="60"', 60],
  ['max-age=-1', undefined],
  ['x-no-cache', undefined],
] as const)
  test(`readJwks() says for how long Cache-Control "${control}" lets it be kept`, async (t) => {
    const { from } = answering(() => new Response(JWKS, { headers: { 'cache-control': control } }));
    t.is((await readJwks(URL, from)).maxAge, maxAge);
  });

const location = 'http://169.254.169.254/';
for (const [what, response, why] of [
  ['a redirect', () => new Response(null, { status: 302, headers: { location } }), /status 302, .* not foll/],
  ['an error', () => new Response(JWKS, { status: 500 }), /^it answers with status 500$/],
  ['no JSON', () => new Response('<html>'), /^its answer is not JSON$/],
  ['no set', () => new Response('{"keys":7}'), /malformed/],
  [
    'too much',
    () => new Response(JSON.stringify({ keys: [], pad: 'x'.repeat(300_000) })),
    /more than 262144/,
  ],
] as const)
  test(`readJwks() rejects ${what}, and says why`, async (t) => {
    await t.throwsAsync(readJwks(URL, answering(response).from), { message: why });
  });
