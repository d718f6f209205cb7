import test from 'ava';
import { healthRows, NO_HEALTH } from '../../../agent/pushed/health-rows.ts';
import { readBack } from '../../../agent/pushed/readback.ts';
import { readText } from '../../../agent/pushed/text/pushed-text.ts';
import { BACKEND, type TextMember, textOf } from '../../support/octavia/pushed-texts.ts';

const HEADER =
  '# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port';
const CHECKED = 'check inter 5s fall 3 rise 2';

interface StateRow {
  readonly name?: string;
  readonly backend?: string;
  readonly address?: string;
  readonly op?: number;
  readonly admin?: number;
  readonly weights?: string;
  readonly check?: number;
  readonly port?: number;
}

/** An answer to `show servers state`. */
function answer(...rows: readonly StateRow[]): string {
  const lines = rows.map(
    ({
      name = 'm1',
      backend = BACKEND,
      address = '10.0.0.9',
      op = 2,
      admin = 0,
      weights = '1 1',
      check = 0,
      port = 80,
    }) => `3 ${backend} 1 ${name} ${address} ${op} ${admin} ${weights} 7 1 0 0 ${check} 0 0 0 - ${port}`,
  );
  return ['1', HEADER, ...lines].join('\n');
}

const text = (...members: readonly TextMember[]) => readText(textOf({ members }));

test('readBack() finds no difference if all servers are as the text says', (t) => {
  const read = readBack(
    answer({}, { name: 'm2', admin: 5, check: 14 }, { name: 'm3', address: '2001:db8::7', weights: '9 1' }),
    text(
      { name: 'm1' },
      { name: 'm2', words: `${CHECKED} disabled` },
      { name: 'm3', address: '2001:DB8:0::7', weight: 9 },
    ),
  );
  t.deepEqual(read, { difference: '', leaving: [] });
});

test('readBack() gives removed servers, and never their words', (t) => {
  const { difference, leaving } = readBack(
    answer({}, { name: 'old', admin: 1, port: 81 }),
    text({ name: 'm1' }),
  );
  t.is(difference, '');
  t.like(leaving, [{ backend: BACKEND, server: { name: 'old', port: 81, line: '' } }]);
  t.not(leaving[0]?.server.fault, '');
});

test('readBack() ignores the sections of the second file', (t) => {
  const own = { backend: 'prometheus-exporter-agent', name: 'agent' };
  t.is(readBack(answer(own, {}), text({ name: 'm1' })).difference, '');
});

const DIFFERENCES: readonly (readonly [string, string, TextMember, RegExp])[] = [
  ['weight', answer({ weights: '7 1' }), { name: 'm1' }, /has weight 7$/],
  ['port', answer({ port: 81 }), { name: 'm1' }, /is at 10\.0\.0\.9 port 81$/],
  ['address', answer({ address: '10.0.0.8' }), { name: 'm1' }, /is at 10\.0\.0\.8 port 80$/],
  ['state', answer({ admin: 1 }), { name: 'm1' }, /is in state "maint"$/],
  ['readiness', answer({}), { name: 'm1', words: 'disabled' }, /is in state "ready"$/],
  ['missing check', answer({}), { name: 'm1', words: CHECKED }, /has the check "none"$/],
  ['check that is off', answer({ check: 2 }), { name: 'm1', words: CHECKED }, /has the check "off"$/],
  ['check', answer({ check: 6 }), { name: 'm1' }, /has the check "on"$/],
  ['absence', answer(), { name: 'm1' }, /^server m1 .* is missing$/],
  ['strange server', answer({}, { name: 'x' }), { name: 'm1' }, /^server x .* is not in the text$/],
  ['strange backend', answer({ backend: 'x' }), { name: 'm1' }, /^backend x is not in the text$/],
];

for (const [what, given, member, difference] of DIFFERENCES)
  test(`readBack() finds another ${what}`, (t) => {
    t.regex(readBack(given, text(member)).difference, difference);
  });

test('healthRows() keeps health, with weight and state of the next text', (t) => {
  const before = text({ name: 'm1', words: CHECKED }, { name: 'm2', words: CHECKED });
  const next = text({ name: 'm1', words: CHECKED, weight: 5 }, { name: 'm2', words: CHECKED });
  const kept = healthRows(
    answer({ op: 0, weights: '7 1', check: 6 }, { name: 'm2', admin: 4, check: 6 }),
    before,
    next,
  );
  t.is(kept, `${answer({ op: 0, weights: '5 5', check: 6 }, { name: 'm2', admin: 0, check: 6 })}\n`);
});

test('healthRows() keeps nothing of servers whose health is another one, or none', (t) => {
  const member = { name: 'm1', words: CHECKED };
  const rows = answer({ op: 0, check: 6 });
  const none = (...next: readonly TextMember[]) =>
    t.is(healthRows(rows, text(member), text(...next)), NO_HEALTH);
  none();
  none({ name: 'm1' });
  none({ ...member, port: 81 });
  none({ ...member, address: '10.0.0.8' });
  none({ ...member, words: `${CHECKED} disabled` });
  t.is(healthRows(answer({ op: 0, admin: 1, check: 14 }), text(member), text(member)), NO_HEALTH);
  const other = readText(textOf({ members: [member], backendLines: ['option httpchk GET /'] }));
  t.is(healthRows(rows, text(member), other), NO_HEALTH);
});
