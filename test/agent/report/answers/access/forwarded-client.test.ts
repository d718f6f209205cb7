import test from 'ava';
import type { Listener } from '../../../../../agent/model/load-balancer.ts';
import { forwardedClient } from '../../../../../agent/report/answers/access/forwarded-client.ts';

const listener = { trustedProxies: ['10.0.0.0/8', '2001:db8::/64'] } as unknown as Listener;
const client = (from: string, ...values: readonly string[]) => ({
  from: { address: from, family: from.includes(':') ? 'v6' : 'v4' } as const,
  ...{ user: '', hasCertificate: false, headers: new Map([['x-forwarded-for', values]]) },
});

test('The client is the last address of X-Forwarded-For that is no trusted proxy, over at most three of them', (t) => {
  for (const [from, values, expected] of [
    ['192.0.2.7', ['198.51.100.1'], '192.0.2.7'],
    ['10.0.0.1', ['198.51.100.1'], '198.51.100.1'],
    ['10.0.0.1', ['198.51.100.1', '10.0.0.2'], '198.51.100.1'],
    ['10.0.0.1', ['203.0.113.1, 198.51.100.1,10.0.0.2'], '198.51.100.1'],
    ['10.0.0.1', ['198.51.100.1,10.0.0.4,10.0.0.3,10.0.0.2'], '10.0.0.4'],
    ['10.0.0.1', ['198.51.100.1, unknown'], '10.0.0.1'],
    ['10.0.0.1', ['198.51.100.1, unknown, 10.0.0.2'], '10.0.0.2'],
    ['2001:db8::1', ['198.51.100.1'], '198.51.100.1'],
    ['10.0.0.1', ['198.51.100.1:80'], undefined],
  ] as const)
    t.is(forwardedClient(listener, client(from, ...values))?.address, expected, `${from} ${values}`);
  const { headers: _, ...without } = client('10.0.0.1');
  t.is(forwardedClient(listener, without), undefined, 'a proxy of which no header is given');
});
