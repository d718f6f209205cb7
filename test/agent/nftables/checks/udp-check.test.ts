import test from 'ava';
import type { HealthMonitor } from '../../../../agent/model/load-balancer.ts';
import { firstCheck, nextCheck, type UdpCheck } from '../../../../agent/nftables/checks/udp-check.ts';
import { REFUSED, type UdpAnswer } from '../../../../agent/nftables/checks/udp-probe.ts';
import { plainMonitor } from '../../../support/values/load-balancers.ts';

const MONITOR = plainMonitor('udp');
const NEVER = Number.POSITIVE_INFINITY;

/** `r`: refused, `s`: silent, `d`: data, `u`: unknown; `c`: silent, but a packet of a client was refused a second ago. */
const ANSWERS: Readonly<Record<string, readonly [UdpAnswer, number]>> = {
  r: [REFUSED, NEVER],
  s: ['silence', NEVER],
  d: ['data', NEVER],
  u: ['unknown', NEVER],
  c: ['silence', 1_000],
};

/** The checks after each probe, one every `interval`. */
function checksOf(probes: string, monitor: Partial<HealthMonitor>, wasDown: boolean): readonly UdpCheck[] {
  let check = firstCheck(wasDown);
  return Array.from(probes, (letter, turn) => {
    const [answer = 'unknown', sinceRefusalMs = NEVER] = ANSWERS[letter] ?? [];
    const all = { ...MONITOR, ...monitor };
    check = nextCheck(check, { answer, at: turn * all.interval, sinceRefusalMs }, all);
    return check;
  });
}

/** Whether the member is `D`own or `U`p after each probe. */
const states = test.macro(
  (t, probes: string, expected: string, monitor: Partial<HealthMonitor> = {}, before: 'D' | 'U' = 'U') => {
    const checks = checksOf(probes, monitor, before === 'D');
    t.is(checks.map(({ isDown }) => (isDown ? 'D' : 'U')).join(''), expected);
  },
);

test('A member is down after `fall` refusals in a row', states, 'rrsrrr', 'UUUUUD');
test('A member is up after `rise` probes in a row without a refusal', states, 'rrrsrss', 'UUDDDDU');
test('Data counts as silence does', states, 'rrrdd', 'UUDDU');
test('A probe that could not be sent changes nothing', states, 'rruuru', 'UUUUDD');
test('A refused packet of a client counts as a refused probe', states, 'cccss', 'UUDDU');
test('A refused packet of a client before the last probe does not count', states, 'cccc', 'UUUU', {
  interval: 500,
  timeout: 300,
});
test('Silence within two seconds after a refusal means nothing', states, 'rsssss', 'DDDDDU', {
  interval: 500,
  timeout: 300,
  fall: 1,
  rise: 1,
});
test('A member that was down stays down until it rises', states, 'ss', 'DU', {}, 'D');

test('The cause is that of the last failure, and none after a success', (t) => {
  const causes = checksOf('rrrus', { rise: 1 }, false).map(({ cause }) => cause);
  const refused = 'nothing listens on its UDP port (ICMP port unreachable)';
  t.deepEqual(causes, ['', '', refused, refused, '']);
});
