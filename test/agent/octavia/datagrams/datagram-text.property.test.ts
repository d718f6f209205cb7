import test from 'ava';
import fc from 'fast-check';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import { datagramBalancer } from '../../../../agent/octavia/datagrams/datagram-balancer.ts';
import { readDatagramText } from '../../../../agent/octavia/datagrams/datagram-text.ts';
import { LISTENER, MONITOR, member, POOL } from '../../../support/octavia/datagram-listeners.ts';

const LINES = `# Configuration for Loadbalancer 50000000-0000-4000-8000-000000000001
# Configuration for Listener ${LISTENER}
net_namespace amphora-haproxy
virtual_server_group ipv4-group {
    10.9.0.100 53
}
virtual_server group ipv4-group {
    lb_algo wrr
    lb_kind NAT
    protocol UDP
    persistence_timeout 360
    persistence_granularity 255.255.0.0
    delay_loop 5
    retry 3
    # Configuration for Pool ${POOL}
    # Configuration for HealthMonitor ${MONITOR}
    # Configuration for Member ${member(1)}
    real_server 10.9.0.31 5353 {
        weight 1
        MISC_CHECK {
            misc_path "/var/lib/octavia/lvs/check/udp_check.sh 10.9.0.31 5353"
            misc_timeout 3
        }
    }
    # Member ${member(2)} is disabled
}`.split('\n');

const WORDS = [
  '{',
  '}',
  '#',
  '0',
  '-1',
  '65536',
  '',
  'constructor',
  '__proto__',
  '../x',
  '"',
  '\u0000',
  '::',
  'real_server',
];

/** A text in which lines went, came twice, changed places or have another word. */
const texts = fc
  .array(
    fc.record({
      kind: fc.constantFrom('remove', 'repeat', 'move', 'word'),
      at: fc.nat(LINES.length - 1),
      to: fc.nat(LINES.length - 1),
      word: fc.oneof(fc.constantFrom(...WORDS), fc.string()),
    }),
    { maxLength: 4 },
  )
  .map((changes) => {
    const lines = [...LINES];
    for (const { kind, at, to, word } of changes) {
      const line = lines[at] ?? '';
      if (kind === 'remove') lines.splice(at, 1);
      else if (kind === 'repeat') lines.splice(to, 0, line);
      else if (kind === 'move') lines.splice(to, 0, ...lines.splice(at, 1));
      else lines[at] = line.replace(/\S+/, word.replaceAll('$', ''));
    }
    return lines.join('\n');
  });

test('readDatagramText() gives only what the kernel can serve, or refuses the text', (t) => {
  let good = 0;
  fc.assert(
    fc.property(texts, (text) => {
      try {
        const { listeners } = datagramBalancer(readDatagramText(text));
        good++;
        for (const { addresses, port, pool } of listeners) {
          t.deepEqual([...addresses], ['10.9.0.100']);
          t.is(port, 53);
          t.true(pool.members.every((each) => each.address === '10.9.0.31' && each.weight <= 256));
        }
      } catch (error) {
        if (!(error instanceof HeadgateError) || error.code !== 'OCTAVIA_INVALID') throw error;
      }
    }),
    { numRuns: 3_000 },
  );
  t.true(good > 100);
});
