import test from 'ava';
import { connectionsIn } from '../../../../agent/pair/handover/connections.ts';

const SHOWN = `ESTAB      0      0               10.9.1.1:8080      10.9.0.13:44120
ESTAB      0      123             10.9.0.11:39220     10.9.0.14:9000
FIN-WAIT-2 0      0            10.9.1.1%lo:8080      10.9.0.13:44121
CLOSE-WAIT 1      0             [fd09::1:1]:443   [fd09::13]:44122
ESTAB      0      0      [::ffff:10.9.1.1]:80     [::ffff:10.9.0.13]:1
`;

test('connectionsIn() finds the connections to VIPs of both families', (t) => {
  t.deepEqual(connectionsIn(SHOWN, new Set(['10.9.1.1', 'fd09::1:1'])), [
    { client: '10.9.0.13', clientPort: 44_120, vip: '10.9.1.1', port: 8080 },
    { client: '10.9.0.13', clientPort: 44_121, vip: '10.9.1.1', port: 8080 },
    { client: 'fd09::13', clientPort: 44_122, vip: 'fd09::1:1', port: 443 },
    { client: '10.9.0.13', clientPort: 1, vip: '10.9.1.1', port: 80 },
  ]);
});

test('connectionsIn() finds no connection in other text', (t) => {
  for (const text of ['', '\n', 'Cannot open netlink socket', 'ESTAB 0 0 10.9.1.1:8080 x;y:1\n'])
    t.deepEqual(connectionsIn(text, new Set(['10.9.1.1'])), [], text);
});
