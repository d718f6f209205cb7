import test from 'ava';
import type { ApiStream } from '../../../../agent/kubernetes/api/kubernetes-api.ts';
import { PasswordSource } from '../../../../agent/kubernetes/api/password-source.ts';

function streamOf(status: number, text: string, signal?: AbortSignal): ApiStream {
  const chunks = (async function* () {
    if (text !== '') yield Buffer.from(text);
    if (signal === undefined) return;
    await new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  })();
  return { status, headers: {}, chunks };
}

const secret = (name: string, data: object) => ({
  metadata: { name, namespace: 'own', uid: name, resourceVersion: '1' },
  type: 'Opaque',
  data,
});

test('PasswordSource reads each Secret alone, when it is asked for, and says what is missing', async (t) => {
  const secrets = new Map([
    ['tor', secret('tor', { password: btoa('secret word\n'), long: btoa('x'.repeat(300)) })],
  ]);
  const lists: string[] = [];
  const later = { ...secret('tor', { password: btoa('another') }) };
  const changed = `${JSON.stringify({ type: 'MODIFIED', object: { ...later, metadata: { ...later.metadata, resourceVersion: '6' } } })}\n`;
  let next = Promise.withResolvers<void>();
  const source = new PasswordSource({
    api: {
      open: async ({ path, query, signal }) => {
        if (query?.watch !== undefined)
          return streamOf(200, query.fieldSelector === 'metadata.name=tor' ? changed : '', signal);
        lists.push(`${path} ${query?.fieldSelector}`);
        const name = query?.fieldSelector?.slice('metadata.name='.length) ?? '';
        if (name === 'denied') return streamOf(403, '{}');
        const items = [secrets.get(name)].filter(Boolean);
        return streamOf(200, JSON.stringify({ metadata: { resourceVersion: '5' }, items }));
      },
    },
    namespace: 'own',
    onChange: () => {
      next.resolve();
      next = Promise.withResolvers();
    },
  });
  t.teardown(() => source.close());
  const asked = async (
    name: string,
    key = 'password',
    isOver = (text: string) => !text.startsWith('it has not'),
  ) => {
    for (let turns = 0; ; turns++) {
      const found = source.read({ name, key });
      const text = 'why' in found ? found.why : found.text.reveal();
      if (isOver(text) || turns > 100) return text;
      await next.promise;
    }
  };
  t.deepEqual(source.read({ name: 'tor', key: 'password' }), { why: 'it has not been read yet' });
  t.is(await asked('tor', 'password', (text) => text === 'another'), 'another', 'it follows a change');
  const found = source.read({ name: 'tor', key: 'password' });
  t.is(JSON.stringify(found).includes('another'), false, 'it shows itself nowhere');
  t.deepEqual(source.read({ name: 'tor', key: 'other' }), { why: 'the Secret has no such key' });
  t.deepEqual(source.read({ name: 'tor', key: 'constructor' }), { why: 'the Secret has no such key' });
  t.is(await asked('none'), 'there is no Secret of this name in the namespace "own"');
  t.regex(await asked('denied'), /does not let this agent's account read it \(403\): apply deploy/);
  t.deepEqual(lists.slice(0, 2), [
    '/api/v1/namespaces/own/secrets metadata.name=tor',
    '/api/v1/namespaces/own/secrets metadata.name=none',
  ]);
  source.keepOnly(new Set(['tor']));
  t.deepEqual(source.read({ name: 'none', key: 'password' }), { why: 'it has not been read yet' });
});
