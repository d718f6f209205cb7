import test from 'ava';
import { SecretText } from '../../../agent/base/secret-text.ts';
import { type Access, type Content, type Found, LastGood } from '../../../agent/certificates/last-good.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

const NAME = 'default/web';
const HOUR = 3_600_000;

function content(fingerprint: string, expires = Number.POSITIVE_INFINITY): Content {
  return { fingerprint, expires, pem: new SecretText(`text of ${fingerprint}`) };
}

function started(keeps?: number) {
  const clock = new FakeClock();
  const objects = new Map<string, Found<Content>>();
  const state = { access: { kind: 'read' } as Access, isRead: true, changed: [] as string[] };
  const kept = new LastGood<Content>({
    find: (name) => objects.get(name),
    missing: 'it does not exist',
    access: () => state.access,
    isRead: () => state.isRead,
    onChanged: (names) => state.changed.push(...names),
    ...(keeps !== undefined && { keeps }),
    clock,
  });
  kept.start();
  const put = (found: Content | string): void => {
    const isFault = typeof found === 'string';
    objects.set(NAME, { content: isFault ? undefined : found, fault: isFault ? found : '' });
  };
  return { clock, objects, state, kept, put };
}

test('A broken or deleted object keeps its last content, with the reason', (t) => {
  const { objects, kept, put } = started();
  const first = content('a');
  put(first);
  t.deepEqual(kept.answer(NAME), { content: first, fault: '', isMissing: false, isExpired: false });
  put('it has no tls.key');
  t.deepEqual(kept.answer(NAME), {
    content: first,
    fault: 'it has no tls.key',
    isMissing: false,
    isExpired: false,
  });
  objects.clear();
  t.deepEqual(kept.answer(NAME), {
    content: first,
    fault: 'it does not exist',
    isMissing: true,
    isExpired: false,
  });
});

test('An object that cannot be read is no fault before it was asked for, and one with the reason after', (t) => {
  const { state, kept } = started();
  state.access = { kind: 'pending' };
  t.is(kept.answer(NAME).fault, '');
  state.access = { kind: 'denied', why: 'the account may not' };
  t.deepEqual(kept.answer(NAME), {
    content: undefined,
    fault: 'the account may not',
    isMissing: true,
    isExpired: false,
  });
});

test('The texts of the present and of the last content are known, older ones are not', (t) => {
  const { kept, put } = started();
  for (const fingerprint of ['a', 'b', 'c']) {
    put(content(fingerprint));
    kept.answer(NAME);
  }
  t.deepEqual(
    ['a', 'b', 'c'].map((fingerprint) => kept.pem(NAME, fingerprint)),
    [undefined, 'text of b', 'text of c'],
  );
});

test('What an earlier agent had counts until the object is read', (t) => {
  const { kept, put } = started();
  const [old, now] = [content('old'), content('now')];
  kept.restore(NAME, old);
  t.is(kept.answer(NAME).content, old);
  put(now);
  t.is(kept.answer(NAME).content, now);
  kept.restore(NAME, old);
  t.is(kept.answer(NAME).content, now);
});

test('An expiry is reported once, when it comes', async (t) => {
  const { clock, state, kept, put } = started();
  put(content('a', clock.wall() + HOUR));
  t.false(kept.answer(NAME).isExpired);
  await clock.advance(HOUR - 60_000);
  t.deepEqual(state.changed, []);
  await clock.advance(120_000);
  t.true(kept.answer(NAME).isExpired);
  t.true(state.changed.length > 0);
  const { length } = state.changed;
  await clock.advance(HOUR);
  t.is(state.changed.length, length);
  put(content('b', clock.wall() + HOUR));
  t.false(kept.answer(NAME).isExpired);
});

test('What no load balancer asks for any more is forgotten', async (t) => {
  const { clock, state, kept, put } = started();
  put(content('a'));
  kept.answer(NAME);
  t.deepEqual(kept.expiries(), [{ name: NAME, expires: Number.POSITIVE_INFINITY }]);
  state.isRead = false;
  await clock.advance(60_000);
  t.is(kept.pem(NAME, 'a'), undefined);
  t.deepEqual(kept.expiries(), []);
});

test('The texts of the last contents are known, so many as it keeps, each once', (t) => {
  for (const keeps of [undefined, 4]) {
    const { kept, put } = started(keeps);
    for (const fingerprint of ['a', 'b', 'c', 'd', 'e', 'd', 'e']) {
      put(content(fingerprint));
      kept.answer(NAME);
    }
    const known = ['a', 'b', 'c', 'd', 'e'].filter((each) => kept.pem(NAME, each) === `text of ${each}`);
    t.deepEqual(known, keeps === undefined ? ['d', 'e'] : ['b', 'c', 'd', 'e']);
  }
});
