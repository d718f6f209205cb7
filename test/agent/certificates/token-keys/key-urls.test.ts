import test from 'ava';
import { isAllowed, KeyUrls } from '../../../../agent/certificates/token-keys/key-urls.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { jwksOf, signer } from '../../../support/values/tokens.ts';

const URL = 'https://id.example.org/keys';
const NAME = `jwks ${URL}` as const;
const FIRST = jwksOf(signer('a', 'ES256'));
const SECOND = jwksOf(signer('b', 'ES256'));

function reader(allowed: readonly string[] = ['https://id.example.org']) {
  const clock = new FakeClock();
  const state = {
    allowed,
    answer: FIRST as string | Error,
    maxAge: undefined as number | undefined,
    isRead: true,
    reads: 0,
    changes: 0,
  };
  const urls = new KeyUrls({
    allowed: () => state.allowed,
    read: async () => {
      state.reads++;
      if (typeof state.answer !== 'string') throw state.answer;
      return { text: state.answer, maxAge: state.maxAge };
    },
    isRead: () => state.isRead,
    onChanged: () => void state.changes++,
    clock,
  });
  urls.start();
  const kids = () => urls.find(NAME)?.content?.keys.map(({ kid }) => kid);
  return { clock, state, urls, kids };
}

test('A URL is read when it is first asked for, and again after five minutes', async (t) => {
  const { clock, state, urls, kids } = reader();
  t.is(urls.find(NAME), undefined);
  t.deepEqual([urls.access(NAME), urls.access(NAME)], [{ kind: 'pending' }, { kind: 'pending' }]);
  await settled();
  t.deepEqual([kids(), state.reads, state.changes], [['a'], 1, 1]);
  state.answer = SECOND;
  await clock.advance(299_000);
  t.deepEqual([kids(), state.reads], [['a'], 1]);
  await clock.advance(31_000);
  t.deepEqual([kids(), state.reads, state.changes], [['b'], 2, 2]);
  await clock.advance(330_000);
  t.deepEqual([state.reads, state.changes], [3, 2], 'the same keys are no change');
  urls.close();
});

for (const [maxAge, seconds] of [
  [0, 30],
  [15, 30],
  [100, 120],
  [86_400, 300],
] as const)
  test(`A URL whose answer may be kept for ${maxAge} s is read again after ${seconds} s`, async (t) => {
    const { clock, state, urls } = reader();
    state.maxAge = maxAge;
    urls.access(NAME);
    await settled();
    await clock.advance(seconds * 1000 - 1);
    t.is(state.reads, 1);
    await clock.advance(1);
    t.is(state.reads, 2);
    urls.close();
  });

test('A URL that does not answer is a fault, and read again half a minute later', async (t) => {
  const { clock, state, urls, kids } = reader();
  state.answer = new Error('connect ECONNREFUSED');
  urls.access(NAME);
  await settled();
  t.deepEqual(urls.find(NAME), { content: undefined, fault: 'it cannot be read: connect ECONNREFUSED' });
  state.answer = FIRST;
  await clock.advance(61_000);
  t.deepEqual([kids(), state.changes], [['a'], 2]);
  urls.close();
});

test('A URL that the setting does not allow is never read, nor used when the setting no longer allows it', async (t) => {
  const { clock, state, urls } = reader([]);
  const denied = { kind: 'denied', why: 'the setting jwksUrls does not allow this URL' } as const;
  t.deepEqual(urls.access(NAME), denied);
  t.is(state.reads, 0);
  state.allowed = ['https://id.example.org'];
  urls.access(NAME);
  await settled();
  t.truthy(urls.find(NAME)?.content);
  state.allowed = ['https://other.example.org'];
  t.is(urls.find(NAME), undefined);
  t.deepEqual(urls.access(NAME), denied);
  await clock.advance(700_000);
  t.is(state.reads, 1);
  urls.close();
});

test('What no load balancer asks for is forgotten, and no more than 64 URLs are read', async (t) => {
  const { clock, state, urls } = reader();
  for (let at = 0; at < 64; at++) urls.access(`jwks ${URL}/${at}`);
  await settled();
  t.is(state.reads, 64);
  t.is(urls.access(NAME).kind, 'denied');
  state.isRead = false;
  await clock.advance(31_000);
  t.is(urls.access(NAME).kind, 'pending');
  await settled();
  t.is(state.reads, 65);
  urls.close();
});

test('A URL that the setting names itself is read however many others are', async (t) => {
  const { state, urls, kids } = reader(['https://id.example.org', URL]);
  for (let at = 0; at < 100; at++) urls.access(`jwks ${URL}/${at}`);
  t.is(urls.access(`jwks ${URL}/100`).kind, 'denied');
  t.is(urls.access(NAME).kind, 'pending');
  await settled();
  t.deepEqual([kids(), state.reads], [['a'], 65]);
  urls.close();
});

for (const [url, isGood] of [
  ['https://id.example.org/keys', true],
  ['https://id.example.org/keys/v2?a=b', true],
  ['https://id.example.org:443/keys', true],
  ['https://id.example.org/keysx', false],
  ['https://id.example.org/', false],
  ['https://id.example.org/keys/../admin', false],
  ['https://id.example.org/keys/%2e%2e/admin', false],
  ['https://id.example.org/keys/..%2fadmin', false],
  ['https://id.example.org/keys//x', false],
  ['https://id.example.org:8443/keys', false],
  ['https://id.example.org.evil/keys', false],
  ['https://user@id.example.org/keys', false],
  ['https://169.254.169.254/keys', false],
  ['http://id.example.org/keys', false],
  ['file:///keys', false],
  ['keys', false],
] as const)
  test(`With https://id.example.org/keys, the URL ${url} is ${isGood ? 'allowed' : 'refused'}`, (t) => {
    t.is(isAllowed(url, ['https://id.example.org/keys']), isGood);
    t.is(isAllowed(url, ['https://id.example.org/keys/']), isGood);
    t.false(isAllowed(url, []));
    t.false(isAllowed(url, ['http://id.example.org/keys']));
  });
